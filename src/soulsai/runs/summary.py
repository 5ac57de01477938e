"""All runs under a folder, in a line each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from soulsai.runs.run import Run
from soulsai.runs.status import Status
from soulsai.telemetry.stamps import utc_stamp
from soulsgym.errors import SoulsError

BROKEN = "broken"


@dataclass(frozen=True)
class RunSummary:
    """A run in a line; of a broken one only the name, the last change and the problem are known."""

    name: str
    folder: Path
    preset: str
    status: Status
    problem: str = ""

    @property
    def state(self) -> str:
        """running, stopped, finished, failed, killed or broken."""
        return self.status.state


def list_runs(root: Path) -> list[RunSummary]:
    """Every folder under `root`, the one changed last first."""
    if not root.is_dir():
        return []
    folders = [path for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")]
    return sorted(map(_summary, folders), key=lambda run: (run.status.updated, run.name), reverse=True)


def _summary(folder: Path) -> RunSummary:
    try:
        run = Run.open(folder)
        status, preset = run.status(), run.preset
    except (SoulsError, OSError) as error:
        return RunSummary(folder.name, folder, "", Status(BROKEN, updated=_changed(folder)), str(error))
    if not status.updated:
        status = Status(status.state, updated=_changed(folder))
    return RunSummary(folder.name, folder, preset, status)


def _changed(folder: Path) -> str:
    try:
        return utc_stamp(datetime.fromtimestamp(folder.stat().st_mtime, UTC))
    except OSError:
        return ""
