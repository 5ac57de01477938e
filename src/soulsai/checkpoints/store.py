"""Checkpoints in a folder: each appears in one moment, and a damaged one is passed over with a warning."""

from __future__ import annotations

import json
import logging
import os
import platform
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy.typing as npt
import psutil  # type: ignore[import-untyped]
import torch

from soulsai.checkpoints.manifest import MANIFEST, Damage, manifest_text, read_checked, read_manifest
from soulsai.checkpoints.part import Values, part_from_bytes, part_to_bytes
from soulsai.errors import RunError
from soulsai.runs.files import cannot_write, sync_folder, write_durably
from soulsgym.errors import MisuseError

STATE = "state.json"
SUFFIX = ".safetensors"
DIGITS = 12
NUMBERED = re.compile(rf"\d{{{DIGITS}}}")
PART_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
TRIES = 5
"""Times a reader looks again when the checkpoints it saw were pruned by the trainer meanwhile."""

_T = TypeVar("_T")
Warn = Callable[[str], None]
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was read and found intact."""

    number: int
    path: Path
    state: dict[str, Any]
    parts: dict[str, dict[str, torch.Tensor]]

    def arrays(self, part: str) -> dict[str, npt.NDArray[Any]]:
        """A part as NumPy arrays of their own memory."""
        return {name: tensor.numpy().copy() for name, tensor in self.parts[part].items()}


class CheckpointStore:
    """The checkpoints of a run, by number (of steps, say); the newest few are kept."""

    def __init__(self, folder: Path, keep: int = 2) -> None:
        self._folder = folder
        self._keep = keep

    def numbers(self) -> list[int]:
        """The checkpoints there are, intact or not, oldest first."""
        if not self._folder.is_dir():
            return []
        return sorted(int(path.name) for path in self._folder.iterdir() if NUMBERED.fullmatch(path.name))

    def save(self, number: int, parts: Mapping[str, Values], state: Mapping[str, Any]) -> Path:
        """Write a checkpoint, then remove those beyond `keep`; later ones belong to a line that was given up."""
        contents = _contents(number, parts, state)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._clean(everything=True)
            self._write(number, contents)
            self._prune(number)
        except OSError as error:
            raise cannot_write(self._path(number), error) from error
        return self._path(number)

    def load(self, number: int | None = None, warn: Warn = log.warning) -> Checkpoint | None:
        """The newest intact checkpoint, or the one with this number; None when there is none at all."""
        try:
            self._clean(everything=False)
        except OSError:
            log.debug("%s: leftovers cannot be removed", self._folder)  # a reader may lack the permission
        if number is not None:
            return self._exactly(_read_all, number)
        for _ in range(TRIES):
            numbers, damages = self.numbers(), []
            for each in reversed(numbers):
                try:
                    return _read_all(self._path(each))
                except Damage as damage:
                    if self._path(each).exists():  # otherwise the trainer pruned it this moment
                        damages.append(str(damage))
                        warn(f"checkpoint {each} is damaged and was skipped: {damage}")
            if not numbers:
                return None
            if len(damages) == len(numbers):
                raise RunError(f"{self._folder}: no checkpoint is intact ({'; '.join(damages)}): start a new run")
        raise RunError(f"{self._folder}: checkpoints vanish while they are read: try again")

    def load_state(self, number: int) -> dict[str, Any]:
        """The state of one checkpoint, without its parts."""
        return self._exactly(_read_state, number)

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:0{DIGITS}d}"

    def _hidden_path(self, kind: str, number: int) -> Path:
        """A name that no reader takes for a checkpoint; it tells who made it, so that others leave it alone."""
        return self._folder / f".{kind}@{number:0{DIGITS}d}@{os.getpid()}@{platform.node()}"

    def _write(self, number: int, contents: Mapping[str, bytes]) -> None:
        temporary = self._hidden_path("new", number)
        try:
            temporary.mkdir()
            for name, data in contents.items():
                write_durably(temporary / name, data)
            sync_folder(temporary)
            self._put_in_place(temporary, number)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise

    def _put_in_place(self, temporary: Path, number: int) -> None:
        """A folder cannot replace a full one: one of the same number steps aside, and comes back if this fails."""
        path, aside = self._path(number), self._hidden_path("old", number)
        if path.exists():
            os.replace(path, aside)
        try:
            os.replace(temporary, path)
        except OSError:
            if aside.exists():
                os.replace(aside, path)
            raise
        sync_folder(self._folder)
        shutil.rmtree(aside, ignore_errors=True)

    def _prune(self, newest: int) -> None:
        kept = [number for number in self.numbers() if number <= newest][-max(self._keep, 1) :]
        for number in set(self.numbers()) - set(kept):
            aside = self._hidden_path("gone", number)
            os.replace(self._path(number), aside)
            shutil.rmtree(aside, ignore_errors=True)

    def _clean(self, *, everything: bool) -> None:
        """Remove what killed processes left. Only a run's one trainer saves, so it may clean everything."""
        if not self._folder.is_dir():
            return
        for path in self._folder.glob(".*@*@*@*"):
            kind, number, pid, host = path.name.split("@", 3)
            if not everything and (host != platform.node() or psutil.pid_exists(int(pid))):
                continue
            if kind == ".old" and not (self._folder / number).exists():
                os.replace(path, self._folder / number)
            else:
                shutil.rmtree(path, ignore_errors=True)

    def _exactly(self, read: Callable[[Path], _T], number: int) -> _T:
        if number not in self.numbers():
            there = ", ".join(map(str, self.numbers())) or "none"
            raise RunError(f"{self._folder}: there is no checkpoint {number} (there: {there})")
        try:
            return read(self._path(number))
        except Damage as damage:
            raise RunError(f"checkpoint {number} is damaged: {damage}: choose another one") from damage


def _contents(number: int, parts: Mapping[str, Values], state: Mapping[str, Any]) -> dict[str, bytes]:
    """The content of every file, the manifest's last."""
    if not 0 <= number < 10**DIGITS:
        raise MisuseError(f"checkpoint number {number} is not between 0 and {10**DIGITS - 1}")
    contents = {STATE: json.dumps(state).encode()}
    for name, values in parts.items():
        if not PART_NAME.fullmatch(name):
            raise MisuseError(f"part name {name!r} cannot name a file: use letters, digits, _ and -")
        contents[name + SUFFIX] = part_to_bytes(values)
    contents[MANIFEST] = manifest_text(number, contents).encode()
    return contents


def _read_all(folder: Path) -> Checkpoint:
    files = read_manifest(folder)
    parts = {name.removesuffix(SUFFIX): _read_part(folder, name, files) for name in files if name.endswith(SUFFIX)}
    return Checkpoint(int(folder.name), folder, _read_state(folder), parts)


def _read_state(folder: Path) -> dict[str, Any]:
    files = read_manifest(folder)
    if STATE not in files:
        raise Damage(f"{folder / MANIFEST} does not list {STATE}")
    state: dict[str, Any] = json.loads(read_checked(folder, STATE, files))
    return state


def _read_part(folder: Path, name: str, files: Mapping[str, Mapping[str, Any]]) -> dict[str, torch.Tensor]:
    try:
        return part_from_bytes(read_checked(folder, name, files))
    except ValueError as error:
        raise Damage(f"{folder / name} is not a part of a checkpoint ({error})") from error
