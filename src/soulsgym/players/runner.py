"""A player that runs away."""

from __future__ import annotations

import numpy as np

from soulsgym.actions import NOTHING
from soulsgym.players.bearings import distance_m, heading_along, heading_to_boss, key_along
from soulsgym.players.player import Actions, Mask, Observation

AWAY_WITHIN_M = 9.0
"""Nearer than this he runs straight away, else he circles."""
ROOM_M = 13.0
"""Farther than this from the middle he turns inwards along the edge."""


class Runner:
    """Keeps away from the boss and circles about the middle of the arena; strikes never."""

    def __init__(self, centre_m: tuple[float, float]) -> None:
        self._centre_m = centre_m

    def reset(self, mask: Mask) -> None:
        """Nothing to forget."""

    def act(self, observation: Observation, mask: Mask) -> Actions:
        """A step away from the boss, or along the edge."""
        away = heading_to_boss(observation) + np.pi
        around = away + np.where(distance_m(observation) < AWAY_WITHIN_M, np.pi / 4, np.pi / 2)
        x = self._centre_m[0] - observation["player_pose"][:, 0]
        y = self._centre_m[1] - observation["player_pose"][:, 1]
        inwards = heading_along(x, y)
        at_edge = np.hypot(x, y) > ROOM_M
        heading = np.where(at_edge, inwards - np.pi / 3, around)
        return np.where(mask[:, 0], key_along(observation, heading), NOTHING)
