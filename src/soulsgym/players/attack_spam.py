"""A player that only attacks."""

from __future__ import annotations

import numpy as np

from soulsgym.actions import NOTHING
from soulsgym.players.bearings import LIGHT, distance_m, heading_to_boss, key_along
from soulsgym.players.player import Actions, Mask, Observation

STRIKE_WITHIN_M = 2.8
"""A light attack steps forward a good metre, so it lands from a little beyond the blade's reach."""


class AttackSpam:
    """Walks up to the boss and strikes whenever the mask lets him."""

    def reset(self, mask: Mask) -> None:
        """Nothing to forget."""

    def act(self, observation: Observation, mask: Mask) -> Actions:
        """Light in reach, a step towards the boss out of it."""
        key = key_along(observation, heading_to_boss(observation))
        near = distance_m(observation) <= STRIKE_WITHIN_M
        walk = np.where(mask[:, 0], key, NOTHING)
        return np.where(near, np.where(mask[:, LIGHT], LIGHT, NOTHING), walk)
