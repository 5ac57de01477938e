"""What an encoder remembers of each fight: one record per fight, saved field by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.errors import MisuseError

Memory = npt.NDArray[Any]


def saved(memory: Memory) -> dict[str, npt.NDArray[Any]]:
    """A copy of every field, as arrays of plain numbers."""
    return {name: memory[name].copy() for name in memory.dtype.names or ()}


def recall(memory: Memory, state: Mapping[str, npt.NDArray[Any]]) -> None:
    """Fill `memory` with what `saved` returned for as many fights."""
    for name in memory.dtype.names or ():
        recall_array(memory[name], state, name)


def recall_array(array: npt.NDArray[Any], state: Mapping[str, npt.NDArray[Any]], name: str) -> None:
    """Fill one array in place from the state."""
    if name not in state:
        raise MisuseError(f"state lacks {name!r}; give what state() of the same encoder returned")
    given = np.asarray(state[name])
    if given.shape != array.shape:
        raise MisuseError(
            f"state {name!r} has shape {list(given.shape)}, not {list(array.shape)}; "
            "make the encoder for the same number of fights"
        )
    array[...] = given
