"""The reward of SoulsGym: shares of health, a little at the end, and a pull to the middle of the arena."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.sim.compiling import njit
from soulsgym.state import Fights, Outcome

END = 0.1
CENTRE_PER_M = 0.01
CENTRE_RADIUS_M = 4.0
"""Nearer to the middle than this there is no pull."""

RUNNING, WON = int(Outcome.RUNNING), int(Outcome.WON)


@njit
def _distance_m(fight: Any, x_m: float, y_m: float) -> float:
    dx, dy = fight.player_pose[0] - x_m, fight.player_pose[1] - y_m
    return math.sqrt(dx * dx + dy * dy)


@njit(cache=True)
def _distances_into(fights: Any, mask: Any, x_m: float, y_m: float, out: Any) -> None:
    for i in range(len(fights)):
        if mask[i]:
            out[i] = _distance_m(fights[i], x_m, y_m)


@njit(cache=True)
def _terms_into(fights: Any, x_m: float, y_m: float, distances_m: Any, terms: Any, rewards: Any) -> None:
    for i in range(len(fights)):
        fight = fights[i]
        distance_m = _distance_m(fight, x_m, y_m)
        row = terms[i]
        row[0] = fight.damage_dealt / fight.boss_max_hp
        row[1] = -fight.damage_taken / fight.player_max_hp
        row[2], row[3] = 0.0, 0.0
        if fight.outcome != RUNNING:
            row[2] = END if fight.outcome == WON else -END
        elif distance_m > CENTRE_RADIUS_M:
            row[3] = CENTRE_PER_M * (distances_m[i] - distance_m)
        distances_m[i] = distance_m
        rewards[i] = row[0] + row[1] + row[2] + row[3]


class SoulsGymReward:
    """Per step: shares of health taken and lost, +-0.1 at the end, 0.01 per metre towards the middle."""

    names = ("dealt", "taken", "end", "centre")

    def __init__(self, n: int, centre_m: tuple[float, float]) -> None:
        self._x_m, self._y_m = centre_m
        self._distances_m = np.zeros(n)

    def begin(self, fights: Fights, mask: npt.NDArray[np.bool_]) -> None:
        """Note where the players of `mask` stand, before their first step."""
        _distances_into(fights, mask, self._x_m, self._y_m, self._distances_m)

    def of(self, fights: Fights) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The reward of the last step, and its terms: a row per fight, a column per name."""
        terms, rewards = np.empty((len(fights), len(self.names))), np.empty(len(fights))
        _terms_into(fights, self._x_m, self._y_m, self._distances_m, terms, rewards)
        return rewards, terms
