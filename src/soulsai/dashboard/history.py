"""The metrics of the runs that somebody looks at.

A short file is read at once. A long one is answered from rows all over it, while a thread reads the whole.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from soulsai.dashboard.cache import ColumnCache
from soulsai.dashboard.follower import BLOCK_BYTES, Follower
from soulsai.dashboard.sketch import sketch

AT_ONCE_BYTES = 2 << 20
"""What is read while the asker waits: some tens of milliseconds."""
BREATH_S = 0.002
"""After each block of a long reading others get their turn."""
MOST_BYTES = 2 << 30
"""Memory for all histories together; one that alone needs more is answered from a part of its rows."""
FORGET_S = 300.0
"""Histories that nobody has looked at for so long are dropped."""

_reading = threading.Semaphore(1)
"""Long files are read one after the other: all want the same processor."""


@dataclass(frozen=True)
class Answer:
    """What is known of some metrics."""

    rows: int
    complete: bool
    series: dict[str, dict[str, list[Any]]]


class History:
    """The metrics of one run."""

    def __init__(self, file: Path, cache: ColumnCache | None = None, most_bytes: int = MOST_BYTES) -> None:
        self._file = file
        self._cache = cache
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._whole = Follower(file)
        self._sketch: Follower | None = None
        self._row_bytes = 1.0
        self._thread: threading.Thread | None = None
        self._closing = False
        self._too_long = False
        self.looked_s = time.monotonic()

    def series(self, names: Sequence[str], axis: str, low: float, high: float, points: int) -> Answer:
        """Some metrics between two places on an axis, in at most so many points each."""
        with self._lock:
            follower = self._fresh()
            series = {name: follower.table.series(name, axis, low, high, points) for name in names}
            rows, complete = self._rows(), self._sketch is None
        return Answer(rows, complete, {name: each.plain(axis) for name, each in series.items()})

    def names(self) -> list[str]:
        """The metrics that occur."""
        with self._lock:
            return sorted(self._fresh().table.columns)

    def progress(self) -> tuple[int, float, int]:
        """Rows, the share of the file that was read, and damaged lines."""
        with self._lock:
            self._fresh()
            left = self._whole.left() if self._sketch is not None else 0
            read = self._whole.position
            return self._rows(), read / (read + left) if left else 1.0, self._whole.damaged

    @property
    def is_complete(self) -> bool:
        """Whether all rows were read when somebody looked last."""
        return self._sketch is None

    @property
    def rows(self) -> int:
        """Rows when somebody looked last."""
        return self._rows()

    @property
    def nbytes(self) -> int:
        """Memory it takes."""
        return self._whole.table.nbytes + (self._sketch.table.nbytes if self._sketch else 0)

    def close(self) -> None:
        """End the reading."""
        self._closing = True

    def _rows(self) -> int:
        if self._sketch is None:
            return self._whole.table.rows
        return round((self._sketch.position + self._sketch.left()) / self._row_bytes)

    def _fresh(self) -> Follower:
        """Whatever knows the newest rows."""
        self.looked_s = time.monotonic()
        if self._sketch is None and self._whole.has_changed() and not _read_at_once(self._whole):
            self._sketch, self._row_bytes = sketch(self._file)
            self._start_reading()
        if self._sketch is None:
            return self._whole
        if self._sketch.has_changed():
            self._follow_sketch()
        return self._sketch

    def _follow_sketch(self) -> None:
        if self._sketch is None or not _read_at_once(self._sketch):  # Much has changed: look at all of it again.
            self._sketch, self._row_bytes = sketch(self._file)
        if self._thread is None and not self._too_long:
            self._start_reading()

    def _start_reading(self) -> None:
        self._thread = threading.Thread(target=self._read, name=f"history of {self._file}", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with _reading:
            if not self._whole.table.rows and self._cache is not None:
                self._take_cached(self._cache)
            whole = self._read_whole()
        with self._lock:
            self._thread = None
            if whole:
                self._sketch = None
            elif self._too_long:
                self._whole = Follower(self._file)
        if whole and self._cache is not None and not self._closing:
            self._cache.keep(self._file, self._whole.table, self._whole.position, self._lock)

    def _take_cached(self, cache: ColumnCache) -> None:
        found = cache.find(self._file)
        if found is not None:
            with self._lock:
                self._whole = Follower(self._file, *found)

    def _read_whole(self) -> bool:
        """The requests between two blocks see a table that is whole; nobody reads from it before it is complete."""
        while not self._closing and not self._too_long:
            if self._whole.read_on(self._may_go_on):
                if not self._whole.has_changed():
                    return True
                with self._lock:  # The last rows, with nobody between.
                    if _read_at_once(self._whole):
                        return True
        return False

    def _may_go_on(self) -> bool:
        time.sleep(BREATH_S)
        self._too_long = self._whole.table.nbytes > self._most_bytes
        return not self._closing and not self._too_long


def _read_at_once(follower: Follower) -> bool:
    """Read what is new while the asker waits; False if it is too much, as after a cut far back it can be."""
    left = AT_ONCE_BYTES

    def may_go_on() -> bool:
        nonlocal left
        left -= BLOCK_BYTES
        return left > -BLOCK_BYTES

    return follower.left() <= AT_ONCE_BYTES and follower.read_on(may_go_on)


class Histories:
    """The histories of all runs that somebody looks at."""

    def __init__(self, cache: ColumnCache | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._cache = cache
        self._clock = clock
        self._lock = threading.Lock()
        self._open: dict[Path, History] = {}

    def of(self, file: Path) -> History:
        """The history in a file."""
        with self._lock:
            history = self._open.get(file)
            if history is None:
                history = self._open[file] = History(file, self._cache)
            return history

    def known(self, file: Path) -> History | None:
        """The history in a file, if somebody looks at it."""
        return self._open.get(file)

    def tidy(self) -> None:
        """Drop what nobody has looked at for long, and the ones looked at longest ago where memory is short."""
        with self._lock:
            now_s = self._clock()
            by_age = sorted(self._open.items(), key=lambda item: item[1].looked_s, reverse=True)
            total = 0
            for number, (file, history) in enumerate(by_age):
                total += history.nbytes
                if now_s - history.looked_s > FORGET_S or (number and total > MOST_BYTES):
                    self._open.pop(file).close()

    def close(self) -> None:
        """End all reading."""
        with self._lock:
            for history in self._open.values():
                history.close()
            self._open.clear()
