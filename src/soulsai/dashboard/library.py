"""The runs in a folder. Names in requests are looked up among existing entries; no path is built from them."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import threading
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from soulsai.dashboard.curves import Curves
from soulsai.dashboard.verdict import HIGH, LOW, RATE, RETURN
from soulsai.errors import RunError
from soulsai.runs.fleet_file import FILE as FLEET
from soulsai.runs.fleet_file import is_served
from soulsai.runs.metric_store import EXPORT, FILE, SIDE_FILES, stamp_of
from soulsai.runs.requests import FOLDER as REQUESTS
from soulsai.runs.requests import ask, open_requests
from soulsai.runs.run import CONFIG, VERSIONS, Run
from soulsai.runs.stamps import change_stamp
from soulsai.runs.status import DAMAGED, GOING, KILLED, Status
from soulsai.runs.summary import BROKEN
from soulsgym.errors import MisuseError, SoulsError

LOOK_EVERY_S = 0.9
"""Viewers share one look at the folder for this long."""
TRACES = ("status.json", EXPORT, FILE, "checkpoints", VERSIONS)
"""A folder with one of these counts as a run, even without its config."""
LOG_BYTES = 64 * 1024
LOG_LINES = 50
LONGEST_TEXT = 1 << 20
"""Limit for config and versions files."""
RECORDINGS = (".npz", ".json")
NAMED_BY_TIME = re.compile(r"\d{8}-\d{6}")
LIVE = "judged"
"""The name of the newest evaluation while training; the others are named as their files."""
LOST = (KILLED, DAMAGED, BROKEN)
"""States of runs whose last rows may be newer than their status."""
IN_EVENT = (
    "state", "live", "step", "steps", "rows", "win_rate", "win_rate_low", "win_rate_high", "elapsed_s", "problem",
    "row_at", "speed", "verdict", "return",
)  # fmt: skip

Entry = dict[str, Any]


class RunDetails:
    """What is known of one run; files that did not change are not read again."""

    def __init__(self, id: str, folder: Path) -> None:
        self.id = id
        self.run = Run(folder)
        self.metrics = Curves(folder, self._has_own_metrics)
        self.folder = folder
        self._about: tuple[object, dict[str, Any]] = (None, {})
        self._recorded: tuple[int, int] = (-1, 0)

    def _has_own_metrics(self) -> bool:
        """Whether all metrics files are inside the folder."""
        return all(is_inside(self.folder / name, self.folder) for name in (EXPORT, *(FILE + end for end in SIDE_FILES)))

    def entry(self) -> Entry:
        """The run as an entry of the list."""
        about = self._look_at_config()
        extent = self.metrics.extent()
        status = Status(BROKEN) if about["problem"] else self.run.status()
        live = self.run.is_locked()
        # While somebody trains, another state is that of an earlier time.
        state = "running" if live and status.state not in (*GOING, BROKEN) else status.state
        return {
            "id": self.id,
            **about,
            "state": state,
            "live": live,
            # A row may be newer than the status, which is written with checkpoints.
            "step": max(status.step, extent.step) if live or status.state in LOST else status.step,
            "steps": status.steps or about["steps"],
            **self._rates(status),
            "updated": status.updated or change_stamp(self.folder),
            "problem": about["problem"] or self.metrics.problem or self._damage(status),
            "folder": shlex.quote(str(self.folder.absolute())),
            "command": self._command(about, status),
            "served": is_served(self.folder),
            "elapsed_s": extent.elapsed_s,
            "row_at": extent.updated_s,
            "speed": extent.steps_per_s if live else None,
            "verdict": self.metrics.verdict(),
            "fights": self._fights(),
            "rows": extent.rows,
        }

    def _rates(self, status: Status) -> dict[str, float | None]:
        """Of the newest evaluation: of a finished run the final one, which no row has."""
        last = self.metrics.last_evaluation()
        rates = {name: getattr(status, name) for name in ("win_rate", "win_rate_low", "win_rate_high")}
        if status.state != "finished" and RATE in last:
            rates = dict(zip(rates, (last[RATE], last.get(LOW), last.get(HIGH)), strict=True))
        return rates | {"return": last.get(RETURN)}

    def _damage(self, status: Status) -> str:
        if status.state != DAMAGED:
            return ""
        return (
            f"{self.run.status_file}: is damaged, so how the run ended is not known; it is written again when resumed"
        )

    def _command(self, about: dict[str, Any], status: Status) -> str:
        """The command that continues the run; of a finished one, with twice the steps, of a broken one none."""
        if status.state == BROKEN:
            return ""
        verb = "serve" if (self.folder / FLEET).exists() else "train --game" if about["engine"] == "game" else "train"
        longer = f" --set run.steps={2 * status.step}" if status.state == "finished" else ""
        return f"souls {verb} --resume {shlex.quote(str(self.folder.absolute()))}{longer}"

    def _look_at_config(self) -> dict[str, Any]:
        """What config and versions say, or what is wrong with them; cached until they change."""
        stamps = tuple(stamp_of(self.folder / name) for name in (CONFIG, VERSIONS))
        if self._about[0] != stamps:
            preset, config, problem = "", {}, ""
            try:
                preset, config = Run.open(self.folder).preset, tomllib.loads(self.text(CONFIG))
            except (SoulsError, OSError, ValueError) as error:
                problem = str(error)
            self._about = stamps, {"preset": preset, "problem": problem, **_from_config(config)}
        return self._about[1]

    def details(self) -> dict[str, Any]:
        """Everything about the run except its curves."""
        return {
            **self.entry(),
            "config": self._text_or_empty(CONFIG),
            "versions": self._versions(),
            "metrics": [_declaration(name) for name in self.metrics.names()],
            "asked": open_requests(self.run),
            "log": self.log(),
        }

    def ask(self, action: str) -> tuple[str, ...]:
        """Send a request to the run; return the requests that are pending."""
        if not is_inside(self.folder / REQUESTS, self.folder):
            raise RunError(f"{self.folder / REQUESTS}: is not in the folder of the run; remove it")
        ask(self.run, action)
        return open_requests(self.run)

    def _versions(self) -> dict[str, Any]:
        try:
            versions = json.loads(self._text_or_empty(VERSIONS))
        except ValueError:
            return {}
        return versions if isinstance(versions, dict) else {}

    def _text_or_empty(self, name: str) -> str:
        try:
            return self.text(name)
        except SoulsError:
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

    def evaluations(self) -> dict[str, Path]:
        """Evaluation files by name, newest first, including the latest one of training."""
        files = files_in(self.run.evaluations_folder, (".json",), self.folder)
        found = {file.stem: file for file in files if file.stem != LIVE}
        if self.run.judged_file.is_file() and is_inside(self.run.judged_file, self.folder):
            found[LIVE] = self.run.judged_file
        return dict(sorted(found.items(), key=lambda item: stamp_of(item[1])[2], reverse=True))

    def text(self, name: str) -> str:
        """The text of a file of the run; RunError if it is outside the folder or not text."""
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
    """The runs in a folder, or the run that the folder itself is."""

    def __init__(self, root: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.root = root
        self._clock = clock
        self._lock = threading.Lock()
        self._runs: dict[str, RunDetails] = {}
        self._entries: list[Entry] = []
        self._looked_s = -math.inf

    def entries(self) -> list[Entry]:
        """All runs, most recently changed first; cached for a moment."""
        with self._lock:
            if self._clock() - self._looked_s >= LOOK_EVERY_S:
                self._refresh()
                found = [details.entry() for details in self._runs.values()]
                self._entries = sorted(found, key=lambda entry: (entry["updated"], entry["id"]), reverse=True)
                self._looked_s = self._clock()
            return self._entries

    def forget(self) -> None:
        """Drop the cache."""
        with self._lock:
            self._looked_s = -math.inf

    def summary(self) -> dict[str, Any]:
        """All runs, and where they are."""
        return {"root": str(self.root.absolute()), "runs": self.entries()}

    def find(self, id: str) -> RunDetails | None:
        """A run by its id, if it is there."""
        with self._lock:
            details = self._runs.get(id)
            if details is None or not _is_run(details.folder):
                self._refresh()
            return self._runs.get(id)

    def event(self, id: str) -> dict[str, Any]:
        """The state of a run for an event."""
        details = self.find(id)
        if details is None:
            return {"id": id, "gone": True}
        entry = next((entry for entry in self.entries() if entry["id"] == id), None) or details.entry()
        fights, evaluations = details.recordings(), details.evaluations()
        name, file = next(iter(evaluations.items()), (None, None))
        return {
            "id": id,
            **{key: entry[key] for key in IN_EVENT},
            "asked": open_requests(details.run),
            "newest_fight": fights[0].stem if fights else None,
            "newest_evaluation": name,
            "evaluated": change_stamp(file) if file else None,
            "gone": False,
        }

    def _refresh(self) -> None:
        folders = run_folders(self.root)
        kept = self._runs
        self._runs = {
            name: kept[name] if name in kept and kept[name].folder == folder else RunDetails(name, folder)
            for name, folder in folders.items()
        }


def run_folders(root: Path) -> dict[str, Path]:
    """Run folders by id, without links that lead out of the root."""
    if (root / CONFIG).exists():
        return {root.resolve().name: root}
    try:
        found = [path for path in root.iterdir() if is_name(path.name)]
    except OSError:
        return {}
    return {path.name: path for path in sorted(found) if _is_run(path) and is_inside(path, root)}


def is_name(name: str) -> bool:
    """Whether a file name can be part of an address: printable and not hidden."""
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
    """Non-empty files with these suffixes, newest first, without links that lead elsewhere."""
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


def creation_time(file: Path, told: str = "") -> str:
    """When a file was made, as sortable digits: by its content, by its name, or by its modification time.

    A copy of a run has the time of copying on all of its files. Names have whole seconds: those files are the last of
    theirs, after the evaluations of a training that ended in the same one.
    """
    named = NAMED_BY_TIME.match(file.name)
    return re.sub(r"\D", "", told or (f"{named[0]}999" if named else change_stamp(file)))


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


def _declaration(name: str) -> dict[str, str]:
    from soulsai.telemetry.metrics import metric

    try:
        found = metric(name)
    except MisuseError:  # of another version of this program
        return {"name": name, "unit": "", "kind": "gauge", "text": ""}
    return {"name": name, "unit": found.unit, "kind": found.kind, "text": found.text}
