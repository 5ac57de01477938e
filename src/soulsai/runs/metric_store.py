"""The database that the metrics of a run are in: its tables, how rows come into it, and how it is opened."""

from __future__ import annotations

import contextlib
import math
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import msgspec

from soulsai.errors import RunError
from soulsai.runs.files import cannot_write

FILE, EXPORT = "metrics.sqlite", "metrics.jsonl"
SIDE_FILES = ("", "-wal", "-shm", "-journal")
"""Endings of the files that a database may consist of."""
VERSION = 2
MOST_METRICS = 512
LONGEST_NAME = 200
BLOCKS = (256, 16)
"""Rows whose sums are kept, so that a chart of a million rows reads some thousand."""
READ_S = 5.0
WRITE_S = 0.2
"""How long to wait for somebody who holds the database; the training tries again with its next row."""
QUERY_S = 60.0
"""No query may take longer: a file of unknown origin may define endless ones."""
BATCH = 2560
NETWORK = ("nfs", "cifs", "smb", "9p", "afs", "ceph", "lustre", "gpfs", "beegfs", "fuse.sshfs", "davfs", "vboxsf")
"""Beginnings of the names of file systems that several machines share: there a log beside the database is not safe."""

MOST_STEPS = 2.0**53
"""Beyond it, whole numbers are no longer exact."""
ABOUT = ("step", "time", "elapsed_s")
"""What a row has beside its metrics."""

Entry = tuple[int, float | None, float | None, Mapping[str, float | None]]
"""A row: step, seconds since 1970, seconds of training, and values; None for what is not known or not finite."""

_decoder = msgspec.json.Decoder(dict[str, float | str | None])

# All in the order of time, so that a row touches few pages. `blocks` has what charts need of so many rows: how many
# have the metric, how many of these are numbers, their sum, the least and the largest. `metrics` has the last of each.
SCHEMA = f"""
CREATE TABLE about (next_row INTEGER NOT NULL);
INSERT INTO about VALUES (0);
CREATE TABLE metrics (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, row INTEGER, value REAL);
CREATE TABLE rows (id INTEGER PRIMARY KEY, step INTEGER NOT NULL, time REAL, elapsed_s REAL);
CREATE TABLE samples (row INTEGER, metric INTEGER, value REAL, PRIMARY KEY (row, metric)) WITHOUT ROWID;
CREATE TABLE blocks (size INTEGER, block INTEGER, metric INTEGER, n INTEGER, numbers INTEGER, total REAL, low REAL,
  high REAL, PRIMARY KEY (size, block, metric)) WITHOUT ROWID;
CREATE VIEW history AS
  SELECT metrics.name, rows.step, rows.time, rows.elapsed_s, samples.value
  FROM samples JOIN metrics ON metrics.id = samples.metric JOIN rows ON rows.id = samples.row;
PRAGMA user_version = {VERSION};
"""
ADD_TO_BLOCK = """INSERT INTO blocks VALUES (?, ?, ?, 1, ?, ?, ?, ?) ON CONFLICT (size, block, metric) DO UPDATE SET
    n = n + 1, numbers = numbers + excluded.numbers, total = total + excluded.total,
    low = min(coalesce(low, excluded.low), coalesce(excluded.low, low)),
    high = max(coalesce(high, excluded.high), coalesce(excluded.high, high))"""
BLOCK_AGAIN = """INSERT INTO blocks
    SELECT :size, row / :size, metric, count(*), count(value), total(value), min(value), max(value)
    FROM samples WHERE row >= :block * :size GROUP BY metric"""
LAST_AGAIN = """UPDATE metrics SET (row, value) = (
    SELECT row, value FROM samples WHERE metric = id AND value IS NOT NULL ORDER BY row DESC LIMIT 1) WHERE row >= ?"""


class Store:
    """Rows into an open database."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._look()

    def _look(self) -> None:
        (kept,), (newest,) = self._db.execute("SELECT next_row FROM about UNION ALL SELECT max(id) + 1 FROM rows")
        self.next_row = max(kept, newest or 0)
        self._ids: dict[str, int] = dict(self._db.execute("SELECT name, id FROM metrics"))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            self._look()
            raise

    def append(self, entries: Sequence[Entry]) -> None:
        """Add rows at the end, all or none."""
        with self._transaction():
            self._add_names(entries)
            first, self.next_row = self.next_row, self.next_row + len(entries)
            rows = [(row, *entry[:3]) for row, entry in enumerate(entries, first)]
            samples = [
                (row, self._ids[name], value)
                for row, entry in enumerate(entries, first)
                for name, value in entry[3].items()
                if name in self._ids
            ]
            sums = (
                (size, row // size, id, value is not None, value or 0.0, value, value)
                for size in BLOCKS
                for row, id, value in samples
            )
            last = [(row, value, id) for row, id, value in samples if value is not None]
            self._db.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", rows)
            self._db.executemany("INSERT INTO samples VALUES (?, ?, ?)", samples)
            self._db.executemany(ADD_TO_BLOCK, sums)
            self._db.executemany("UPDATE metrics SET row = ?, value = ? WHERE id = ?", last)

    def _add_names(self, entries: Sequence[Entry]) -> None:
        for name in {name: None for entry in entries for name in entry[3] if name not in self._ids}:
            if len(self._ids) < MOST_METRICS and len(name) <= LONGEST_NAME:
                done = self._db.execute("INSERT INTO metrics (name) VALUES (?)", (name,))
                self._ids[name] = int(done.lastrowid or 0)

    def cut(self, position: int) -> None:
        """Remove all rows from this position on; their numbers are not used again, so that readers can tell."""
        with self._transaction():
            self._db.execute("DELETE FROM rows WHERE id >= ?", (position,))
            self._db.execute("DELETE FROM samples WHERE row >= ?", (position,))
            for size in BLOCKS:
                place = {"size": size, "block": position // size}
                self._db.execute("DELETE FROM blocks WHERE size = :size AND block >= :block", place)
                self._db.execute(BLOCK_AGAIN, place)
            self._db.execute("DELETE FROM metrics WHERE id NOT IN (SELECT metric FROM blocks)")
            self._db.execute(LAST_AGAIN, (position,))
            self._db.execute("UPDATE about SET next_row = ?", (self.next_row,))
        self._look()


class DamagedError(RunError):
    """A database that cannot be read for what is in it."""


def damaged_error(file: Path, why: str) -> DamagedError:
    return DamagedError(f"{file}: is damaged ({why}): remove it, and it is made again from {EXPORT}")


@contextmanager
def name_database_errors(file: Path) -> Iterator[None]:
    """Errors of the database in one sentence with the way out."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            raise RunError(f"{file}: cannot be written, the disk is full: free some space") from error
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise RunError(f"{file}: is held by another program: close it there") from error
        if code == sqlite3.SQLITE_INTERRUPT:
            raise RunError(f"{file}: took longer than {QUERY_S:.0f} s to read; read {EXPORT} instead") from error
        if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
            raise RunError(f"{file}: cannot be opened ({error}): allow it, or choose a folder with --run") from error
        if code == sqlite3.SQLITE_IOERR:
            raise RunError(f"{file}: the disk has failed ({error}): look after it") from error
        raise damaged_error(file, str(error)) from error


def connect(file: Path, mode: str, timeout_s: float) -> sqlite3.Connection:
    uri = f"{file.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=timeout_s, isolation_level=None, check_same_thread=False)


def open_to_read(file: Path) -> sqlite3.Connection:
    """A connection that changes nothing; in a folder that cannot be written, of the rows in the database itself."""
    if not file.exists():
        return empty()
    db = connect(file, "rw", READ_S)
    try:
        db.execute("PRAGMA trusted_schema = OFF")
        if is_empty(db):
            db.close()
            db = empty()
        db.execute("PRAGMA query_only = ON")
        check(db, file)
    except sqlite3.OperationalError as error:
        db.close()
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise
        db = connect(file, "ro&immutable=1", READ_S)
        check(db, file)
    except BaseException:
        db.close()
        raise
    return db


def empty() -> sqlite3.Connection:
    """A database without rows, in memory."""
    db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    db.executescript(SCHEMA)
    return db


def is_empty(db: sqlite3.Connection) -> bool:
    """Whether it was just made, or whoever made it was killed in that moment."""
    return not db.execute("SELECT EXISTS (SELECT 1 FROM sqlite_master)").fetchone()[0]


def check(db: sqlite3.Connection, file: Path) -> None:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise RunError(f"{file}: is of version {version}, this program knows up to {VERSION}: update it")
    if version < VERSION:
        raise damaged_error(file, f"of the old version {version}")
    db.execute("SELECT * FROM about").fetchone()


def set_journal(db: sqlite3.Connection, file: Path) -> None:
    """A log beside the database, with which readers and the writer never wait for each other, where that works."""
    mode = ""
    if not is_network(file.parent):
        with contextlib.suppress(sqlite3.OperationalError):
            (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        db.execute("PRAGMA journal_mode = DELETE").fetchone()
    db.execute("PRAGMA synchronous = NORMAL")


def is_network(folder: Path) -> bool:
    """Whether a folder is on a drive that other machines may write as well."""
    import psutil  # type: ignore[import-untyped]  # late: it comes with the extra `train`, and reading needs none

    place = str(folder.resolve())
    if place.startswith("\\\\"):
        return True
    drives = [each for each in psutil.disk_partitions(all=True) if Path(place).is_relative_to(each.mountpoint)]
    nearest = max(drives, key=lambda each: len(each.mountpoint), default=None)
    return nearest is not None and (nearest.fstype.lower().startswith(NETWORK) or "remote" in nearest.opts.split(","))


def remove(file: Path) -> None:
    for end in SIDE_FILES:
        try:
            Path(f"{file}{end}").unlink(missing_ok=True)
        except OSError as error:
            raise cannot_write(file, error) from error


def stamp_of(file: Path) -> tuple[int, int, int]:
    try:
        about = file.stat()
    except OSError:
        return 0, 0, 0
    return about.st_ino, about.st_size, about.st_mtime_ns


def import_lines(store: Store, file: Path) -> None:
    """Add the rows of an export; lines that are none are left out."""
    with contextlib.suppress(FileNotFoundError), file.open("rb") as stream:
        batch: list[Entry] = []
        for text in stream:
            if row := row_of(text):
                batch.append(row)
            if len(batch) == BATCH:
                store.append(batch)
                batch = []
        store.append(batch)


def row_of(text: bytes) -> Entry | None:
    """The row of a line; None if it is none."""
    try:
        row = _decoder.decode(text)
        moment = datetime.fromisoformat(str(row.get("time"))).timestamp() if row.get("time") else None
    except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError):
        return None
    step = row.get("step")
    if not isinstance(step, float) or not 0.0 <= step < MOST_STEPS:
        return None
    values = {name: _number(value) for name, value in row.items() if name not in ABOUT}
    return int(step), moment, _number(row.get("elapsed_s")), values


def _number(value: float | str | None) -> float | None:
    return value if isinstance(value, float) and math.isfinite(value) else None
