"""Where a study is kept: a journal in the sweep's folder that processes share, or a database that machines share."""

from __future__ import annotations

import logging
import re
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import optuna
from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from soulsai.errors import ConfigError, RunError
from soulsai.runs.files import cannot_write
from soulsai.runs.lock import hold_lock, is_locked

JOURNAL = "study.journal"
PASSWORD = re.compile(r"(?<=://)[^/@\s]*@")
PATIENCE_S = 60.0
PAUSE_S = 0.05


def open_storage(folder: Path, url: str = "") -> BaseStorage:
    """The journal of a sweep's folder, or the database at a URL."""
    optuna.logging.set_verbosity(logging.ERROR)  # what is worth telling, the sweep tells
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    return _database(url) if url else _journal(folder / JOURNAL)


def _journal(file: Path) -> BaseStorage:
    lock: Any = JournalLock(file)  # It has both methods of Optuna's own locks, whose class is not public.
    try:
        return JournalStorage(JournalFileBackend(str(file), lock_obj=lock))
    except OSError as error:
        raise RunError(f"{file}: cannot be written: {error.strerror}; choose a folder with --dir") from error
    except (ValueError, KeyError, AssertionError) as error:
        raise RunError(f"{file}: is damaged ({error}): restore it from a copy, or give another --name") from error


def _database(url: str) -> BaseStorage:
    name = PASSWORD.sub("***@", url)
    # SQLite lets one process write at a time: the others wait. A connection that a server has closed is noticed.
    settings = {"connect_args": {"timeout": 60}} if url.startswith("sqlite") else {"pool_pre_ping": True}
    try:
        return RDBStorage(url, engine_kwargs=settings)
    except (ArgumentError, ValueError) as error:
        raise ConfigError(
            f"--storage {name}: is not the address of a database, such as postgresql://user@host/db"
        ) from error
    except ImportError as error:
        raise ConfigError(
            f"--storage {name}: needs a driver that is not installed ({error.name}); install it"
        ) from error
    except SQLAlchemyError as error:
        raise RunError(f"--storage {name}: cannot be used: {_cause(error)}") from error


@contextmanager
def storage_in_reach(folder: Path, url: str) -> Iterator[None]:
    """A database that goes away, or a full disk, ends the sweep with a sentence; trainings see that and save."""
    try:
        yield
    except (StorageInternalError, SQLAlchemyError) as error:
        place = PASSWORD.sub("***@", url)
        raise RunError(
            f"--storage {place}: is lost ({_cause(error)}); run the same command again when it is back"
        ) from error
    except OSError as error:
        raise cannot_write(folder, error) from error


def _cause(error: Exception) -> str:
    return PASSWORD.sub("***@", str(error.__cause__ or error).strip().partition("\n")[0])


@contextmanager
def wait_for_lock(file: Path, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Hold a lock as soon as it is free; RunError if it is not for too long."""
    deadline_s = time.monotonic() + patience_s
    with ExitStack() as held:
        while True:
            try:
                held.enter_context(hold_lock(file))
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
        self._held = ExitStack()

    def acquire(self) -> bool:
        """Wait for the lock and take it."""
        self._held.enter_context(wait_for_lock(self._journal.with_name(f"{self._journal.name}.lock")))
        with self._journal.open("r+b") as stream:
            stream.seek(max(0, stream.seek(0, 2) - 1))
            if stream.read(1) not in (b"", b"\n"):
                stream.seek(0)
                stream.truncate(stream.read().rfind(b"\n") + 1)
        return True

    def release(self) -> None:
        """Let it go."""
        self._held.close()
