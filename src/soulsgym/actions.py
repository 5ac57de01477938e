"""Control, what an engine accepts for one step, and the twenty actions of the environments."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

CONTROL = np.dtype([("direction", "i1"), ("button", "i1")])
Controls = npt.NDArray[Any]
"""An array of dtype CONTROL with one leading axis of fights."""

NO_DIRECTION = -1
DIRECTIONS = ("F", "FR", "R", "RB", "B", "BL", "L", "LF")
"""Keys held, clockwise from forward, in the frame of the camera."""


class Button(IntEnum):
    """The button pressed in a step, beside the held direction."""

    NONE = 0
    ROLL = 1
    LIGHT = 2
    HEAVY = 3
    PARRY = 4


NOTHING = 19
"""The action that presses no key."""

ACTION_CONTROLS: Controls = np.array(
    [(direction, Button.NONE) for direction in range(8)]
    + [(direction, Button.ROLL) for direction in range(8)]
    + [(NO_DIRECTION, button) for button in (Button.LIGHT, Button.HEAVY, Button.PARRY, Button.NONE)],
    dtype=CONTROL,
)
ACTION_CONTROLS.setflags(write=False)


def controls_of(actions: npt.NDArray[Any]) -> Controls:
    """The controls of actions in 0..19, moved as numbers of two bytes, since NumPy is slow at records."""
    controls: Controls = _AS_NUMBERS[actions].view(CONTROL)
    return controls


_AS_NUMBERS = ACTION_CONTROLS.view(np.uint16)

ACTION_NAMES = (
    *(f"walk {name}" for name in DIRECTIONS),
    *(f"roll {name}" for name in DIRECTIONS),
    "light attack",
    "heavy attack",
    "parry",
    "nothing",
)
