"""Hits one after the other."""

from __future__ import annotations

from typing import Any

from soulsgym.compiling import inner
from soulsgym.parts.rewards.term import term

LONGEST = 10


@inner
def begin_combo(fight: Any, memory: Any) -> None:
    """No hit yet."""
    memory.hits = 0


@term(
    "combo",
    "0.1, 0.2, ... 1 for successive hits landed without being hit",
    begin=begin_combo,
    memory=[("hits", "i8")],
)
@inner
def combo(fight: Any, memory: Any) -> float:
    """A blow taken in the same call ends the row before the hit counts, since nobody knows which came first."""
    if fight.damage_taken > 0.0:
        memory.hits = 0
        return 0.0
    if fight.landed < 0:
        return 0.0
    memory.hits += 1
    row: float = min(memory.hits, LONGEST) / LONGEST
    return row
