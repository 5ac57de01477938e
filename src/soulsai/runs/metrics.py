"""The metrics of a run: a database in its folder that one process writes and any number of others read."""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from soulsai.errors import RunError
from soulsai.runs import metric_store as store
from soulsai.runs.lock import is_locked
from soulsai.runs.metric_queries import SLICE, Charts, Extent, Series, extent_of, ids_of, rows_between

MOST_WAITING = 1000
"""Rows that wait for somebody to let go of the database."""


class MetricsWriter:
    """Writes the metrics of a run; only one process may at a time. A sink for rows like others."""

    name = "sqlite"

    def __init__(self, folder: Path) -> None:
        self._file = folder / store.FILE
        self._waiting: list[store.Entry] = []
        with store.name_database_errors(self._file):
            self._db = store.connect(self._file, "rwc", store.WRITE_S)
            store.set_journal(self._db, self._file)
            if store.is_empty(self._db):
                self._db.executescript(f"BEGIN; {store.SCHEMA} COMMIT;")
            store.check(self._db, self._file)
            self._store = store.Store(self._db)

    @classmethod
    def new(cls, folder: Path) -> MetricsWriter:
        """Begin with nothing."""
        store.remove(folder / store.FILE)
        return cls(folder)

    @classmethod
    def resume(cls, folder: Path, position: int | None) -> MetricsWriter:
        """Go on as if never stopped: rows from this position on, which came after the checkpoint, are removed.

        Where there is no database of rows that the position counts, or none that can be read, it is made again from
        the export, whose own rows after the checkpoint must be gone by now.
        """
        if position is not None and (folder / store.FILE).exists():
            with contextlib.suppress(store.DamagedError):
                writer = cls(folder)
                try:
                    writer.cut(position)
                except store.DamagedError:
                    writer._db.close()
                    raise
                return writer
        writer = cls.new(folder)
        with store.name_database_errors(writer._file):
            store.import_lines(writer._store, folder / store.EXPORT)
        return writer

    def write(self, step: int, time_s: float, values: Mapping[str, float]) -> None:
        """Write a row at once, or with the next if somebody holds the database; what is not finite becomes NULL."""
        plain = {name: float(value) if math.isfinite(value) else None for name, value in values.items()}
        self._waiting.append((int(step), round(time.time(), 3), round(time_s, 3), plain))
        self._write_waiting(may_wait=len(self._waiting) < MOST_WAITING)

    def _write_waiting(self, *, may_wait: bool) -> None:
        with store.name_database_errors(self._file):
            try:
                self._store.append(self._waiting)
            except sqlite3.OperationalError as error:
                if not may_wait or error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    raise
                return
            self._waiting.clear()

    def cut(self, position: int) -> None:
        """Remove all rows from this position on."""
        with store.name_database_errors(self._file):
            self._store.cut(position)

    def position(self) -> int:
        """The number of the next row."""
        return int(self._store.next_row) + len(self._waiting)

    def close(self) -> None:
        """Close the database as one plain file, which can be copied and read anywhere, unless somebody reads it."""
        try:
            self._write_waiting(may_wait=False)
        finally:
            with contextlib.suppress(sqlite3.OperationalError):
                self._db.execute("PRAGMA journal_mode = DELETE").fetchall()
            self._db.close()


class MetricsReader:
    """Reads the metrics of a run, in whatever state they are; used by any number of threads.

    Every query opens the database again, so that nothing is held of a folder that is removed or written again. Where
    the database is gone it is made again from the export.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file, self._export = folder / store.FILE, folder / store.EXPORT

    def stamp(self) -> tuple[object, ...]:
        """Something that changes when rows do."""
        return tuple(map(store.stamp_of, (self._file, Path(f"{self._file}-wal"))))

    def extent(self) -> Extent:
        """How many rows there are, and where they end."""
        with self._open() as db:
            return extent_of(db)

    def names(self) -> list[str]:
        """The metrics that occur."""
        with self._open() as db:
            return sorted(ids_of(db))

    def latest(self) -> dict[str, tuple[int, float]]:
        """The last finite value of each metric, with the number of its row."""
        with self._open() as db:
            found = db.execute("SELECT name, row, value FROM metrics WHERE value IS NOT NULL")
            return {name: (row, value) for name, row, value in found}

    def since(self, name: str, row: int) -> list[tuple[int, int, float]]:
        """Row, step and value of a metric in all rows from this one on; what is not finite is left out."""
        query = """SELECT row, step, value FROM samples JOIN rows ON id = row
            WHERE row >= ? AND metric = ? AND value IS NOT NULL ORDER BY row"""
        with self._open() as db:
            id = ids_of(db).get(name)
            return [] if id is None else db.execute(query, (row, id)).fetchall()

    def series(
        self,
        names: Sequence[str],
        axis: str = "step",
        low: float = -math.inf,
        high: float = math.inf,
        points: int = 1000,
    ) -> dict[str, Series]:
        """Metrics between two places on an axis, in at most so many points each."""
        with self._open() as db:
            return Charts(db, axis, points).series(names, low, high)

    def rows(
        self, names: Sequence[str] | None = None, axis: str = "step", low: float = -math.inf, high: float = math.inf
    ) -> Iterator[dict[str, Any]]:
        """Rows between two places on an axis: step, time, elapsed_s and their values; NaN for what is not finite."""
        with self._open() as db:
            ids = {id: name for name, id in ids_of(db).items() if names is None or name in names}
            first, last = Charts(db, axis, 0).stretch(low, high)
        for begin in range(first, last + 1, SLICE):
            with self._open() as db:
                yield from rows_between(db, ids, begin, min(begin + SLICE - 1, last))

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        if not self._file.exists():
            self._import()
        with store.name_database_errors(self._file):
            db = store.open_to_read(self._file)
            try:
                until_s = time.monotonic() + store.QUERY_S
                db.set_progress_handler(lambda: time.monotonic() > until_s, 1_000_000)
                yield db
            except (TypeError, ValueError) as error:
                raise store.damaged_error(self._file, str(error)) from error
            finally:
                db.close()

    def _import(self) -> None:
        """Make the database again, unless somebody may be writing it, or the folder cannot be written."""
        if not self._export.exists() or is_locked(self._folder / "lock") or not os.access(self._folder, os.W_OK):
            return
        made = self._file.with_name(f".{store.FILE}.{os.getpid()}-{threading.get_ident()}.tmp")
        with contextlib.suppress(OSError, RunError, sqlite3.Error):
            store.remove(made)
            db = store.connect(made, "rwc", store.READ_S)
            try:
                db.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {store.SCHEMA}")
                store.import_lines(store.Store(db), self._export)
            finally:
                db.close()
            os.link(made, self._file)  # which fails, other than renaming, if there is one by now
        with contextlib.suppress(OSError, RunError):
            store.remove(made)
