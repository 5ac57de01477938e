"""A lock on a file that the system releases when its holder ends, however it ends."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from soulsai.errors import RunError
from soulsai.runs.files import cannot_write

PATIENCE_S = 0.5
"""Someone who only asks whether the lock is held holds it for a moment himself."""
PAUSE_S = 0.02

if sys.platform == "win32":
    import msvcrt

    FAR_BYTE = 1 << 30  # Windows keeps others from reading what is locked, and the process id is to be read.

    def _try_lock(stream: IO[bytes], *, shared: bool) -> bool:
        stream.seek(FAR_BYTE)
        try:
            msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(stream: IO[bytes], *, shared: bool) -> bool:
        try:
            fcntl.flock(stream, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@contextmanager
def hold_lock(file: Path) -> Iterator[None]:
    """Hold the lock; RunError names the process that has it already."""
    try:
        stream = file.open("a+b", buffering=0)
    except OSError as error:
        raise cannot_write(file, error) from error
    with stream:  # Closing releases the lock. The file stays: removing it would let two others lock two files.
        _lock_soon(stream, file)
        try:
            stream.truncate(0)
            stream.write(str(os.getpid()).encode())
        except OSError as error:
            raise cannot_write(file, error) from error
        yield


def _lock_soon(stream: IO[bytes], file: Path) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not _try_lock(stream, shared=False):
        if time.monotonic() > deadline_s:
            who = _holder(file)
            raise RunError(f"{file.parent}: process {who} is training in this folder: wait for it, or choose another")
        time.sleep(PAUSE_S)


def _holder(file: Path) -> str:
    return file.read_text(errors="replace").strip() or "unknown"


def is_locked(file: Path) -> bool:
    """Whether a living process holds the lock."""
    try:
        with file.open("rb", buffering=0) as stream:
            return not _try_lock(stream, shared=True)
    except OSError:
        return False
