"""Fighters that only want to die."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from soulsai.evaluation.fighter import Flags, Int64s
from soulsgym.actions import NOTHING
from soulsgym.geometry import heading_along
from soulsgym.players.observation import distance_m, heading_to_boss, key_along
from soulsgym.spec.arena import Arena
from soulsgym.state import Fights, observation_of

BEFORE_THE_BOSS_M = 2.0
BEYOND_THE_EDGE_M = 3.0


class Victim:
    """Walks up to the boss and waits for the blows."""

    def begin(self, fights: Fights, mask: Flags) -> None:
        """Nothing to forget."""

    def act(self, fights: Fights) -> Int64s:
        """Straight ahead, or nothing."""
        observation = observation_of(fights)
        key = key_along(observation, heading_to_boss(observation))
        return np.where(distance_m(observation) > BEFORE_THE_BOSS_M, key, NOTHING)


class Leaper:
    """Walks over the nearest cliff; where there is none he stands still."""

    def __init__(self, arena: Arena) -> None:
        corners = arena.corners
        pairs = zip(corners, (*corners[1:], corners[0]), strict=True)
        edges = [((a.x_m, a.y_m), (b.x_m, b.y_m)) for a, b in pairs if a.to_next == "cliff"]
        self._from_m, self._to_m = np.array(edges).reshape(-1, 2, 2).swapaxes(0, 1)

    def begin(self, fights: Fights, mask: Flags) -> None:
        """Nothing to forget."""

    def act(self, fights: Fights) -> Int64s:
        """Towards a point beyond the edge."""
        if not len(self._from_m):
            return np.full(len(fights), NOTHING)
        observation = observation_of(fights)
        way = self._way_m(observation["player_pose"][:, :2].astype(np.float64))
        return key_along(observation, heading_along(way[:, 0], way[:, 1]))

    def _way_m(self, places: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """From each place to beyond the middle of the nearest cliff."""
        middles, along = (self._from_m + self._to_m) / 2.0, self._to_m - self._from_m
        ways = middles[None] - places[:, None]
        nearest = np.hypot(ways[..., 0], ways[..., 1]).argmin(axis=1)
        # The corners go round anticlockwise, so outside is to the right.
        outside = np.stack([along[:, 1], -along[:, 0]], axis=1) / np.hypot(along[:, 0], along[:, 1])[:, None]
        return np.asarray(ways[np.arange(len(places)), nearest] + BEYOND_THE_EDGE_M * outside[nearest])
