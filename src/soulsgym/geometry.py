"""Angles as plain Python and NumPy know them; the simulator has compiled ones of its own."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Angle = TypeVar("Angle", float, npt.NDArray[Any])


def wrap_angle(angle: Angle) -> Angle:
    """The angle [rad] within [-pi, pi)."""
    return (angle + math.pi) % (2.0 * math.pi) - math.pi


def heading_along(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The heading that looks along (x, y): 0 along -y, growing clockwise seen from above."""
    return np.asarray(np.arctan2(-np.asarray(x, np.float64), -np.asarray(y, np.float64)))
