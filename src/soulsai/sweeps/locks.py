"""Locks that processes of one sweep wait for, each for a moment only; the system releases those of the dead."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from soulsai.errors import RunError
from soulsai.runs.lock import is_locked, locked

PATIENCE_S = 60.0
PAUSE_S = 0.05


@contextmanager
def waited_for(file: Path, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Hold a lock as soon as it is free; RunError if it is not for too long."""
    deadline_s = time.monotonic() + patience_s
    with ExitStack() as held:
        while True:
            try:
                held.enter_context(locked(file))
                break
            except RunError as error:
                if not is_locked(file) and not file.exists():
                    raise  # nothing that time would heal: the folder cannot be written
                if time.monotonic() > deadline_s:
                    raise RunError(
                        f"{file}: another process has held this lock for {patience_s:.0f} s; end that process, then "
                        "run the same command again"
                    ) from error
                time.sleep(PAUSE_S)
        yield


class JournalLock:
    """What a journal of Optuna is locked with while a process writes to it.

    Optuna's own locks stay behind when their process is killed, and half a line that it had written spoils all that
    follow. This one is released by the system, and whoever takes it next cuts off half a line.
    """

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._file = journal.with_name(f"{journal.name}.lock")
        self._held = ExitStack()

    def acquire(self) -> bool:
        """Wait for the lock and take it."""
        self._held.enter_context(waited_for(self._file))
        _cut_half_line(self._journal)
        return True

    def release(self) -> None:
        """Let it go."""
        self._held.close()


def _cut_half_line(file: Path) -> None:
    with file.open("r+b") as stream:
        end = stream.seek(0, 2)
        if end == 0:
            return
        stream.seek(end - 1)
        if stream.read(1) == b"\n":
            return
        stream.seek(0)
        stream.truncate(stream.read().rfind(b"\n") + 1)
