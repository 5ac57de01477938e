"""The `start` among the options of a reset: phase, health, poses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.engine import standard_starts
from soulsgym.errors import StartError, suggestion

START_KEYS = ("phase", "player_hp", "player_sp", "boss_hp", "player_pose", "boss_pose")
MOST_PHASES = 9
"""No boss has more; the engine knows how many its own has."""


def given_starts(n: int, given: Mapping[str, Any]) -> npt.NDArray[Any]:
    """Starts for `n` fights: each value is one for all, or one per fight. Poses are x, y, heading."""
    starts = standard_starts(n)
    for key, value in given.items():
        if key not in START_KEYS:
            raise StartError(f"start key {key!r} is not known{suggestion(str(key), START_KEYS)}")
        shape = starts[key].shape[1:]
        try:
            numbers = np.broadcast_to(np.asarray(value, dtype=np.float64), (n, *shape))
        except (ValueError, TypeError) as error:
            raise StartError(
                f"start {key} = {value!r} does not fit; give {shape or 'one number'} or {n} of them"
            ) from error
        if np.isnan(numbers).any():
            raise StartError(f"start {key} = {value!r} is not a number; leave the key out for the standard value")
        if key == "phase" and not np.isin(numbers, range(MOST_PHASES + 1)).all():
            raise StartError(f"start phase = {value!r} is not a phase; give 1, 2, ... or 0 for the environment's own")
        starts[key] = numbers
    return starts
