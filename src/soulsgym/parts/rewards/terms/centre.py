"""The middle of the arena pulls."""

from __future__ import annotations

import math
from typing import Any

from soulsgym.compiling import inner
from soulsgym.parts.rewards.term import term
from soulsgym.spec import FightSpec
from soulsgym.state import Outcome

RADIUS_M = 4.0
"""Nearer to the middle than this there is no pull."""
RUNNING = int(Outcome.RUNNING)


def middle(spec: FightSpec) -> dict[str, float]:
    """Where the middle of the arena is."""
    x_m, y_m = spec.arena.centre_m
    return {"x_m": x_m, "y_m": y_m}


@inner
def distance_m(fight: Any, facts: Any) -> float:
    """From the player to the middle."""
    dx, dy = fight.player_pose[0] - facts.x_m, fight.player_pose[1] - facts.y_m
    return math.sqrt(dx * dx + dy * dy)


@inner
def begin_centre(fight: Any, memory: Any, facts: Any) -> None:
    """Note the first distance."""
    memory.centre_m = distance_m(fight, facts)


@term(
    "centre",
    "metres moved towards the middle of the arena, while the player is alive and more than 4 m from it",
    begin=begin_centre,
    memory=[("centre_m", "f8")],
    facts=middle,
)
@inner
def centre(fight: Any, memory: Any, facts: Any) -> Any:
    """Nothing once the fight is over."""
    before_m, now_m = memory.centre_m, distance_m(fight, facts)
    memory.centre_m = now_m
    return before_m - now_m if fight.outcome == RUNNING and now_m > RADIUS_M else 0.0
