"""How far a run is: a small file that its trainer rewrites."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from soulsai.runs.files import write_atomically
from soulsai.runs.stamps import utc_stamp
from soulsgym.errors import MisuseError

STATES = ("running", "paused", "stopped", "finished", "failed")
KILLED = "killed"
"""Shown for a run that says it is going on while nothing holds its lock."""
STALLED = "stalled"
"""Shown for a run whose process lives but has given no sign of life for `SILENT_S`."""
DAMAGED = "unknown"
"""Shown for a run whose status file cannot be read while nothing holds its lock."""
GOING = ("running", "paused", STALLED)
"""Those of a run that a process trains."""
SILENT_S = 60.0


@dataclass(frozen=True)
class Status:
    """The state of a run; win rates are None where nothing was measured yet."""

    state: str
    step: int = 0
    steps: int = 0
    win_rate: float | None = None
    win_rate_low: float | None = None
    win_rate_high: float | None = None
    updated: str = ""


def write_status(file: Path, status: Status) -> None:
    """Replace the file, with the time of now."""
    if status.state not in STATES:
        raise MisuseError(f"state {status.state!r} is none of {', '.join(STATES)}")
    content = msgspec.json.encode(replace(status, updated=utc_stamp()))  # what is no finite number becomes null
    write_atomically(file, content, durably=False)  # Every second or so: not worth waiting for the disk.


def read_status(file: Path) -> Status | None:
    """What the file says; None if it is missing or, after a power cut, empty or cut off."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Status)
    except (OSError, msgspec.MsgspecError, ValueError):
        return None


def is_damaged(file: Path) -> bool:
    """Whether the file holds something that is no status. An empty one was cut off by a power cut."""
    try:
        return file.stat().st_size > 0 and read_status(file) is None
    except OSError:
        return False
