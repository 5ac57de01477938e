"""Numbers in columns that grow at their end, and what is left of them when a chart has no room for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

BLOCK = 32
"""Entries whose sum, least and largest value are kept, so that a chart of a million rows reads thousands."""
FIRST_ROOM = 64


class Growing:
    """An array that grows at its end, and can be cut there."""

    __slots__ = ("_room", "size")

    def __init__(self, kind: npt.DTypeLike) -> None:
        self._room: npt.NDArray[Any] = np.empty(FIRST_ROOM, kind)
        self.size = 0

    @property
    def values(self) -> npt.NDArray[Any]:
        """All of it; a view, good until it grows or is cut."""
        return self._room[: self.size]

    @property
    def nbytes(self) -> int:
        """Memory it takes."""
        return self._room.nbytes

    def extend(self, values: npt.NDArray[Any]) -> None:
        """Add values at the end."""
        end = self.size + len(values)
        if end > len(self._room):
            room = np.empty(max(end, len(self._room) * 3 // 2), self._room.dtype)
            room[: self.size] = self.values
            self._room = room
        self._room[self.size : end] = values
        self.size = end

    def cut(self, size: int) -> None:
        """Keep the first ones."""
        self.size = min(self.size, size)


@dataclass(frozen=True)
class Buckets:
    """Stretches of a column: the entry in the middle, the mean, and the least and largest of more than one."""

    middle: npt.NDArray[np.int64]
    mean: Floats
    low: Floats | None = None
    high: Floats | None = None


class Column:
    """The values of one metric. Where some rows lack it, their numbers are kept beside them."""

    def __init__(self) -> None:
        self._values = Growing(np.float64)
        self._rows: Growing | None = None
        self._sums, self._lows, self._highs = (Growing(np.float64) for _ in range(3))
        self._counts = Growing(np.int64)

    @property
    def size(self) -> int:
        """How many rows have it."""
        return self._values.size

    @property
    def values(self) -> Floats:
        """What they have."""
        return self._values.values

    @property
    def nbytes(self) -> int:
        """Memory it takes."""
        parts = (self._values, self._rows, self._sums, self._lows, self._highs, self._counts)
        return sum(part.nbytes for part in parts if part is not None)

    def parts(self) -> tuple[Floats, npt.NDArray[np.uint32] | None]:
        """The values, and the numbers of their rows unless all rows have one."""
        return self.values, None if self._rows is None else self._rows.values

    def rows(self, entries: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The rows of some entries."""
        return entries if self._rows is None else self._rows.values[entries].astype(np.int64)

    def entries(self, first: int, end: int) -> tuple[int, int]:
        """The entries of a stretch of rows: the first, and the end."""
        if self._rows is None:
            return min(first, self.size), min(end, self.size)
        low, high = np.searchsorted(self._rows.values, (first, end))
        return int(low), int(high)

    def extend(self, values: Floats, rows: npt.NDArray[np.int64]) -> None:
        """Add what these rows have."""
        if not len(values):
            return
        if self._rows is None and rows[-1] != self.size + len(rows) - 1:
            self._rows = Growing(np.uint32)
            self._rows.extend(np.arange(self.size, dtype=np.uint32))
        if self._rows is not None:
            self._rows.extend(rows.astype(np.uint32))
        self._values.extend(values)
        self._sum_up()

    def cut(self, row: int) -> None:
        """Forget this row and all that come after it."""
        _, size = self.entries(0, row)
        self._values.cut(size)
        if self._rows is not None:
            self._rows.cut(size)
        for part in (self._sums, self._lows, self._highs, self._counts):
            part.cut(size // BLOCK)

    def _sum_up(self) -> None:
        done, full = self._sums.size, self.size // BLOCK
        if full == done:
            return
        fresh = self.values[done * BLOCK : full * BLOCK].reshape(-1, BLOCK)
        sums, counts, lows, highs = _merged(fresh)
        self._sums.extend(sums)
        self._counts.extend(counts)
        self._lows.extend(lows)
        self._highs.extend(highs)

    def buckets(self, first: int, end: int, most: int) -> Buckets:
        """Entries first to end in at most so many buckets.

        A bucket holds a power of two of entries and begins at a multiple of it, so that those of a chart stay as they
        are while new rows come in.
        """
        if end - first <= most:
            return Buckets(np.arange(first, end), self.values[first:end].copy())
        size = 2
        while (end - 1) // size - first // size + 1 > most:
            size *= 2
        low, high = -(-first // size), end // size  # the whole buckets
        if low > high:  # all of it is inside of one
            parts = [self._part(first, end)]
        else:
            parts = [self._part(first, low * size), self._inner(low, high, size), self._part(high * size, end)]
        sums, counts, lows, highs = (np.concatenate(each) for each in zip(*parts, strict=True))
        starts = np.maximum(np.arange(first // size, (end - 1) // size + 1) * size, first)
        ends = np.minimum((starts // size + 1) * size, end)
        mean = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
        return Buckets((starts + ends - 1) // 2, mean, lows, highs)

    def _part(self, first: int, end: int) -> _Parts:
        if first >= end:
            return np.empty(0), np.empty(0, np.int64), np.empty(0), np.empty(0)
        return _merged(self.values[first:end].reshape(1, -1))

    def _inner(self, low: int, high: int, size: int) -> _Parts:
        if size <= BLOCK:
            return _merged(self.values[low * size : high * size].reshape(-1, size))
        blocks = slice(low * size // BLOCK, high * size // BLOCK)
        sums, counts, lows, highs = (
            part.values[blocks].reshape(-1, size // BLOCK)
            for part in (self._sums, self._counts, self._lows, self._highs)
        )
        return sums.sum(1), counts.sum(1), np.fmin.reduce(lows, 1), np.fmax.reduce(highs, 1)


_Parts = tuple[Floats, npt.NDArray[np.int64], Floats, Floats]


def _merged(values: Floats) -> _Parts:
    """Sum and number of the finite values of each line, the least and the largest; these are NaN if there are none."""
    finite = np.isfinite(values)
    if not finite.all():
        values = np.where(finite, values, np.nan)
    sums = np.where(finite, values, 0.0).sum(1)
    return sums, finite.sum(1), np.fmin.reduce(values, 1), np.fmax.reduce(values, 1)
