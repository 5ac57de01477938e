"""The protocol of encoders: fights in, numbers for a network out, into buffers that are given; and what they share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from soulsgym.compiling import inner
from soulsgym.errors import MisuseError
from soulsgym.state import Fights

Flags = npt.NDArray[np.bool_]
Memory = npt.NDArray[Any]
"""One record per fight."""
Int64s = npt.NDArray[np.int64]
Float32s = npt.NDArray[np.float32]
Bounds = tuple[float, float]
"""The least and the most that a number can be."""

NO_ACTION = -1
"""In place of the last action, at the beginning of a fight."""


class Encoder(Protocol):
    """Turns fights into `size` numbers each; what it remembers of a fight it forgets when that begins again.

    It may have `boss_names`: those of its names that mean something else for another boss, such as his attacks.
    """

    size: int
    names: tuple[str, ...]
    low: Float32s  # the least and the most that each number can be
    high: Float32s

    def begin(self, fights: Fights, mask: Flags) -> None:
        """Forget the fights of `mask`: they begin again."""

    def encode(self, fights: Fights, actions: Int64s, mask: Flags, out: Float32s) -> None:
        """Write the rows of `mask` of `out`, once a step; `actions` are the last ones, -1 at the beginning."""

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Copies of everything remembered between calls."""

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to what `state` returned."""


@inner
def within(value: float, low: float, high: float) -> float:
    """The value, or the bound that it lies beyond."""
    return min(max(value, low), high)


def check_buffers(actions: Int64s, out: Float32s, n: int, size: int) -> None:
    """Refuse buffers for which a kernel would be compiled again, or write past the end."""
    if out.shape != (n, size) or out.dtype != np.float32 or not out.flags.c_contiguous:
        raise MisuseError(
            f"out is {out.dtype} {list(out.shape)}; give contiguous float32 [{n}, {size}], a row for each fight"
        )
    if actions.shape != (n,) or actions.dtype != np.int64:
        raise MisuseError(f"actions are {actions.dtype} {list(actions.shape)}; give int64 [{n}], one for each fight")


class NamedRows:
    """The first numbers of a buffer's rows as records, so that a kernel writes them by name."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype, self._out, self._rows = dtype, np.empty((0, 0), np.float32), np.empty(0, dtype)

    def of(self, out: Float32s) -> npt.NDArray[Any]:
        """A record for each row of a contiguous buffer, in the same memory; kept for the next call."""
        if out is not self._out:
            self._out, self._rows = out, np.ndarray(len(out), self._dtype, out, 0, out.strides[:1])
        return self._rows


def bounds_of(encoder: Encoder) -> tuple[Float32s, Float32s]:
    """The `low` and the `high` of an encoder; infinite where it declares none."""
    low, high = getattr(encoder, "low", None), getattr(encoder, "high", None)
    return (
        np.full(encoder.size, -np.inf, np.float32) if low is None else np.asarray(low, np.float32),
        np.full(encoder.size, np.inf, np.float32) if high is None else np.asarray(high, np.float32),
    )


def lows_and_highs(bounds: Iterable[Bounds]) -> tuple[Float32s, Float32s]:
    """The `low` and the `high` of an encoder with these bounds."""
    lows, highs = zip(*bounds, strict=True)
    return np.array(lows, np.float32), np.array(highs, np.float32)


def copy_fields(memory: Memory) -> dict[str, npt.NDArray[Any]]:
    """A copy of every field of what is remembered, as arrays of plain numbers."""
    return {name: memory[name].copy() for name in memory.dtype.names or ()}


def restore_fields(memory: Memory, state: Mapping[str, npt.NDArray[Any]]) -> None:
    """Fill `memory` with what `copy_fields` returned for as many fights."""
    for name in memory.dtype.names or ():
        restore_array(memory[name], state, name)


def restore_array(array: npt.NDArray[Any], state: Mapping[str, npt.NDArray[Any]], name: str) -> None:
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
