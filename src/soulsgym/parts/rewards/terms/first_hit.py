"""The first blow that reaches the player."""

from __future__ import annotations

from typing import Any

from soulsgym.compiling import inner
from soulsgym.parts.rewards.term import term


@inner
def begin_first_hit(fight: Any, memory: Any) -> None:
    """A fight may begin with damage taken before."""
    memory.hit = 1 if fight.taken_total > 0.0 else 0


@term(
    "first_hit",
    "-1 for the first damage taken in a fight",
    begin=begin_first_hit,
    memory=[("hit", "i8")],
)
@inner
def first_hit(fight: Any, memory: Any) -> float:
    """0 from then on."""
    if memory.hit == 1 or fight.damage_taken <= 0.0:
        return 0.0
    memory.hit = 1
    return -1.0
