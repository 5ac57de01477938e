"""The rows of a run in memory: where each is along the axes of a chart, and the columns of its metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsai.dashboard.columns import Column, Floats, Growing
from soulsai.dashboard.rows import LONGEST_NAME, Row, numbers, seconds_of

AXES = ("step", "game_hours", "elapsed_s", "time")
OWN = ("step", "elapsed_s", "time")
"""Axes that are no metrics."""
MOST_COLUMNS = 512
"""A damaged file may hold any number of names."""
DIGITS = 7


@dataclass(frozen=True)
class Series:
    """What a chart draws of one metric; without low and high nothing was merged."""

    x: Floats
    y: Floats
    low: Floats | None = None
    high: Floats | None = None

    def plain(self, axis: str) -> dict[str, list[Any]]:
        """As lists, with no more digits than a chart can show."""
        x = self.x.astype(np.int64).tolist() if axis == "step" else np.round(self.x, 6).tolist()
        lists = {"x": x, "y": shortened(self.y)}
        if self.low is not None and self.high is not None:
            lists |= {"low": shortened(self.low), "high": shortened(self.high)}
        return lists


NOTHING = Series(np.empty(0), np.empty(0))


class Table:
    """Rows in the order of the file."""

    def __init__(self) -> None:
        self.starts = Growing(np.int64)  # where each row begins in the file
        self.columns: dict[str, Column] = {}
        self._axes = {axis: Growing(np.float64) for axis in AXES}
        self._rising = dict.fromkeys(AXES, True)
        self.cuts = 0  # times that rows were cut off

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.starts.size

    @property
    def nbytes(self) -> int:
        """Memory it takes."""
        columns = sum(column.nbytes for column in tuple(self.columns.values()))
        return self.starts.nbytes + sum(grown.nbytes for grown in self._axes.values()) + columns

    def last(self) -> tuple[float, float]:
        """Step and time of the last row, by which it is known again."""
        return self.mark(self.rows - 1)

    def mark(self, row: int) -> tuple[float, float]:
        """Step and time of a row."""
        return float(self._axes["step"].values[row]), float(self._axes["time"].values[row])

    def extend(self, rows: Sequence[Row], starts: Sequence[int]) -> None:
        """Add rows at the end."""
        if not rows:
            return
        first = self.rows
        self._extend_axes(rows)
        self.starts.extend(np.array(starts, np.int64))
        every = np.arange(first, first + len(rows))
        for name in set[str]().union(*rows).difference(OWN):
            column = self._column(name)
            if column is None:
                continue
            try:
                column.extend(numbers([row[name] for row in rows]), every)
            except KeyError:
                there = [number for number, row in enumerate(rows) if name in row]
                column.extend(numbers([rows[number][name] for number in there]), every[there])

    def _column(self, name: str) -> Column | None:
        column = self.columns.get(name)
        if column is None and len(self.columns) < MOST_COLUMNS and len(name) <= LONGEST_NAME:
            column = self.columns[name] = Column()
        return column

    def _extend_axes(self, rows: Sequence[Row]) -> None:
        for axis, grown in self._axes.items():
            values = (
                seconds_of([row["time"] for row in rows])
                if axis == "time"
                else numbers([row.get(axis) for row in rows])
            )
            before = grown.values[-1] if grown.size else 0.0
            values = _filled(values, float(before))
            if values[0] < before or (np.diff(values) < 0.0).any():
                self._rising[axis] = False
            grown.extend(values)

    def cut(self, rows: int) -> None:
        """Keep the first rows."""
        self.cuts += 1
        self.starts.cut(rows)
        for grown in self._axes.values():
            grown.cut(rows)
        for name in tuple(self.columns):
            self.columns[name].cut(rows)
            if not self.columns[name].size:
                del self.columns[name]

    def parts(self) -> tuple[dict[str, Any], list[npt.NDArray[Any]]]:
        """A header and arrays from which `from_parts` makes it again."""
        columns = [(name, *column.parts()) for name, column in self.columns.items()]
        header = {
            "rows": self.rows,
            "rising": self._rising,
            "columns": [(name, values.size, rows is not None) for name, values, rows in columns],
        }
        arrays = [self.starts.values, *(grown.values for grown in self._axes.values())]
        for _, values, rows in columns:
            arrays += [values] if rows is None else [values, rows]
        return header, arrays

    @staticmethod
    def from_parts(header: Any, take: Callable[[str, int], npt.NDArray[Any]]) -> Table:
        """A table of a header and arrays, which `take` gives by kind and length, one after the other."""
        table, rows = Table(), int(header["rows"])
        table.starts.extend(take("<i8", rows))
        for axis, grown in table._axes.items():
            grown.extend(take("<f8", rows))
            table._rising[axis] = bool(header["rising"][axis])
        for name, size, is_sparse in header["columns"][:MOST_COLUMNS]:
            values = take("<f8", int(size))
            numbers = take("<u4", int(size)).astype(np.int64) if is_sparse else np.arange(int(size))
            table.columns[str(name)] = column = Column()
            column.extend(values, numbers)
        return table

    def has_axis(self, axis: str) -> bool:
        """Whether rows can be told apart along it."""
        return axis in OWN or axis in self.columns

    def series(self, name: str, axis: str, low: float, high: float, points: int) -> Series:
        """A metric between two places on an axis, in at most so many points."""
        column = self.columns.get(name)
        if column is None or not self.has_axis(axis):
            return NOTHING
        buckets = column.buckets(*column.entries(*self._stretch(axis, low, high)), points)
        x = self._axes[axis].values[column.rows(buckets.middle)]
        return Series(x, buckets.mean, buckets.low, buckets.high)

    def _stretch(self, axis: str, low: float, high: float) -> tuple[int, int]:
        """The first row and the end of those between two places."""
        places = self._axes[axis].values
        if self._rising[axis]:
            return int(np.searchsorted(places, low, "left")), int(np.searchsorted(places, high, "right"))
        inside = np.flatnonzero((places >= low) & (places <= high))
        return (int(inside[0]), int(inside[-1]) + 1) if len(inside) else (0, 0)


def _filled(values: Floats, before: float) -> Floats:
    """Values that are not known are as those before."""
    known = np.isfinite(values)
    if known.all():
        return values
    number = np.where(known, np.arange(len(values)), -1)
    number = np.maximum.accumulate(number)
    filled: Floats = np.where(number >= 0, values[number], before)
    return filled


def shortened(values: Floats) -> list[Any]:
    """Numbers with as many digits as matter; whole ones stay as they are."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scale = 10.0 ** (DIGITS - 1 - np.floor(np.log10(np.abs(values))))
        rounded = np.rint(values * scale) / scale
    keep: npt.NDArray[np.bool_] = (values == np.rint(values)) | ~np.isfinite(rounded)
    return list(np.where(keep, values, rounded).tolist())
