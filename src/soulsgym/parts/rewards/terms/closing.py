"""The player comes nearer to the boss."""

from __future__ import annotations

from typing import Any

from soulsgym.compiling import inner
from soulsgym.parts.rewards.term import term
from soulsgym.parts.rewards.terms.far import NEAR_M, distance_m


@inner
def begin_closing(fight: Any, memory: Any) -> None:
    """Note the first distance."""
    memory.boss_m = distance_m(fight)


@term(
    "closing",
    "metres moved towards the boss, beyond 4 m",
    begin=begin_closing,
    memory=[("boss_m", "f8")],
)
@inner
def closing(fight: Any, memory: Any) -> Any:
    """The difference of a potential: coming and going again adds up to nothing."""
    before_m, now_m = memory.boss_m, distance_m(fight)
    memory.boss_m = now_m
    return max(before_m - NEAR_M, 0.0) - max(now_m - NEAR_M, 0.0)
