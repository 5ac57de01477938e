"""A run is one folder: its config, versions, checkpoints, metrics, evaluations, recordings and report."""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import time
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from soulsai.errors import RunError
from soulsai.runs.files import cannot_write, reason, write_atomically, write_files
from soulsai.runs.lock import hold_lock, is_locked
from soulsai.runs.metric_store import EXPORT
from soulsai.runs.metrics import MetricsReader
from soulsai.runs.stamps import file_stamp, utc_stamp
from soulsai.runs.status import DAMAGED, GOING, KILLED, SILENT_S, STALLED, Status, is_damaged, read_status, write_status
from soulsai.runs.versions import git_commit, machine, package_versions
from soulsgym.errors import MisuseError

CONFIG, VERSIONS = "config.toml", "versions.json"
LARGEST_TEXT = 16 << 20
FOLDERS = ("tensorboard", "checkpoints", "replay", "evaluations", "recordings")


class Run:
    """The folder of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.metrics_file = folder / EXPORT
        self.log_file = folder / "log.txt"
        self.status_file = folder / "status.json"
        self.judged_file = folder / "judged.json"
        self.lock_file = folder / "lock"
        self.report_file = folder / "report.html"
        self.tensorboard = folder / "tensorboard"
        self.checkpoints = folder / "checkpoints"
        self.replay = folder / "replay"
        self.evaluations_folder = folder / "evaluations"
        self.recordings = folder / "recordings"
        self.data = folder / "data"
        self.demos = folder / "demos"

    @classmethod
    def create(
        cls,
        folder: Path,
        config_toml: str,
        *,
        preset: str,
        command: Sequence[str],
        files: Mapping[str, str] | None = None,
    ) -> Run:
        """Make the folder, with the config and what it is made with; RunError if something is there already.

        `files` are texts of the user's own files that the config names, by place in the folder `data`.
        """
        _refuse_existing(folder)
        versions = _versions(config_toml, preset, command)
        run = cls(folder)
        try:
            _make_folders(folder)
            write_files(files or {}, run.data)
            write_atomically(folder / VERSIONS, json.dumps(versions, indent=1))
            write_atomically(folder / CONFIG, config_toml)
        except RunError:
            shutil.rmtree(folder, ignore_errors=True)  # Half a run could neither be continued nor begun again.
            raise
        return run

    @classmethod
    def open(cls, folder: Path) -> Run:
        """An existing run; RunError if there is none, or its first files are damaged."""
        if not folder.is_dir():
            raise RunError(f"{folder}: there is no such run{_suggestion(folder)}")
        if not (folder / CONFIG).exists() and (folder / VERSIONS).exists():
            raise RunError(
                f"{folder / CONFIG}: is missing, the rest of the run is there: put back a copy of it, or the config of "
                f"the preset that it began with ({folder / VERSIONS} names it)"
            )
        if not (folder / CONFIG).exists():
            raise RunError(f"{folder}: is not the folder of a run (it has no {CONFIG})")
        run = cls(folder)
        _parse_config(run.config_toml, folder / CONFIG)
        _ = run.versions
        return run

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.resolve().name

    @property
    def config_toml(self) -> str:
        """The text of the resolved config."""
        return _read(self.folder / CONFIG)

    @property
    def versions(self) -> dict[str, Any]:
        """What the run was made with: versions, machine, command line, seed, time."""
        file = self.folder / VERSIONS
        try:
            versions = json.loads(_read(file))
        except ValueError as error:
            raise RunError(f"{file}: is damaged ({error}): restore it from a copy") from error
        if not isinstance(versions, dict):
            raise RunError(f"{file}: is damaged (no table of versions): restore it from a copy")
        return versions

    @property
    def preset(self) -> str:
        """The preset the config began with."""
        return str(self.versions.get("preset", ""))

    def lock(self) -> AbstractContextManager[None]:
        """Hold this while training: only one process may. It is released when the process ends, however it ends."""
        return hold_lock(self.lock_file)

    def is_locked(self) -> bool:
        """Whether a living process trains here."""
        return is_locked(self.lock_file)

    def write_status(self, status: Status) -> None:
        """Tell how far the run is."""
        write_status(self.status_file, status)

    def beat(self) -> None:
        """A sign of life from whoever trains: the loop gives one a few times a second."""
        with suppress(OSError):
            os.utime(self.lock_file)

    def silent_s(self) -> float:
        """Seconds since the last sign of life: a beat, a line of the log, a row of metrics or a status."""
        files = (self.lock_file, self.log_file, self.metrics_file, self.status_file)
        return max(0.0, time.time() - max(map(_modified_s, files)))

    def status(self) -> Status:
        """How far the run is. What the file says is corrected by what is seen of the process.

        "killed" if it says it goes on, or says nothing, while nothing holds its lock; "stalled" if it should be running
        but gives no sign of life; "unknown" if the file is damaged and nothing holds the lock.
        """
        status, live = read_status(self.status_file) or Status("running"), self.is_locked()
        if not live and is_damaged(self.status_file):
            return Status(DAMAGED)
        if not live and status.state in GOING:
            return replace(status, state=KILLED)
        if live and status.state != "paused" and self.silent_s() > SILENT_S:
            return replace(status, state=STALLED)
        return status

    def add_evaluation(self, name: str, json_text: str) -> Path:
        """Keep the result of an evaluation beside all earlier ones."""
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
            raise MisuseError(f"evaluation name {name!r} cannot name a file: use letters, digits, _ and -")
        stem = f"{file_stamp()}-{name}"
        try:
            self.evaluations_folder.mkdir(exist_ok=True)
            file = _reserve(self.evaluations_folder, stem)
        except OSError as error:
            raise cannot_write(self.evaluations_folder / f"{stem}.json", error) from error
        write_atomically(file, json_text)
        return file

    def evaluations(self) -> list[tuple[str, str]]:
        """Name (with its time) and text of each evaluation, oldest first."""
        files = sorted(self.evaluations_folder.glob("[!.]*.json"), key=_age)
        texts = [(file.stem, _read(file)) for file in files]
        return [(name, text) for name, text in texts if text]  # Empty: reserved by a process that was killed then.

    def metrics(self) -> list[dict[str, Any]]:
        """All rows of metrics: step, time, elapsed_s and values by name; a value that is no finite number is a NaN."""
        return list(MetricsReader(self.folder).rows())


def default_folder(preset: str, root: Path = Path("runs")) -> Path:
    """A folder that is not there yet, named after the preset (or config file) and the time: iudex-20261115-231500."""
    stem = f"{Path(preset).stem}-{file_stamp()}"
    folder, number = root / stem, 1
    while folder.exists():
        number += 1
        folder = root / f"{stem}-{number}"
    return folder


def _make_folders(folder: Path) -> None:
    try:
        for name in FOLDERS:
            (folder / name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error


def _refuse_existing(folder: Path) -> None:
    try:
        there = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    except OSError as error:
        raise cannot_write(folder, error) from error
    if there and (folder / CONFIG).is_file():
        raise RunError(f"{folder} exists; continue it with --resume {folder}, or choose another folder")
    if there:
        raise RunError(f"{folder} exists and is not the folder of a run; choose another folder")


def _versions(config_toml: str, preset: str, command: Sequence[str]) -> dict[str, Any]:
    seed = _parse_config(config_toml, Path(CONFIG)).get("run", {}).get("seed")
    about = {"preset": preset, "command": list(command), "seed": seed, "started": utc_stamp(), "commit": git_commit()}
    return about | package_versions() | machine()


def _parse_config(text: str, file: Path) -> dict[str, Any]:
    if not text.strip():
        raise RunError(f"{file}: is damaged (it is empty): restore it from a copy")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RunError(f"{file}: is damaged ({error}): restore it from a copy") from error


def _suggestion(folder: Path) -> str:
    try:
        names = [path.name for path in folder.absolute().parent.iterdir() if (path / CONFIG).exists()]
    except OSError:
        names = []
    near = difflib.get_close_matches(folder.name, names, n=1, cutoff=0.5)
    return f"; did you mean {folder.parent / near[0]}?" if near else "; list runs with `souls runs`"


def _modified_s(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def _age(file: Path) -> tuple[str, int, str]:
    """By which evaluations are sorted: the second in the name, and within it when the file was written."""
    try:
        written = file.stat().st_mtime_ns
    except OSError:
        written = 0
    return file.stem[: len("20261115-231500")], written, file.stem


def _read(file: Path) -> str:
    try:
        with file.open(encoding="utf-8") as opened:
            text = opened.read(LARGEST_TEXT + 1)
    except FileNotFoundError as error:
        raise RunError(f"{file}: is missing: restore it from a copy") from error
    except UnicodeDecodeError as error:
        raise RunError(f"{file}: is damaged (no text): restore it from a copy") from error
    except OSError as error:
        raise RunError(f"{file}: cannot be read: {reason(error)}") from error
    if len(text) > LARGEST_TEXT:
        raise RunError(f"{file}: is damaged (longer than {LARGEST_TEXT >> 20} MB): restore it from a copy")
    return text


def _reserve(folder: Path, stem: str) -> Path:
    """An empty new file: whoever evaluates at the same time gets another."""
    number = 1
    while True:
        file = folder / (f"{stem}.json" if number == 1 else f"{stem}-{number}.json")
        try:
            file.touch(exist_ok=False)
        except FileExistsError:
            number += 1
        else:
            return file
