"""The terms every reward can be made of: small functions of one fight, and the one kernel that adds them up.

A call may stand for several environment steps, where those without a choice were merged: damage is then their sum, and
`fight.step` tells how many passed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from soulsgym.compiling import njit
from soulsgym.state import Outcome

TERMS = {
    "dealt": "share of the boss's health dealt",
    "taken": "minus the share of the player's health lost",
    "win": "1 when the boss has died",
    "death": "-1 when the player has died or fallen",
    "end": "win and death in one: 1 or -1",
    "closing": "metres nearer to the boss, counted beyond 4 m",
    "far": "minus how far beyond 4 m the boss is, 1 at 10 m and more; for every environment step",
    "centre": "metres nearer to the middle of the arena, where the player is farther than 4 m from it and lives",
    "roll": "-1 in a rolling animation",
    "step": "-1 for every environment step",
    "combo": "0.1, 0.2, ... 1 for hits landed one after the other without one taken",
    "first_hit": "-1 for the first damage taken in a fight",
}
"""Names and meanings, in the order of the kernel's columns."""

COUNT = len(TERMS)
NEAR_M = 4.0
"""Nearer to the boss than this nobody is running away."""
FAR_SPAN_M = 6.0
CENTRE_RADIUS_M = 4.0
"""Nearer to the middle than this there is no pull."""
LONGEST_COMBO = 10
RUNNING, WON, BROKEN = int(Outcome.RUNNING), int(Outcome.WON), int(Outcome.BROKEN)

MEMORY = np.dtype(
    [
        ("boss_m", "f8"),  # distance to the boss after the last step
        ("centre_m", "f8"),  # distance to the middle of the arena
        ("step", "i8"),
        ("combo", "i8"),  # hits landed since the last one taken
        ("hit", "i8"),  # 1: was hit in this fight
    ]
)
"""What is remembered of a fight from call to call."""

PLACE = np.dtype([("x_m", "f8"), ("y_m", "f8"), ("rolls", "i8", (2,))])
"""What is the same for all fights: the middle of the arena, and the ids of the rolling animations."""


@njit
def _boss_m(fight: Any) -> float:
    dx, dy = fight.player_pose[0] - fight.boss_pose[0], fight.player_pose[1] - fight.boss_pose[1]
    return math.sqrt(dx * dx + dy * dy)


@njit
def _centre_m(fight: Any, place: Any) -> float:
    dx, dy = fight.player_pose[0] - place.x_m, fight.player_pose[1] - place.y_m
    return math.sqrt(dx * dx + dy * dy)


@njit
def _end(fight: Any) -> float:
    if fight.outcome == RUNNING or fight.outcome == BROKEN:
        return 0.0
    return 1.0 if fight.outcome == WON else -1.0


@njit
def _closing(before_m: float, now_m: float) -> float:
    """The difference of a potential: coming and going again adds up to nothing."""
    return max(before_m - NEAR_M, 0.0) - max(now_m - NEAR_M, 0.0)


@njit
def _far(now_m: float, steps: int) -> float:
    return -min(max(now_m - NEAR_M, 0.0), FAR_SPAN_M) / FAR_SPAN_M * steps


@njit
def _centre(fight: Any, before_m: float, now_m: float) -> float:
    pulls = fight.outcome == RUNNING and now_m > CENTRE_RADIUS_M
    return before_m - now_m if pulls else 0.0


@njit
def _roll(fight: Any, place: Any) -> float:
    rolls = fight.player_animation == place.rolls[0] or fight.player_animation == place.rolls[1]
    return -1.0 if rolls else 0.0


@njit
def _combo(fight: Any, memory: Any) -> float:
    """A blow taken in the same call ends the row before the hit counts, since nobody knows which came first."""
    if fight.damage_taken > 0.0:
        memory.combo = 0
        return 0.0
    if fight.landed < 0:
        return 0.0
    memory.combo += 1
    row: float = min(memory.combo, LONGEST_COMBO) / LONGEST_COMBO
    return row


@njit
def _first_hit(fight: Any, memory: Any) -> float:
    if memory.hit == 1 or fight.damage_taken <= 0.0:
        return 0.0
    memory.hit = 1
    return -1.0


@njit(nogil=True, cache=True)
def begin_into(fights: Any, mask: Any, places: Any, memories: Any) -> None:
    """Note how the fights of `mask` stand before their first step."""
    place = places[0]
    for i in range(len(fights)):
        if mask[i]:
            fight, memory = fights[i], memories[i]
            memory.boss_m, memory.centre_m = _boss_m(fight), _centre_m(fight, place)
            memory.step, memory.combo = fight.step, 0
            memory.hit = 1 if fight.taken_total > 0.0 else 0


@njit(nogil=True, cache=True)
def terms_into(fights: Any, places: Any, memories: Any, columns: Any, weights: Any, terms: Any, rewards: Any) -> None:
    """Work out every term of every fight, and write those of `columns` times their weights."""
    place, row = places[0], np.empty(COUNT)
    for i in range(len(fights)):
        fight, memory = fights[i], memories[i]
        boss_m, centre_m, steps = _boss_m(fight), _centre_m(fight, place), fight.step - memory.step
        end = _end(fight)
        row[0] = fight.damage_dealt / fight.boss_max_hp
        row[1] = -fight.damage_taken / fight.player_max_hp
        row[2], row[3], row[4] = max(end, 0.0), min(end, 0.0), end
        row[5] = _closing(memory.boss_m, boss_m)
        row[6] = _far(boss_m, steps)
        row[7] = _centre(fight, memory.centre_m, centre_m)
        row[8] = _roll(fight, place)
        row[9] = -1.0 * steps
        row[10] = _combo(fight, memory)
        row[11] = _first_hit(fight, memory)
        memory.boss_m, memory.centre_m, memory.step = boss_m, centre_m, fight.step
        rewards[i] = 0.0
        for j in range(len(columns)):
            terms[i, j] = weights[j] * row[columns[j]]
            rewards[i] += terms[i, j]
