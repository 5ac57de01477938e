"""The player keeps away from the boss."""

from __future__ import annotations

import math
from typing import Any

from soulsgym.compiling import inner
from soulsgym.parts.rewards.term import term

NEAR_M = 4.0
"""Nearer to the boss than this nobody is running away."""
SPAN_M = 6.0


@inner
def distance_m(fight: Any) -> float:
    """From the player to the boss."""
    dx, dy = fight.player_pose[0] - fight.boss_pose[0], fight.player_pose[1] - fight.boss_pose[1]
    return math.sqrt(dx * dx + dy * dy)


@inner
def begin_far(fight: Any, memory: Any) -> None:
    """Note the first step."""
    memory.step = fight.step


@term(
    "far",
    "for every environment step, minus the distance to the boss beyond 4 m, scaled to 1 at 10 m or more",
    begin=begin_far,
    memory=[("step", "i8")],
)
@inner
def far(fight: Any, memory: Any) -> Any:
    """As if the boss had been as far off in every step since the last call."""
    steps = fight.step - memory.step
    memory.step = fight.step
    return -min(max(distance_m(fight) - NEAR_M, 0.0), SPAN_M) / SPAN_M * steps
