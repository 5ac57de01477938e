"""Time stamps: always UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path


def utc_stamp(moment: datetime | None = None) -> str:
    """For people and programs to read, with milliseconds: 2026-11-15T23:15:00.123Z."""
    moment = moment or datetime.now(UTC)
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def file_stamp(moment: datetime | None = None) -> str:
    """For names of files and folders, sorting by time: 20261115-231500."""
    return (moment or datetime.now(UTC)).astimezone(UTC).strftime("%Y%m%d-%H%M%S")


def change_stamp(path: Path) -> str:
    """When a file or folder was changed last, as `utc_stamp` writes it; empty where that cannot be told."""
    try:
        return utc_stamp(datetime.fromtimestamp(path.stat().st_mtime, UTC))
    except (OSError, OverflowError, ValueError):
        return ""
