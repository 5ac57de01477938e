"""Names as one reads them."""

from __future__ import annotations

import numpy as np

from soulsgym.actions import DIRECTIONS, Button

BUTTON_NAMES = {Button.LIGHT: "light attack", Button.HEAVY: "heavy attack", Button.PARRY: "parry"}


def plain_name(name: str) -> str:
    """A name of the data files as one reads it."""
    return name.replace("_", " ")


def control_name(control: np.void) -> str:
    """What was pressed, in words."""
    direction, button = int(control["direction"]), Button(int(control["button"]))
    way = DIRECTIONS[direction] if 0 <= direction < len(DIRECTIONS) else ""
    if button == Button.NONE:
        return f"walk {way}" if way else "nothing"
    if button == Button.ROLL:
        return f"roll {way}" if way else "backstep"
    return f"{way} {BUTTON_NAMES[button]}".strip()
