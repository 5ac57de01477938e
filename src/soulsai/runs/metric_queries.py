"""What is asked of the metrics of a run: how far they are, rows, and the curves of charts."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsai.runs.metric_store import BLOCKS
from soulsai.runs.stamps import utc_stamp

AXES = ("step", "game_hours", "elapsed_s", "time")
GAME_HOURS = "game_hours"
"""The axis that is a metric."""
SPEED_S = 60.0
SLICE = 2000
"""Rows that are read at a time."""

_RAW = """SELECT samples.metric, {x} AS x, samples.value FROM blocks CROSS JOIN samples
    ON samples.row BETWEEN block * {size} AND block * {size} + {size} - 1 AND samples.metric = blocks.metric
    JOIN rows ON rows.id = samples.row
    WHERE size = {size} AND blocks.metric IN ({ids}) AND block BETWEEN :first / {size} AND :last / {size}
    AND samples.row BETWEEN :first AND :last AND x IS NOT NULL ORDER BY samples.metric, samples.row"""
"""By way of the blocks that have a metric: most rows do not have one that is rare."""
_SUMS = """SELECT metric, at / :bucket AS bucket, sum(n), sum(numbers), total(total), min(low), max(high) FROM (
    SELECT metric, block * {size} AS at, n, numbers, total, low, high FROM blocks
    WHERE size = {size} AND block >= :whole / {size} AND block < :after / {size}
    UNION ALL SELECT metric, row, 1, value IS NOT NULL, value, value, value FROM samples
    WHERE row BETWEEN :first AND :whole - 1
    UNION ALL SELECT metric, row, 1, value IS NOT NULL, value, value, value FROM samples
    WHERE row BETWEEN :after AND :last)
    WHERE metric IN ({ids}) GROUP BY metric, bucket ORDER BY metric, bucket"""
"""Sums of the single rows before and after whole blocks, and of those."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Series:
    """What a chart draws of one metric; without low and high nothing was merged."""

    x: Floats
    y: Floats
    low: Floats | None = None
    high: Floats | None = None


@dataclass(frozen=True)
class Extent:
    """How many rows there are, and the last of them; `updated_s` is in seconds since 1970."""

    rows: int = 0
    step: int = 0
    updated_s: float | None = None
    elapsed_s: float | None = None
    steps_per_s: float | None = None
    """Over the last `SPEED_S` of training."""


def ids_of(db: sqlite3.Connection) -> dict[str, int]:
    return {str(name): int(id) for name, id in db.execute("SELECT name, id FROM metrics")}


def id_list(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids))


def extent_of(db: sqlite3.Connection) -> Extent:
    last = db.execute("SELECT step, time, elapsed_s FROM rows ORDER BY id DESC LIMIT 1").fetchone()
    (rows,) = db.execute("SELECT count(*) FROM rows").fetchone()
    return Extent(int(rows), int(last[0]), last[1], last[2], _speed(db, last[0], last[2])) if last else Extent()


def _speed(db: sqlite3.Connection, step: int, elapsed_s: float | None) -> float | None:
    if elapsed_s is None:
        return None
    query = "SELECT step, elapsed_s FROM rows WHERE elapsed_s <= ? ORDER BY id DESC LIMIT 1"
    before = db.execute(query, (elapsed_s - SPEED_S,)).fetchone() or (0, 0.0)
    passed_s = elapsed_s - before[1]
    return (step - before[0]) / passed_s if passed_s > 0.0 else None


def rows_between(db: sqlite3.Connection, ids: Mapping[int, str], first: int, last: int) -> Iterator[dict[str, Any]]:
    """The rows of a stretch, each as it is in the export."""
    place = {"first": first, "last": last}
    rows: dict[int, dict[str, Any]] = {}
    for row, step, time_s, elapsed_s in db.execute("SELECT * FROM rows WHERE id BETWEEN :first AND :last", place):
        rows[row] = {"step": step, "time": _text(time_s), "elapsed_s": elapsed_s}
    query = f"SELECT metric, row, value FROM samples WHERE row BETWEEN :first AND :last AND metric IN ({id_list(ids)})"
    for metric, row, value in db.execute(query, place):
        if row in rows:
            rows[row][ids[metric]] = math.nan if value is None else value
    yield from rows.values()


def _text(time_s: float | None) -> str | None:
    return None if time_s is None else utc_stamp(datetime.fromtimestamp(time_s, UTC))


class Charts:
    """The curves of one answer, along one axis."""

    def __init__(self, db: sqlite3.Connection, axis: str, points: int) -> None:
        self._db, self._axis, self._points = db, axis, points
        self._ids = ids_of(db)
        self._x = axis
        if axis == GAME_HOURS:
            id = self._ids.get(GAME_HOURS, -1)
            self._x = f"(SELECT value FROM samples WHERE metric = {id} AND row = rows.id)"

    def stretch(self, low: float, high: float) -> tuple[int, int]:
        """The first and the last row between two places on the axis."""
        query, places = "SELECT min(id), max(id) FROM rows", {}
        if low > -math.inf or high < math.inf:
            query, places = f"{query} WHERE {self._x} BETWEEN :low AND :high", {"low": low, "high": high}
        first, last = self._db.execute(query, places).fetchone()
        return (0, -1) if first is None else (first, last)

    def series(self, names: Sequence[str], low: float, high: float) -> dict[str, Series]:
        """Some metrics between two places; those with few values have all of them, wherever these are."""
        nothing = Series(np.empty(0), np.empty(0))
        ids = {self._ids[name]: name for name in names if name in self._ids}
        first, last = self.stretch(low, high)
        merged = self._buckets(ids, first, last) if last - first >= self._points else {}
        found = self._whole([id for id in ids if id not in merged], first, last) | merged
        return dict.fromkeys(names, nothing) | {ids[id]: each for id, each in found.items()}

    def _whole(self, ids: Sequence[int], first: int, last: int) -> dict[int, Series]:
        query = _RAW.format(x=self._x, ids=id_list(ids), size=BLOCKS[-1])
        found = _table(self._db.execute(query, {"first": first, "last": last}).fetchall(), 3)
        return {id: Series(lines[:, 1], lines[:, 2]) for id, lines in _split_by_metric(found)}

    def _buckets(self, ids: Iterable[int], first: int, last: int) -> dict[int, Series]:
        """In buckets of a power of two of rows, which stay as they are while new rows come in."""
        bucket = 2
        while last // bucket - first // bucket + 1 > self._points:
            bucket *= 2
        buckets = range(first // bucket, last // bucket + 1)
        size = next((size for size in BLOCKS if size <= bucket), bucket)
        whole, after = -(-first // size) * size, (last + 1) // size * size
        if size not in BLOCKS or whole >= after:
            whole = after = first
        places = {"first": first, "last": last, "bucket": bucket, "whole": whole, "after": after}
        sums = _table(self._db.execute(_SUMS.format(ids=id_list(ids), size=size), places).fetchall(), 7)
        middles, found = self._middles(buckets, bucket, first, last), {}
        for id, lines in _split_by_metric(sums):
            if lines[:, 2].sum() > self._points:
                x = middles[lines[:, 1].astype(np.int64) - buckets.start]
                with np.errstate(invalid="ignore"):
                    curve = np.stack([x, lines[:, 4] / lines[:, 3], lines[:, 5], lines[:, 6]])[:, ~np.isnan(x)]
                found[id] = Series(*curve)
        return found

    def _middles(self, buckets: range, bucket: int, first: int, last: int) -> Floats:
        """Where the row in the middle of each bucket is on the axis."""
        middles = [(max(each * bucket, first) + min((each + 1) * bucket - 1, last)) // 2 for each in buckets]
        query = f"""SELECT {self._x} FROM json_each(?) AS wanted
            JOIN rows ON rows.id = (SELECT max(id) FROM rows WHERE id <= wanted.value) ORDER BY wanted.key"""
        return _table(self._db.execute(query, (json.dumps(middles),)).fetchall(), 1)[:, 0]


def _table(lines: Sequence[tuple[Any, ...]], width: int) -> Floats:
    return np.array(lines, np.float64).reshape(-1, width)


def _split_by_metric(table: Floats) -> Iterator[tuple[int, Floats]]:
    """The lines of each metric."""
    if len(table):
        for lines in np.split(table, np.flatnonzero(np.diff(table[:, 0])) + 1):
            yield int(lines[0, 0]), lines
