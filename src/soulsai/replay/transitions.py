"""Transitions as columns: one array per field, one row per transition."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from soulsgym.compiling import njit
from soulsgym.errors import MisuseError

Float32s = npt.NDArray[np.float32]
Float64s = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Transitions(NamedTuple):
    """Rows of what was seen, done and got, and what a bootstrap needs: its discount is 0 after a real end."""

    observations: Float32s
    actions: Int64s
    rewards: Float32s
    discounts: Float32s
    next_observations: Float32s
    next_masks: Flags


def arrays_of(rows: Transitions) -> tuple[npt.NDArray[Any], ...]:
    """The columns one after the other, whatever their types."""
    return cast("tuple[npt.NDArray[Any], ...]", rows)


def record_of(observation_size: int, num_actions: int) -> np.dtype[Any]:
    """One transition as a packed record, its fields in the order of the columns."""
    return np.dtype(
        [
            ("observations", "<f4", (observation_size,)),
            ("actions", "<i8"),
            ("rewards", "<f4"),
            ("discounts", "<f4"),
            ("next_observations", "<f4", (observation_size,)),
            ("next_masks", "?", (num_actions,)),
        ]
    )


def make_columns(rows: int, observation_size: int, num_actions: int) -> Transitions:
    """Columns of zeros."""
    record = record_of(observation_size, num_actions)
    kinds = (record[field] for field in Transitions._fields)
    return Transitions(*(np.zeros((rows, *kind.shape), kind.base) for kind in kinds))


@njit(cache=True, nogil=True)
def copy_rows(source: Any, chosen: Any, out: Any) -> None:
    """Copy the chosen rows to the front of `out`; element by element: slices of numba take four times as long."""
    for i in range(len(chosen)):
        row = chosen[i]
        for j in range(source.shape[1]):
            out[i, j] = source[row, j]


@njit(cache=True, nogil=True)
def copy_numbers(source: Any, chosen: Any, out: Any) -> None:
    """Copy the chosen numbers to the front of `out`."""
    for i in range(len(chosen)):
        out[i] = source[chosen[i]]


def check_shape(name: str, array: npt.NDArray[Any], shape: tuple[int, ...]) -> None:
    """Refuse an array a kernel would read beyond its end, or NumPy would silently repeat."""
    if array.shape != shape:
        raise MisuseError(f"{name} have the shape {array.shape}; give an array of shape {shape}")
