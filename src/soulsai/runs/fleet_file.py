"""What a served run remembers of its fleet: where its Redis is, its id there, and how often it was started.

The file holds passwords: only its owner may read it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import msgspec

from soulsai.errors import RunError
from soulsai.runs.files import reason, write_atomically
from soulsai.runs.lock import is_locked

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
    gateway: str = ""  # HOST:PORT of the gateway by which strangers reach it; empty: there is none
    fingerprint: str = ""  # of the gateway's certificate
    passwords: dict[str, str] = field(default_factory=dict)  # of those whose join line is printed at every start


def write_fleet(folder: Path, fleet: FleetFile) -> None:
    """Replace the file in one moment, durably, readable for its owner alone."""
    write_atomically(folder / FILE, json.dumps(asdict(fleet), indent=1), private=True)


def read_fleet(folder: Path) -> FleetFile | None:
    """The fleet of a run; None if it was never served."""
    file = folder / FILE
    try:
        return msgspec.json.decode(file.read_bytes(), type=FleetFile)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunError(f"{file}: cannot be read: {reason(error)}") from error
    except (msgspec.MsgspecError, ValueError) as error:
        way_out = "restore it from a copy, or remove it to invite everyone again"
        raise RunError(f"{file}: is damaged ({error}): {way_out}") from error


def find_served_run(folder: Path | None, root: Path) -> tuple[Path, FleetFile]:
    """The run in `folder`, or that of all under `root` which is served now or was served last, with its fleet."""
    if folder is None:
        folder = _newest(root)
    elif not folder.is_dir():
        raise RunError(f"{folder}: there is no such run; list runs with `souls runs`")
    fleet = read_fleet(folder)
    if fleet is None:
        raise RunError(f"{folder}: was never served to workers; do so with: souls serve --resume {folder}")
    return folder, fleet


def is_served(folder: Path) -> bool:
    """Whether a living process serves the run."""
    return is_locked(folder / LOCK)


def _newest(root: Path) -> Path:
    found = [file.parent for file in root.glob(f"*/{FILE}")] if root.is_dir() else []
    if not found:
        raise RunError(f"{root}: no run here was served to workers; name one, or begin: souls serve")
    return max(found, key=lambda folder: (is_served(folder), (folder / FILE).stat().st_mtime))
