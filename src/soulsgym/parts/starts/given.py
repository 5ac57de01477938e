"""A start given by the user: phase, health, poses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.engine import standard_starts
from soulsgym.errors import StartError
from soulsgym.movesets.reader import suggestion

START_KEYS = ("phase", "player_hp", "player_sp", "boss_hp", "player_pose", "boss_pose")


def given_starts(n: int, given: Mapping[str, Any]) -> npt.NDArray[Any]:
    """Starts for `n` fights: each value is one for all, or one per fight. Poses are x, y, heading."""
    starts = standard_starts(n)
    for key, value in given.items():
        if key not in START_KEYS:
            raise StartError(f"start key {key!r} is not known{suggestion(key, START_KEYS)}")
        try:
            starts[key] = np.asarray(value, dtype=np.float64)
        except (ValueError, TypeError) as error:
            shape = starts[key].shape[1:]
            raise StartError(
                f"start {key} = {value!r} does not fit; give {shape or 'one number'} or {n} of them"
            ) from error
    return starts
