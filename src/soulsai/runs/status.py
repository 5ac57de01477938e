"""How far a run is: a small file that its trainer rewrites."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from soulsai.runs.files import write_atomically
from soulsai.telemetry.stamps import utc_stamp
from soulsgym.errors import MisuseError

STATES = ("running", "paused", "stopped", "finished", "failed")
GOING = ("running", "paused")
"""Those of a run that a process trains."""
KILLED = "killed"
"""Shown for a run that says it is going on while nothing holds its lock."""


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
    values = {name: _plain(value) for name, value in asdict(status).items()} | {"updated": utc_stamp()}
    write_atomically(file, json.dumps(values), durably=False)  # Every second or so: not worth waiting for the disk.


def _plain(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_status(file: Path) -> Status | None:
    """What the file says; None if it is missing or, after a power cut, empty or cut off."""
    try:
        values = json.loads(file.read_text())
        return Status(**{field.name: values[field.name] for field in fields(Status)})
    except (OSError, ValueError, KeyError, TypeError):
        return None
