"""The text log of a run: what happened, with time stamps."""

from __future__ import annotations

import contextlib
import logging
from datetime import UTC, datetime
from pathlib import Path

from soulsai.runs.files import cannot_write
from soulsai.runs.stamps import utc_stamp

LOGGER = "soulsai"
"""All of this package's loggers are below this one."""


class _Lines(logging.Formatter):
    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802 (logging's name)
        return utc_stamp(datetime.fromtimestamp(record.created, UTC))


class _LogFile(logging.FileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (logging's name)
        """Drop the line: a full disk must not write tracebacks over the live screen."""


def attach(file: Path) -> logging.Handler:
    """Append everything that the package logs from now on to the file."""
    try:
        handler = _LogFile(file, encoding="utf-8")
    except OSError as error:
        raise cannot_write(file, error) from error
    handler.setFormatter(_Lines("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger(LOGGER)
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    return handler


def detach(handler: logging.Handler) -> None:
    """End what `attach` began; lines that found no room on the disk are lost."""
    logging.getLogger(LOGGER).removeHandler(handler)
    with contextlib.suppress(OSError):
        handler.close()
