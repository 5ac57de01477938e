"""What players read off an observation: how far the boss is, where, and which key leads there."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from soulsgym.actions import DIRECTIONS
from soulsgym.geometry import heading_along, wrap_angle
from soulsgym.players.player import Observation

Floats = npt.NDArray[np.float64]

ROLLS, LIGHT = 8, 16
"""The first of the eight rolls among the actions, and the light attack."""
EIGHTH = np.pi / 4.0


def distance_m(observation: Observation) -> Floats:
    """Metres between the centres of player and boss."""
    offset = observation["boss_pose"][:, :2].astype(np.float64) - observation["player_pose"][:, :2]
    return np.asarray(np.hypot(offset[:, 0], offset[:, 1]))


def heading_to_boss(observation: Observation) -> Floats:
    """The heading from the player to the boss."""
    offset = observation["boss_pose"] - observation["player_pose"]
    return heading_along(offset[:, 0], offset[:, 1])


def bearing_from_boss(observation: Observation) -> Floats:
    """Where the player stands seen from the boss's heading, positive to its right."""
    return wrap_angle(heading_to_boss(observation) + np.pi - observation["boss_pose"][:, 3])


def key_along(observation: Observation, heading: Floats) -> npt.NDArray[np.int64]:
    """The direction, 0 to 7 in the camera's frame, that leads nearest to a heading in the world."""
    camera = heading_along(observation["camera_pose"][:, 3], observation["camera_pose"][:, 4])
    return np.rint((heading - camera) / EIGHTH).astype(np.int64) % len(DIRECTIONS)
