"""Rows of a store on disk: files that are written once, whole or not at all, and never changed.

A checkpoint writes only the rows added since the last one and lists the files that hold those still alive. Rows are
known by their number, so they return to the slots they had.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from soulsai.errors import RunError
from soulsai.replay.store import ReplayStore
from soulsai.runs.files import cannot_write, sync_folder

ROWS_AT_ONCE = 4096
"""Rows turned into records at a time: a segment may be as large as the store, and memory may not hold both."""
UNFINISHED = ".part"
WAY_OUT = "resume from an earlier checkpoint"


class SegmentInfo(TypedDict):
    """A segment as a checkpoint lists it: file, number of its first row, number of rows, checksum of the file."""

    name: str
    first: int
    rows: int
    sha256: str


class ReplaySegments:
    """The folder of a run's segments."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save(self, store: ReplayStore, since: int) -> list[SegmentInfo]:
        """Write the rows from number `since` on that the store still holds; no segment if there are none."""
        first = max(since, store.added - len(store))
        rows = store.added - first
        if rows <= 0:
            return []
        unfinished = self._folder / f"rows-{first:012d}{UNFINISHED}"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            return [self._write(store, first, rows, unfinished)]
        except OSError as error:
            raise cannot_write(self._folder, error) from error
        finally:
            with contextlib.suppress(OSError):
                unfinished.unlink()

    def _write(self, store: ReplayStore, first: int, rows: int, unfinished: Path) -> SegmentInfo:
        digest = hashlib.sha256()
        with unfinished.open("wb") as file:
            for piece in _pieces(store, first, rows):
                digest.update(piece)
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        # The checksum in the name: a run that went back to an older checkpoint may write other rows of these numbers.
        name = f"rows-{first:012d}-{rows}-{digest.hexdigest()[:12]}.npy"
        unfinished.replace(self._folder / name)
        sync_folder(self._folder)
        return SegmentInfo(name=name, first=first, rows=rows, sha256=digest.hexdigest())

    def load(self, store: ReplayStore, infos: Sequence[SegmentInfo]) -> None:
        """Fill the store with the newest rows of the segments, each in the slot of its number."""
        added = max((info["first"] + info["rows"] for info in infos), default=0)
        live = alive(infos, added, store.capacity)
        self._check_complete(live, max(added - store.capacity, 0), added)
        # All are checked before the first row is written: a damaged one leaves the store as it was.
        opened = [self._open(info, store.schema.record()) for info in live]
        for info, records in zip(live, opened, strict=True):
            _place(store, info["first"], records, dead=max(added - store.capacity - info["first"], 0))
        store.added = added

    def _check_complete(self, live: Sequence[SegmentInfo], first: int, added: int) -> None:
        for info in live:
            if info["first"] > first:
                break
            first = max(first, info["first"] + info["rows"])
        if first < added:
            raise RunError(f"{self._folder}: no segment holds the replay row number {first}; {WAY_OUT}")

    def _open(self, info: SegmentInfo, record: np.dtype[Any]) -> npt.NDArray[Any]:
        path = self._folder / info["name"]
        try:
            _verify(path, info["sha256"])
            records: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        except FileNotFoundError as error:
            raise RunError(f"{path} is missing; {WAY_OUT}") from error
        except (OSError, ValueError) as error:
            raise RunError(f"{path} cannot be read: {error}; {WAY_OUT}") from error
        if records.dtype != record or records.shape != (info["rows"],):
            raise RunError(f"{path} holds rows of another size than this run's; resume with the settings of the run")
        return records

    def prune(self, keep: Collection[str]) -> None:
        """Delete all segments but these, and what a killed run left unfinished."""
        for path in sorted(self._folder.glob("rows-*")):
            if path.suffix in (".npy", UNFINISHED) and path.name not in keep:
                try:
                    path.unlink(missing_ok=True)
                except OSError as error:
                    raise cannot_write(path, error) from error


def alive(infos: Sequence[SegmentInfo], added: int, capacity: int) -> list[SegmentInfo]:
    """The segments with rows that are not yet overwritten, the oldest first."""
    oldest = max(added - capacity, 0)
    return sorted((info for info in infos if info["first"] + info["rows"] > oldest), key=lambda info: info["first"])


def _place(store: ReplayStore, first: int, records: npt.NDArray[Any], *, dead: int) -> None:
    """Write a segment to the store, but for the rows at its beginning that later ones have overwritten."""
    for begin in range(dead, len(records), ROWS_AT_ONCE):
        some = records[begin : begin + ROWS_AT_ONCE]
        store.place(first + begin, {name: some[name] for name in store.columns})


def _pieces(store: ReplayStore, first: int, rows: int) -> Iterator[bytes]:
    """The segment as np.save would write it, a part at a time."""
    record = store.schema.record()
    header = io.BytesIO()
    shape = {"descr": np.lib.format.dtype_to_descr(record), "fortran_order": False, "shape": (rows,)}
    np.lib.format.write_array_header_2_0(header, shape)
    yield header.getvalue()
    for begin in range(0, rows, ROWS_AT_ONCE):
        records = np.empty(min(ROWS_AT_ONCE, rows - begin), record)
        for part, slots in store.spans(first + begin, len(records)):
            for name, column in store.columns.items():
                records[name][part] = column[slots]
        yield records.tobytes()


def _verify(path: Path, sha256: str) -> None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise RunError(f"{path} is damaged: its checksum is {found[:12]}, not {sha256[:12]}; {WAY_OUT}")
