"""Copies of save games: training changes a character for good, and its saves with it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Annotated
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from msgspec import Meta

from soulsgym.errors import GameError, MisuseError, suggestion
from soulsgym.spec.reader import Table, read_toml

DATA = Path(__file__).parent.parent / "data"
ABOUT = "backup.json"
FORMAT = 2
BY_HAND, BEFORE_RESTORE = "by hand", "before a restore"
TRIES = 3
"""A save that changes while it is copied is read again this often."""
PAUSE_S = 0.5
STAMP = "%Y-%m-%d_%H-%M-%S"


@dataclass(frozen=True)
class SaveLayout:
    """Where a title keeps its saves."""

    title: str
    folder: str
    file: str
    steam_app: Annotated[int, Meta(ge=1, le=10_000_000)]


def load_save_layout(title: str, data: Path = DATA) -> SaveLayout:
    """Where a title keeps its saves, as `data/<title>/saves.toml` says."""
    file = data / title / "saves.toml"
    if not file.is_file():
        known = tuple(sorted(found.parent.name for found in data.glob("*/saves.toml")))
        raise MisuseError(f"nothing is known about saves of the title {title!r}{suggestion(title, known)}")
    return Table(file, "", read_toml(file)).read(SaveLayout, title=title)


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
class Backup:
    """A copy of a folder of saves, as it was at one time: a zip file, which holds a sum to check each file by."""

    path: Path
    title: str
    folder: Path
    made: datetime
    reason: str
    files: Mapping[str, int]
    """Bytes of each."""

    @property
    def name(self) -> str:
        """What it is called."""
        return self.path.stem

    @property
    def age_s(self) -> float:
        """Seconds since it was made."""
        return (datetime.now(UTC) - self.made).total_seconds()

    def contents(self) -> dict[str, bytes]:
        """The files that were saved; a GameError if one is no longer what it was."""
        try:
            with ZipFile(self.path) as archive:
                return {name: archive.read(name) for name in self.files}
        except (OSError, KeyError, BadZipFile, zlib.error) as error:
            raise GameError(f"{self.path}: this backup is damaged ({error}); restore another one") from error


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
        contents = _contents_at_rest(folder)
        made = datetime.now(UTC).replace(microsecond=0)
        about = {"format": FORMAT, "title": title, "folder": str(folder), "made": made.isoformat(), "reason": reason}
        store.mkdir(parents=True, exist_ok=True)
        path = _write_zip(store, made.strftime(STAMP), {**contents, ABOUT: json.dumps(about, indent=1).encode()})
    made_now = Backup(path, title, folder, made, reason, {name: len(content) for name, content in contents.items()})
    if made_now.contents() != contents:
        raise GameError(f"{path}: this backup is not what was saved; is the disk sound?")
    return made_now


def _contents_at_rest(folder: Path) -> dict[str, bytes]:
    """Every file, read until nothing changes meanwhile: the game may be saving just now."""
    contents = _contents(folder)
    for _ in range(TRIES):
        last, contents = contents, _contents(folder)
        if contents == last:
            return contents
        time.sleep(PAUSE_S)
    raise GameError(f"{folder}: the save changed while it was copied, {TRIES} times; close the game and try again")


def _contents(folder: Path) -> dict[str, bytes]:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def _write_zip(store: Path, stamp: str, contents: Mapping[str, bytes]) -> Path:
    """Write a file that was not there; one that is broken off has no table of contents and counts for nothing."""
    for number in range(1, 1000):
        path = store / f"{stamp}{'' if number == 1 else f'_{number}'}.zip"
        try:
            archive = ZipFile(path, "x", ZIP_DEFLATED)
        except FileExistsError:
            continue
        try:
            with archive:
                for name, content in contents.items():
                    archive.writestr(name, content)
            _settle(path)
            _settle(store)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return path
    raise GameError(f"{store / stamp}: a thousand backups are there already; move some away")


def _settle(place: Path) -> None:
    """What was put there is on the disk; Windows does so by itself."""
    if sys.platform != "win32":
        handle = os.open(place, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def _writing(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise GameError(
            f"{error.filename or place}: cannot be written or read ({error.strerror}); look at its rights "
            "and at the room on the disk"
        ) from error


def backups(title: str = "darksouls3", *, store: Path | None = None) -> list[Backup]:
    """All backups of a title, the newest first; what is no whole backup is left out."""
    store = store or store_folder(title)
    found = []
    for path in store.glob("*.zip"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, BadZipFile, zlib.error):
            found.append(_read(path))
    # A second has room for several, which are numbered.
    return sorted(found, key=lambda one: (one.made, len(one.name), one.name), reverse=True)


def _read(path: Path) -> Backup:
    with ZipFile(path) as archive:
        about = json.loads(archive.read(ABOUT))
        files = {file.filename: file.file_size for file in archive.infolist() if file.filename != ABOUT}
    if about["format"] != FORMAT or not all(map(_is_inside, files)):
        raise ValueError(path)
    made = datetime.fromisoformat(about["made"])
    return Backup(path, str(about["title"]), Path(about["folder"]), made, str(about["reason"]), files)


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not (path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name)


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
    contents = chosen.contents()
    folder = (folder or chosen.folder).resolve()
    layout = load_save_layout(chosen.title)
    replaced = None
    if (folder / layout.file).is_file():
        replaced = backup(folder, chosen.title, store=store or chosen.path.parent, reason=BEFORE_RESTORE)
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            _replace(folder / name, content)
        _settle(folder)
        for name, content in contents.items():
            if (folder / name).read_bytes() != content:
                raise GameError(f"{folder / name}: it is not what was restored; something else writes there, try again")
    return replaced


def _replace(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f"{file.name}.restored")
    try:
        new.write_bytes(content)
        _settle(new)
        os.replace(new, file)
    finally:
        new.unlink(missing_ok=True)
