"""Puts the speed library into a game's folder as dinput8.dll, which the game loads by itself."""

from __future__ import annotations

import os
from pathlib import Path

from soulsgym.errors import GameError
from soulsgym.game.addresses import load_addresses
from soulsgym.game.clock import LIBRARY, PROXY, SPEED_BIN, SYMBOL

LAUNCH_OPTIONS = f'WINEDLLOVERRIDES="{PROXY.removesuffix(".dll")}=n,b" %command%'
"""Wine takes a game's own library only where it is told to."""


def install_proxy(folder: Path, title: str = "darksouls3", *, source: Path = SPEED_BIN) -> Path:
    """Copy the library next to the game's program; refuses to replace a library of somebody else."""
    library = source / LIBRARY
    try:
        content = library.read_bytes()
    except OSError as error:
        raise GameError(f"{library}: the speed library is not built; run: make speed") from error
    place = game_folder(folder, title) / PROXY
    if place.exists() and not is_ours(place):
        raise GameError(f"{place}: this is a library of another program, a mod perhaps; move it away first")
    new = place.with_name(f"{PROXY}.new")
    try:
        new.write_bytes(content)
        os.replace(new, place)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise GameError(
            f"{place}: cannot be written: {error.strerror}; is the game closed, and the folder yours?"
        ) from error
    return place


def remove_proxy(folder: Path, title: str = "darksouls3") -> Path:
    """Take the library out of a game's folder again; refuses to take out one of somebody else."""
    place = game_folder(folder, title) / PROXY
    if not place.exists():
        raise GameError(f"{place}: there is no such file, so there is nothing to remove")
    if not is_ours(place):
        raise GameError(f"{place}: this is a library of another program, so it stays")
    try:
        place.unlink()
    except OSError as error:
        raise GameError(f"{place}: cannot be removed: {error.strerror}; close the game first") from error
    return place


def game_folder(folder: Path, title: str = "darksouls3") -> Path:
    """The folder with the game's program: the one given, or `Game` in it, as Steam has it."""
    executable = load_addresses(title).executable
    for place in (folder, folder / "Game"):
        # Names differ in upper and lower case between releases, which matters on Linux alone.
        if place.is_dir() and any(file.name.lower() == executable.lower() for file in place.iterdir()):
            return place
    raise GameError(f"{folder}: there is no {executable} in it; give the game's folder (Steam: Browse local files)")


def is_ours(file: Path) -> bool:
    """Is this file our speed library, of whatever version?"""
    return SYMBOL.encode() in file.read_bytes()
