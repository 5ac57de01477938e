"""The metrics of one run for the page: curves as lists, and rows as a file for spreadsheets."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from soulsai.dashboard.verdict import NAMES, verdict_of
from soulsai.errors import RunError
from soulsai.runs.metric_queries import Extent, Floats, Series
from soulsai.runs.metrics import MetricsReader

T = TypeVar("T")
DIGITS = 7
VERDICT_POINTS = 600
LINES = 500
"""Rows of a CSV file per chunk."""


class Curves:
    """The metrics of one run; `is_safe` says whether its files are those of its folder."""

    def __init__(self, folder: Path, is_safe: Callable[[], bool] = lambda: True) -> None:
        self._reader = MetricsReader(folder)
        self._is_safe = is_safe
        self._seen: tuple[tuple[object, ...], Extent] | None = None
        self._judged: tuple[Extent, str, dict[str, float]] | None = None
        self.problem = ""

    def extent(self) -> Extent:
        """How many rows there are and the last of them; empty if the files cannot be read."""
        if not self._is_safe():
            return Extent()
        stamp = self._reader.stamp()
        if self._seen is None or self._seen[0] != stamp:
            self._seen = (stamp, self._try(self._reader.extent, Extent()))
        return self._seen[1]

    def verdict(self) -> str:
        """How the run is going, in words."""
        return self._judge()[0]

    def last_evaluation(self) -> dict[str, float]:
        """The last value of each metric that a verdict is made of."""
        return self._judge()[1]

    def _judge(self) -> tuple[str, dict[str, float]]:
        """Looked up again when there are new rows."""
        extent = self.extent()
        if self._judged is None or self._judged[0] != extent:
            nothing: dict[str, Series] = {}
            found = self._try(lambda: self._reader.series(NAMES, points=VERDICT_POINTS), nothing) if extent.rows else {}
            verdict = verdict_of({name: _points(each) for name, each in found.items()})
            last = {name: value for name, (_, value) in self.latest().items() if name in NAMES} if extent.rows else {}
            self._judged = (extent, verdict, last)
        return self._judged[1:]

    def names(self) -> list[str]:
        """Names of the metrics that occur; empty if they cannot be read."""
        return self._try(self._reader.names, []) if self._is_safe() else []

    def latest(self) -> dict[str, tuple[int, float]]:
        """The last value of each metric, with the number of its row; empty if they cannot be read."""
        return self._try(self._reader.latest, {}) if self._is_safe() else {}

    def _try(self, read: Callable[[], T], nothing: T) -> T:
        try:
            found, self.problem = read(), ""
            return found
        except RunError as error:
            self.problem = str(error)
            return nothing

    def series(self, names: Sequence[str], axis: str, low: float, high: float, points: int) -> dict[str, Any]:
        """Metrics within a range of an axis, in at most `points` points each."""
        if not self._is_safe():
            return {"rows": 0, "series": {name: {"x": [], "y": []} for name in names}}
        found = self._reader.series(names, axis, low, high, points)
        return {"rows": self.extent().rows, "series": {name: plain(each, axis) for name, each in found.items()}}

    def csv(self, names: Sequence[str], axis: str, low: float, high: float) -> Iterator[bytes]:
        """Every row within a range of an axis that has one of the metrics, in chunks."""
        yield _text([[axis, *names]])
        try:
            lines = []
            for row in self._reader.rows([*names, axis], axis, low, high) if names and self._is_safe() else ():
                place, cells = row.get(axis), [_cell(row.get(name)) for name in names]
                if any(cells) and place is not None and (axis == "time" or low <= place <= high):
                    lines.append([place if axis == "time" else _cell(place), *cells])
                if len(lines) == LINES:
                    yield _text(lines)
                    lines = []
            if lines:
                yield _text(lines)
        except RunError:
            return


def _points(series: Series) -> list[tuple[float, float]]:
    finite = np.isfinite(series.y)
    return list(zip(series.x[finite].tolist(), series.y[finite].tolist(), strict=True))


def plain(series: Series, axis: str) -> dict[str, list[Any]]:
    """As lists, with no more digits than a chart can show."""
    x = series.x.astype(np.int64).tolist() if axis == "step" else np.round(series.x, 6).tolist()
    lists = {"x": x, "y": shorten(series.y)}
    if series.low is not None and series.high is not None:
        lists |= {"low": shorten(series.low), "high": shorten(series.high)}
    return lists


def shorten(values: Floats) -> list[Any]:
    """Numbers with as many digits as matter; whole ones stay as they are."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scale = 10.0 ** (DIGITS - 1 - np.floor(np.log10(np.abs(values))))
        rounded = np.rint(values * scale) / scale
    keep = (values == np.rint(values)) | ~np.isfinite(rounded)
    return list(np.where(keep, values, rounded).tolist())


def _cell(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return ""
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)


def _text(lines: Sequence[Sequence[str]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(lines)
    return out.getvalue().encode()
