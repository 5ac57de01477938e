"""Copies of save games: training changes a character for good, and its saves with it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from soulsgym.errors import GameError, MisuseError, suggestion
from soulsgym.spec.reader import Table, read_toml

DATA = Path(__file__).parent.parent / "data"
ABOUT = "backup.json"
FORMAT = 1
BY_HAND, BEFORE_RESTORE = "by hand", "before a restore"
TRIES = 3
"""A save that changes while it is copied is copied again this often."""
PAUSE_S = 0.5
STAMP = "%Y-%m-%d_%H-%M-%S"


@dataclass(frozen=True)
class SaveLayout:
    """Where a title keeps its saves."""

    title: str
    folder: str
    file: str
    steam_app: int


def load_save_layout(title: str, data: Path = DATA) -> SaveLayout:
    """Where a title keeps its saves, as `data/<title>/saves.toml` says."""
    file = data / title / "saves.toml"
    if not file.is_file():
        known = tuple(sorted(found.parent.name for found in data.glob("*/saves.toml")))
        raise MisuseError(f"nothing is known about saves of the title {title!r}{suggestion(title, known)}")
    table = Table(file, "", read_toml(file))
    layout = SaveLayout(
        title, table.text("folder"), table.text("file"), int(table.number("steam_app", low=1, high=1e7))
    )
    table.close()
    return layout


def find_saves(
    title: str,
    environment: Mapping[str, str] | None = None,
    *,
    home: Path | None = None,
    system: Mapping[str, str] | None = None,
    platform: str = sys.platform,
) -> list[Path]:
    """Every folder with saves of a title, the one changed last first; `environment` is that of the running game."""
    layout = load_save_layout(title)
    home, system = home or Path.home(), os.environ if system is None else system
    if platform == "win32":
        roots = [Path(system.get("APPDATA") or home / "AppData" / "Roaming")]
    else:
        roots = [root for prefix in _prefixes(layout, environment or {}, home) for root in _roaming(prefix)]
    found = {
        save.parent.resolve(): save.stat().st_mtime
        for root in roots
        for save in (root / layout.folder).glob(f"*/{layout.file}")
    }
    return sorted(found, key=lambda folder: -found[folder])


def _prefixes(layout: SaveLayout, environment: Mapping[str, str], home: Path) -> Iterable[Path]:
    if environment.get("WINEPREFIX"):
        # The game that runs is the one that is meant, wherever others may lie.
        return [Path(environment["WINEPREFIX"])]
    proton = [library / "steamapps" / "compatdata" / str(layout.steam_app) / "pfx" for library in steam_folders(home)]
    return [*proton, home / ".wine"]


def steam_folders(home: Path) -> list[Path]:
    """The folders in which Steam keeps games, those on other disks too."""
    roots = [
        home / ".steam" / "steam",
        home / ".local" / "share" / "Steam",
        home / ".var" / "app" / "com.valvesoftware.Steam" / ".local" / "share" / "Steam",
    ]
    return list(dict.fromkeys(folder for root in roots for folder in (root, *_libraries(root))))


def _libraries(steam: Path) -> list[Path]:
    """Further folders, on other disks say, in which Steam keeps games."""
    try:
        text = (steam / "steamapps" / "libraryfolders.vdf").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [Path(path.replace("\\\\", "\\")) for path in re.findall(r'"path"\s+"([^"]+)"', text)]


def _roaming(prefix: Path) -> Iterable[Path]:
    return (prefix / "drive_c" / "users").glob("*/AppData/Roaming")


@dataclass(frozen=True)
class SavedFile:
    """One file of a backup."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Backup:
    """A copy of a folder of saves, as it was at one time."""

    path: Path
    title: str
    folder: Path
    made: datetime
    reason: str
    files: Mapping[str, SavedFile]

    @property
    def name(self) -> str:
        """What it is called."""
        return self.path.name

    @property
    def age_s(self) -> float:
        """Seconds since it was made."""
        return (datetime.now(UTC) - self.made).total_seconds()

    def verify(self) -> None:
        """Refuse a copy that is no longer what was saved."""
        for name, file in self.files.items():
            place = self.path / name
            try:
                found = _digest(place)
            except OSError as error:
                raise GameError(f"{place}: this file of the backup cannot be read: {error.strerror}") from error
            if found != file.sha256:
                raise GameError(f"{place}: this file of the backup is damaged; restore another one")


def store_folder(title: str, system: Mapping[str, str] | None = None, platform: str = sys.platform) -> Path:
    """Where backups of a title are kept: in the user's data directory."""
    system = os.environ if system is None else system
    if platform == "win32":
        base = Path(system.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(system.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return base / "soulsgym" / "saves" / title


def backup(folder: Path, title: str = "darksouls3", *, store: Path | None = None, reason: str = BY_HAND) -> Backup:
    """Copy a folder of saves into the store, check the copy, and return it; no older one is touched."""
    folder = folder.resolve()
    layout = load_save_layout(title)
    if not (folder / layout.file).is_file():
        raise GameError(f"{folder}: there is no {layout.file} in it; give the folder that holds it")
    store = store or store_folder(title)
    with _writing(store):
        store.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=store))
        try:
            files = _copied_whole(folder, unfinished)
            made = datetime.now(UTC).replace(microsecond=0)
            about = {
                "format": FORMAT,
                "title": title,
                "folder": str(folder),
                "made": made.isoformat(),
                "reason": reason,
            }
            about["files"] = {name: {"size": file.size, "sha256": file.sha256} for name, file in files.items()}
            _write(unfinished / ABOUT, json.dumps(about, indent=1).encode())
            _settle(unfinished)
            path = _moved(unfinished, store / made.strftime(STAMP))
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        _settle(store)
    made_now = Backup(path, title, folder, made, reason, files)
    made_now.verify()
    return made_now


def _copied_whole(source: Path, target: Path) -> dict[str, SavedFile]:
    """Copy until nothing changes meanwhile: the game may be saving just now."""
    for attempt in range(TRIES):
        if attempt:
            time.sleep(PAUSE_S)
        files = {name: _copied(source / name, target / name) for name in _names(source)}
        if {name: _digest(source / name) for name in _names(source)} == {n: f.sha256 for n, f in files.items()}:
            return files
    raise GameError(f"{source}: the save changed while it was copied, {TRIES} times; close the game and try again")


def _names(folder: Path) -> list[str]:
    return sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())


def _copied(source: Path, target: Path) -> SavedFile:
    content = source.read_bytes()
    target.parent.mkdir(parents=True, exist_ok=True)
    _write(target, content)
    return SavedFile(len(content), hashlib.sha256(content).hexdigest())


def _write(file: Path, content: bytes) -> None:
    with open(file, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _moved(unfinished: Path, wanted: Path) -> Path:
    for number in range(1, 1000):
        path = wanted if number == 1 else wanted.with_name(f"{wanted.name}_{number}")
        if path.exists():
            continue
        # A folder cannot be renamed onto one that is not empty, so even a race overwrites nothing.
        with contextlib.suppress(OSError):
            os.rename(unfinished, path)
            return path
    raise GameError(f"{wanted}: no backup could be put there; is the disk full, or the folder not yours?")


def _settle(folder: Path) -> None:
    """What was put into a folder is on the disk; Windows does so by itself."""
    if sys.platform != "win32":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def _writing(place: Path) -> Any:
    try:
        yield
    except OSError as error:
        raise GameError(f"{error.filename or place}: cannot be written or read: {error.strerror}") from error


def backups(title: str = "darksouls3", *, store: Path | None = None) -> list[Backup]:
    """All backups of a title, the newest first; what is no whole backup is left out."""
    store = store or store_folder(title)
    found = []
    for about in store.glob(f"*/{ABOUT}"):
        if not about.parent.name.startswith("."):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
                found.append(_read(about))
    # A second has room for several, which are numbered.
    return sorted(found, key=lambda one: (one.made, len(one.name), one.name), reverse=True)


def _read(about: Path) -> Backup:
    content = json.loads(about.read_text(encoding="utf-8"))
    if content["format"] != FORMAT:
        raise ValueError(content["format"])
    files = {}
    for name, file in content["files"].items():
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name:
            raise ValueError(name)
        files[name] = SavedFile(int(file["size"]), str(file["sha256"]))
    made = datetime.fromisoformat(content["made"])
    reason = str(content["reason"])
    return Backup(about.parent, str(content["title"]), Path(content["folder"]), made, reason, files)


def find_backup(name: str | None = None, title: str = "darksouls3", *, store: Path | None = None) -> Backup:
    """The backup of a name; without one, the newest that was made by hand."""
    found = backups(title, store=store)
    if name is None:
        by_hand = [one for one in found if one.reason == BY_HAND]
        if not by_hand:
            raise GameError(
                f"there is no backup of {title} in {store or store_folder(title)}; `souls game backup` makes one"
            )
        return by_hand[0]
    for one in found:
        if one.name == name:
            return one
    raise GameError(f"there is no backup {name!r} of {title}{suggestion(name, tuple(one.name for one in found))}")


def restore(
    chosen: Backup, folder: Path | None = None, *, running: Callable[[], Iterable[int]], store: Path | None = None
) -> Backup | None:
    """Put a backup's files back where they came from, or into `folder`; returns the copy of what was replaced.

    Refuses while the game runs (`running` gives its process numbers), as it would write its own state over them.
    """
    pids = list(running())
    if pids:
        numbers = ", ".join(map(str, pids))
        raise GameError(f"the game runs (process {numbers}) and would write over the save; close it and try again")
    chosen.verify()
    folder = (folder or chosen.folder).resolve()
    layout = load_save_layout(chosen.title)
    replaced = None
    if (folder / layout.file).is_file():
        replaced = backup(folder, chosen.title, store=store or chosen.path.parent, reason=BEFORE_RESTORE)
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name in chosen.files:
            _replaced(folder / name, (chosen.path / name).read_bytes())
        _settle(folder)
    for name, file in chosen.files.items():
        if _digest(folder / name) != file.sha256:
            raise GameError(f"{folder / name}: it is not what was restored; something else writes there, try again")
    return replaced


def _replaced(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f"{file.name}.restored")
    try:
        _write(new, content)
        os.replace(new, file)
    finally:
        new.unlink(missing_ok=True)
