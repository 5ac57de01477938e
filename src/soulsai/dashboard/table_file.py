"""Rows of a run as a file for spreadsheets, made while it is being sent."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from soulsai.dashboard.rows import Row, decode, seconds_of

BLOCK_BYTES = 1 << 20


def csv_rows(file: Path, names: Sequence[str], axis: str, low: float, high: float) -> Iterator[bytes]:
    """Every row between two places on an axis that has one of the metrics, in parts."""
    yield _text([[axis, *names]])
    place: float | None = None
    for rows in _blocks(file):
        lines = []
        for row in rows:
            place = _place(row, axis, place)
            if place is None or not low <= place <= high:
                continue
            cells = [_cell(row.get(name)) for name in names]
            if any(cells):
                lines.append([row["time"] if axis == "time" else _cell(place), *cells])
        if lines:
            yield _text(lines)


def _place(row: Row, axis: str, before: float | None) -> float | None:
    told = float(seconds_of([row["time"]])[0]) if axis == "time" else row.get(axis)
    return told if isinstance(told, float) and math.isfinite(told) else before


def _cell(value: Any) -> str:
    if not isinstance(value, float) or not math.isfinite(value):
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def _text(lines: Sequence[Sequence[str]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(lines)
    return out.getvalue().encode()


def _blocks(file: Path) -> Iterator[list[Row]]:
    """Rows of the file as it is now: what is written while it is read is not waited for."""
    half = b""
    try:
        with file.open("rb") as stream:
            left = file.stat().st_size
            while left > 0 and (block := stream.read(min(BLOCK_BYTES, left))):
                left -= len(block)
                data = half + block
                end = data.rfind(b"\n") + 1
                half = data[end:][-BLOCK_BYTES:]
                yield decode(data[:end], 0)[0]
    except OSError:
        return
