"""Lines of metrics.jsonl as rows; lines that are none are counted and left out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

Row = dict[str, Any]
"""Numbers by metric, None for those that are not finite; `time` is text."""
LONGEST_NAME = 200
MOST_STEPS = 2.0**53
"""Beyond it, whole numbers are no longer exact."""

_decoder = msgspec.json.Decoder(dict[str, float | str | None])
_BAD = (msgspec.MsgspecError, ValueError, RecursionError)


def decode(lines: bytes, start: int) -> tuple[list[Row], list[int], int]:
    """Rows, the places in the file at which they begin, and how many lines were damaged. Every line has its end."""
    texts = lines.splitlines(keepends=True) if b"\r" not in lines else _split(lines)
    try:
        rows = _decoder.decode_lines(lines)
    except _BAD:
        rows = []
    if len(rows) == len(texts) and all(map(_is_row, rows)):
        return rows, _starts(texts, start), 0
    return _one_by_one(texts, start)


def _split(lines: bytes) -> list[bytes]:
    """At the ends of lines alone, whatever else is in them."""
    return [line + b"\n" for line in lines.split(b"\n")[:-1]]


def _starts(texts: Sequence[bytes], start: int) -> list[int]:
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    starts: list[int] = (start + np.cumsum(lengths) - lengths).tolist()
    return starts


def _one_by_one(texts: Sequence[bytes], start: int) -> tuple[list[Row], list[int], int]:
    rows, starts, damaged = [], [], 0
    for text, place in zip(texts, _starts(texts, start), strict=True):
        row = decode_line(text)
        if row is None:
            damaged += 1
        else:
            rows.append(row)
            starts.append(place)
    return rows, starts, damaged


def decode_line(text: bytes) -> Row | None:
    """The row of a line; None if it is none."""
    try:
        row = _decoder.decode(text)
    except _BAD:
        return None
    return row if _is_row(row) else None


def _is_row(row: Row) -> bool:
    step = row.get("step")
    return isinstance(step, float) and 0.0 <= step < MOST_STEPS and isinstance(row.get("time"), str)


def seconds_of(stamps: Sequence[str]) -> npt.NDArray[np.float64]:
    """Time stamps as seconds since 1970; NaN for what is no time stamp."""
    try:
        moments = np.array([stamp.removesuffix("Z") for stamp in stamps], "datetime64[ms]")
    except ValueError:
        return np.array([_seconds(stamp) for stamp in stamps])
    return np.where(np.isnat(moments), np.nan, moments.astype(np.int64) / 1000.0)


def _seconds(stamp: str) -> float:
    try:
        return datetime.fromisoformat(stamp).astimezone(UTC).timestamp()
    except (ValueError, OverflowError, OSError):
        return float("nan")


def numbers(values: Sequence[Any]) -> npt.NDArray[np.float64]:
    """Values of a metric; what is no number is a NaN."""
    try:
        return np.array(values, np.float64)
    except (TypeError, ValueError):
        return np.array([value if isinstance(value, float) else np.nan for value in values], np.float64)
