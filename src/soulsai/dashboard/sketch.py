"""A first look at a long file: rows from places all over it, and its end."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from soulsai.dashboard.follower import Follower
from soulsai.dashboard.rows import decode_line
from soulsai.dashboard.table import Table

PLACES = 2048
LIMIT_S = 0.4
"""A slow disk gets no longer than this: then it is fewer places."""
REACH = 8 * 1024
"""Bytes read at a place: longer than most rows."""
END_BYTES = 64 * 1024


def sketch(file: Path, limit_s: float = LIMIT_S) -> tuple[Follower, float]:
    """A follower that knows some rows of the file and goes on at its end, and the mean length of a row."""
    lines: dict[int, bytes] = {}
    try:
        with file.open("rb", buffering=0) as stream:
            size = os.fstat(stream.fileno()).st_size
            _read_end(stream, size, lines)
            deadline_s = time.monotonic() + limit_s
            for place in _places(size):
                _read_place(stream, place, lines)
                if time.monotonic() > deadline_s:
                    break
    except OSError:
        return Follower(file), 1.0
    rows, starts, length, end = [], [], 0, 0
    for start in sorted(lines):
        row = decode_line(lines[start])
        if row is not None:
            rows.append(row)
            starts.append(start)
            length += len(lines[start])
        end = start + len(lines[start])
    table = Table()
    table.extend(rows, starts)
    return Follower(file, table, end), length / len(rows) if rows else 1.0


def _places(size: int) -> Iterator[int]:
    """Evenly spaced ones, the coarse ones first: wherever it ends, they are all over the file."""
    yield 0
    parts = 2
    while parts <= PLACES:
        yield from (size * number // parts for number in range(1, parts, 2))
        parts *= 2


def _read_place(stream: IO[bytes], place: int, lines: dict[int, bytes]) -> None:
    """The first whole line at a place."""
    stream.seek(place)
    data = stream.read(REACH)
    begin = data.find(b"\n") + 1 if place else 0
    end = data.find(b"\n", begin) + 1
    if end and (begin or not place):
        lines[place + begin] = data[begin:end]


def _read_end(stream: IO[bytes], size: int, lines: dict[int, bytes]) -> None:
    place = max(0, size - END_BYTES)
    stream.seek(place)
    data = stream.read(size - place)
    begin = data.find(b"\n") + 1 if place else 0
    while end := data.find(b"\n", begin) + 1:
        lines[place + begin] = data[begin:end]
        begin = end
