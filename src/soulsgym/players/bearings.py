"""What a player reads off the poses: how far, where, and which key leads there."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.actions import DIRECTIONS
from soulsgym.players.player import Observation

Floats = npt.NDArray[np.float64]

FORWARD, RIGHT, BACKWARD, LEFT = (DIRECTIONS.index(name) for name in ("F", "R", "B", "L"))
ROLLS, LIGHT = 8, 16
"""Offset of the eight rolls among the actions, and the light attack."""
EIGHTH = np.pi / 4.0


def distance_m(observation: Observation) -> Floats:
    """Metres between the centres of player and boss."""
    offset = observation["boss_pose"][:, :2].astype(np.float64) - observation["player_pose"][:, :2]
    return np.asarray(np.hypot(offset[:, 0], offset[:, 1]))


def heading_along(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> Floats:
    """The heading that looks along (x, y): 0 along -y, growing clockwise seen from above."""
    return np.asarray(np.arctan2(-np.asarray(x, np.float64), -np.asarray(y, np.float64)))


def heading_to_boss(observation: Observation) -> Floats:
    """The heading from the player to the boss."""
    offset = observation["boss_pose"] - observation["player_pose"]
    return heading_along(offset[:, 0], offset[:, 1])


def wrapped(angle: Floats) -> Floats:
    """The angle within [-pi, pi)."""
    return np.asarray((angle + np.pi) % (2.0 * np.pi) - np.pi)


def bearing_from_boss(observation: Observation) -> Floats:
    """Where the player stands seen from the boss's heading, positive to its right."""
    return wrapped(heading_to_boss(observation) + np.pi - observation["boss_pose"][:, 3])


def key_along(observation: Observation, heading: Floats) -> npt.NDArray[np.int64]:
    """The direction, 0 to 7 in the camera's frame, that leads nearest to a heading in the world."""
    camera = heading_along(observation["camera_pose"][:, 3], observation["camera_pose"][:, 4])
    return np.rint((heading - camera) / EIGHTH).astype(np.int64) % len(DIRECTIONS)
