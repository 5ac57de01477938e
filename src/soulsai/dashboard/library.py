"""The runs in a folder. Whatever a request names is looked up among what is there; no path is made of it."""

from __future__ import annotations

import os
import threading
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from soulsai.dashboard.tail import Tail
from soulsai.errors import RunError
from soulsai.runs.fleet_file import is_served
from soulsai.runs.run import CONFIG, VERSIONS, Run
from soulsai.runs.status import Status
from soulsai.runs.summary import BROKEN
from soulsai.telemetry.stamps import utc_stamp
from soulsgym.errors import SoulsError

LOOK_EVERY_S = 0.9
"""What several viewers ask for within this time is looked up once."""
TRACES = ("status.json", "metrics.jsonl", "checkpoints", VERSIONS)
"""A folder with one of these was meant to be a run, even without its config."""
LOG_BYTES = 64 * 1024
LOG_LINES = 50
LONGEST_TEXT = 1 << 20
"""Of a config or a table of versions: longer ones are none."""
RECORDINGS = (".npz", ".json")

Entry = dict[str, Any]


@dataclass(frozen=True)
class About:
    """What the first files of a run tell, or what is wrong with them."""

    preset: str = ""
    problem: str = ""
    world: str = ""
    algorithm: str = ""
    engine: str = ""
    steps: int = 0


class Dossier:
    """What is known of one run; files that did not change are not read again."""

    def __init__(self, id: str, folder: Path) -> None:
        self.id = id
        self.run = Run(folder)
        self.tail = Tail(self.metrics_file)
        self._about: tuple[object, About] | None = None
        self._recorded: tuple[int, int] = (-1, 0)

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self.run.folder

    @property
    def metrics_file(self) -> Path:
        """The file with its metrics."""
        return self.run.metrics_file

    def entry(self) -> Entry:
        """The run in a line."""
        about = self._look_at_config()
        self._look_at_metrics()
        status = Status(BROKEN) if about.problem else self.run.status()
        live = self.run.is_locked()
        return {
            "id": self.id,
            "preset": about.preset,
            "state": status.state,
            "live": live,
            "step": max(status.step, self.tail.step) if live else status.step,  # a row may be newer than the status
            "steps": status.steps or about.steps,
            "win_rate": status.win_rate,
            "win_rate_low": status.win_rate_low,
            "win_rate_high": status.win_rate_high,
            "updated": status.updated or self._changed(),
            "problem": about.problem,
            "world": about.world,
            "algorithm": about.algorithm,
            "engine": about.engine,
            "served": is_served(self.folder),
            "elapsed_s": self.tail.elapsed_s,
            "fights": self._fights(),
            "rows": self.tail.rows,
        }

    def _look_at_metrics(self) -> None:
        if is_inside(self.metrics_file, self.folder):
            self.tail.look()

    def _look_at_config(self) -> About:
        """Opening a run reads and checks its files; while they are the same, the outcome is."""
        stamps = tuple(_stamp(self.folder / name) for name in (CONFIG, VERSIONS))
        if self._about is None or self._about[0] != stamps:
            self._about = stamps, self._opened()
        return self._about[1]

    def _opened(self) -> About:
        try:
            run = Run.open(self.folder)
            return About(run.preset, "", **_from_config(tomllib.loads(self.text(CONFIG))))
        except (SoulsError, OSError, ValueError) as error:
            return About(problem=str(error))

    def _changed(self) -> str:
        try:
            return utc_stamp(datetime.fromtimestamp(self.folder.stat().st_mtime, UTC))
        except (OSError, OverflowError, ValueError):
            return ""

    def _fights(self) -> int:
        """Files in the folder of recordings; counted again when something was added or removed."""
        try:
            changed = self.run.recordings.stat().st_mtime_ns
        except OSError:
            return 0
        if changed != self._recorded[0]:
            self._recorded = changed, len(self.recordings())
        return self._recorded[1]

    def recordings(self) -> list[Path]:
        """Recordings of fights, the newest first."""
        return files_in(self.run.recordings, RECORDINGS, self.folder)

    def evaluations(self) -> list[Path]:
        """Files of evaluations, the newest first."""
        return files_in(self.run.evaluations_folder, (".json",), self.folder)

    def text(self, name: str) -> str:
        """The text of one of the run's own files; RunError if it leads elsewhere or is no text."""
        file = self.folder / name
        if not is_inside(file, self.folder):
            raise RunError(f"{file}: is not in the folder of the run; put the file itself there")
        try:
            with file.open("rb") as stream:
                return stream.read(LONGEST_TEXT).decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RunError(f"{file}: cannot be read; restore it from a copy") from error

    def log(self) -> list[str]:
        """The last lines of the log."""
        if not is_inside(self.run.log_file, self.folder):
            return []
        try:
            with self.run.log_file.open("rb") as stream:
                size = stream.seek(0, os.SEEK_END)
                stream.seek(max(0, size - LOG_BYTES))
                lines = stream.read(LOG_BYTES).decode("utf-8", "replace").splitlines()
        except OSError:
            return []
        return lines[1 if size > LOG_BYTES else 0 :][-LOG_LINES:]


class Library:
    """The runs under a folder, or the one run that the folder is."""

    def __init__(self, root: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.root = root
        self._clock = clock
        self._lock = threading.Lock()
        self._dossiers: dict[str, Dossier] = {}
        self._entries: list[Entry] = []
        self._looked_s = -LOOK_EVERY_S

    def entries(self) -> list[Entry]:
        """All runs, the one changed last first; what was looked up a moment ago is not looked up again."""
        with self._lock:
            if self._clock() - self._looked_s >= LOOK_EVERY_S:
                self._refresh()
                found = [dossier.entry() for dossier in self._dossiers.values()]
                self._entries = sorted(found, key=lambda entry: (entry["updated"], entry["id"]), reverse=True)
                self._looked_s = self._clock()
            return self._entries

    def find(self, id: str) -> Dossier | None:
        """A run by its id, if it is there."""
        with self._lock:
            dossier = self._dossiers.get(id)
            if dossier is None or not _is_run(dossier.folder):
                self._refresh()
            return self._dossiers.get(id)

    def known(self, id: str) -> Dossier | None:
        """A run that was there when all were listed last."""
        return self._dossiers.get(id)

    def _refresh(self) -> None:
        folders = run_folders(self.root)
        kept = self._dossiers
        self._dossiers = {
            name: kept[name] if name in kept and kept[name].folder == folder else Dossier(name, folder)
            for name, folder in folders.items()
        }


def run_folders(root: Path) -> dict[str, Path]:
    """The folders of runs by their ids; links that lead out of the root are none."""
    if (root / CONFIG).exists():
        return {root.resolve().name: root}
    try:
        found = [path for path in root.iterdir() if is_name(path.name)]
    except OSError:
        return {}
    return {path.name: path for path in sorted(found) if _is_run(path) and is_inside(path, root)}


def is_name(name: str) -> bool:
    """Whether it can be named in an address: it is a text, and not hidden."""
    return not name.startswith(".") and name.isprintable()


def _is_run(folder: Path) -> bool:
    try:
        return (folder / CONFIG).exists() or any((folder / name).exists() for name in TRACES)
    except OSError:
        return False


def is_inside(path: Path, folder: Path) -> bool:
    """Whether a path, links followed, is below a folder."""
    if path.parent == folder and not os.path.islink(path):
        return True  # as nearly always
    try:
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
    except (OSError, ValueError):
        return False


def files_in(folder: Path, suffixes: tuple[str, ...], inside: Path) -> list[Path]:
    """Files of some kinds, the newest first, without those that lead elsewhere or are being written."""
    if not is_inside(folder, inside):
        return []
    found = []
    try:
        with os.scandir(folder) as listing:
            for each in listing:
                if not is_name(each.name) or not each.name.endswith(suffixes) or not each.is_file():
                    continue
                about = each.stat()
                if about.st_size and (not each.is_symlink() or is_inside(Path(each.path), inside)):
                    found.append((about.st_mtime_ns, each.name, Path(each.path)))
    except OSError:
        return []
    return [path for _, _, path in sorted(found, reverse=True)]


def _stamp(file: Path) -> tuple[int, int, int]:
    try:
        about = file.stat()
    except OSError:
        return 0, 0, 0
    return about.st_ino, about.st_size, about.st_mtime_ns


def _from_config(config: dict[str, Any]) -> dict[str, Any]:
    world, fight, run = config.get("world"), config.get("fight"), config.get("run")
    engine = fight.get("engine") if isinstance(fight, dict) and world == "fight" else ""
    steps = run.get("steps") if isinstance(run, dict) else 0
    return {
        "world": str(world or ""),
        "algorithm": str(config.get("algorithm") or ""),
        "engine": str(engine or ""),
        "steps": steps if isinstance(steps, int) else 0,
    }
