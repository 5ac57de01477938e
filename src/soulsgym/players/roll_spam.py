"""A player that rolls all the time."""

from __future__ import annotations

import numpy as np

from soulsgym.actions import DIRECTIONS, NOTHING
from soulsgym.players.bearings import LIGHT, ROLLS, distance_m, heading_to_boss, key_along
from soulsgym.players.player import Actions, Mask, Observation

STRIKE_WITHIN_M = 2.8
STRAY = 3
"""How many of the eight directions a roll may be off the way to the boss, to either side: less one."""


class RollSpam:
    """Rolls about the boss without looking at him, and strikes out of every other roll that ends in reach."""

    def __init__(self, n: int, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._struck = np.zeros(n, np.bool_)

    def reset(self, mask: Mask) -> None:
        """The first roll ends in a strike."""
        self._struck[mask] = False

    def act(self, observation: Observation, mask: Mask) -> Actions:
        """Strike if the last chance to was not used, else roll."""
        stray = self._rng.integers(-STRAY + 1, STRAY, size=len(mask))
        key = (key_along(observation, heading_to_boss(observation)) + stray) % len(DIRECTIONS)
        strike = mask[:, LIGHT] & ~self._struck & (distance_m(observation) <= STRIKE_WITHIN_M)
        roll = mask[:, ROLLS] & ~strike
        self._struck = np.where(strike, True, np.where(roll, False, self._struck))
        return np.where(strike, LIGHT, np.where(roll, ROLLS + key, NOTHING))
