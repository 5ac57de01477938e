"""Where a study is kept: a journal in the sweep's folder that processes share, or a database that machines share."""

from __future__ import annotations

import logging
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from soulsai.errors import ConfigError, RunError
from soulsai.sweeps.locks import JournalLock
from soulsgym.packages import require

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

JOURNAL = "study.journal"
PASSWORD = re.compile(r"(?<=://)[^/@\s]*@")


def quiet_optuna() -> None:
    """Keep Optuna from printing: what is worth telling, the sweep tells."""
    import optuna

    optuna.logging.set_verbosity(logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)


def open_storage(folder: Path, url: str = "") -> BaseStorage:
    """The journal of a sweep's folder, or the database at a URL."""
    require("optuna")
    quiet_optuna()
    return _database(url) if url else _journal(folder / JOURNAL)


def _journal(file: Path) -> BaseStorage:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    lock: Any = JournalLock(file)  # It has both methods of Optuna's own locks, whose class is not public.
    try:
        return JournalStorage(JournalFileBackend(str(file), lock_obj=lock))
    except OSError as error:
        raise RunError(f"{file}: cannot be written: {error.strerror}; choose a folder with --dir") from error
    except (ValueError, KeyError, AssertionError) as error:
        raise RunError(f"{file}: is damaged ({error}): restore it from a copy, or give another --name") from error


def _database(url: str) -> BaseStorage:
    from optuna.storages import RDBStorage
    from sqlalchemy.exc import ArgumentError, SQLAlchemyError

    name = PASSWORD.sub("***@", url)
    try:
        return RDBStorage(url, engine_kwargs=_engine_settings(url))
    except (ArgumentError, ValueError) as error:
        raise ConfigError(
            f"--storage {name}: is no address of a database, such as postgresql://user@host/db"
        ) from error
    except ImportError as error:
        raise ConfigError(
            f"--storage {name}: needs a driver that is not installed ({error.name}); install it"
        ) from error
    except SQLAlchemyError as error:
        why = str(error.__cause__ or error).strip().partition("\n")[0]
        raise RunError(f"--storage {name}: cannot be used: {PASSWORD.sub('***@', why)}") from error


def _engine_settings(url: str) -> dict[str, object]:
    # SQLite lets one process write at a time: the others wait. A connection that a server has closed is noticed.
    return {"connect_args": {"timeout": 60}} if url.startswith("sqlite") else {"pool_pre_ping": True}
