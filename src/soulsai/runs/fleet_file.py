"""What a served run remembers of its fleet: where its Redis is, its id there, and how often it was started.

The file holds passwords: only its owner may read it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from soulsai.errors import RunError
from soulsai.runs.files import reason
from soulsai.runs.lock import is_locked
from soulsai.runs.private_files import write_private

FILE = "fleet.json"
LOCK = "fleet.lock"
"""Held by whoever serves the run, from before its Redis starts until after it has stopped."""


@dataclass(frozen=True)
class FleetFile:
    """The fleet of a run."""

    run: str  # its id in Redis
    admin: str  # URL with which the learner and its operator reach Redis
    advertised: str  # URL without credentials, as friends reach it
    ca: str = ""  # file with the certificate that the server's is signed with; empty: the system's own
    own: bool = False  # the run starts this Redis itself
    host: str = ""  # on which its own Redis listens
    advertise: str = ""  # what the user has said about how friends reach it
    generation: int = 0  # times it was started
    passwords: dict[str, str] = field(default_factory=dict)  # of those whose join line is printed at every start


def write_fleet(folder: Path, fleet: FleetFile) -> None:
    """Replace the file in one moment, durably, readable for its owner alone."""
    write_private(folder / FILE, json.dumps(asdict(fleet), indent=1).encode())


def read_fleet(folder: Path) -> FleetFile | None:
    """The fleet of a run; None if it was never served."""
    file = folder / FILE
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunError(f"{file}: cannot be read: {reason(error)}") from error
    except ValueError as error:
        raise _damaged(file, str(error)) from error
    return _checked(values, file)


def served_run(folder: Path | None, root: Path) -> tuple[Path, FleetFile]:
    """The run in `folder`, or that of all under `root` which is served now or was served last, with its fleet."""
    if folder is None:
        folder = _newest(root)
    elif not folder.is_dir():
        raise RunError(f"{folder}: there is no such run; see `souls runs` for those there are")
    fleet = read_fleet(folder)
    if fleet is None:
        raise RunError(f"{folder}: was never served to workers; do so with: souls serve --resume --run {folder}")
    return folder, fleet


def is_served(folder: Path) -> bool:
    """Whether a living process serves the run."""
    return is_locked(folder / LOCK)


def _newest(root: Path) -> Path:
    found = [file.parent for file in root.glob(f"*/{FILE}")] if root.is_dir() else []
    if not found:
        raise RunError(f"{root}: no run here was served to workers; give its folder with --run, or begin: souls serve")
    return max(found, key=lambda folder: (is_served(folder), (folder / FILE).stat().st_mtime))


def _checked(values: Any, file: Path) -> FleetFile:
    kinds = {"generation": int, "own": bool, "passwords": dict}
    names = [entry.name for entry in fields(FleetFile)]
    if not isinstance(values, dict) or any(name not in values for name in names):
        raise _damaged(file, "something is missing")
    if any(not isinstance(values[name], kinds.get(name, str)) for name in names):
        raise _damaged(file, "something has another type")
    return FleetFile(**{name: values[name] for name in names})


def _damaged(file: Path, why: str) -> RunError:
    return RunError(f"{file}: is damaged ({why}): restore it from a copy, or remove it to invite everyone again")
