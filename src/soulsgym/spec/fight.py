"""Loads everything one fight is made of."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from soulsgym.errors import DataError, MisuseError
from soulsgym.spec.arena import Arena, parse_arena
from soulsgym.spec.boss import Boss, parse_boss
from soulsgym.spec.damage import Defence, Power
from soulsgym.spec.overlay import overlay, parse_adjust
from soulsgym.spec.player import Player, PlayerAnimation, parse_animations, parse_player
from soulsgym.spec.reader import Table, parse_toml, read_text, suggestion

DATA = Path(__file__).parent.parent / "data" / "darksouls3"
STANDARD = "standard"
"""The name of a boss's own file among its variants."""
DRAWN = "drawn:"
"""How the name of a number of drawn variants begins."""
SHARED_FILES = ("player.toml", "arenas.toml", "animations.toml")


@dataclass(frozen=True)
class FightSpec:
    """A boss, the player and the place they fight in, and what they were read from."""

    boss: Boss
    player: Player
    arena: Arena
    player_animations: tuple[PlayerAnimation, ...]
    boss_animations: tuple[str, ...]
    boss_name: str = field(default="", compare=False)  # as it was asked for: a name or a path
    variant: str = field(default=STANDARD, compare=False)  # a name, a path, or what a drawn file was drawn from
    files: tuple[Path, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class TextFile:
    """A file as it was read."""

    path: Path
    text: str


@dataclass(frozen=True)
class FightFiles:
    """The files of a boss as they were read: what is made of them does not change with the disk."""

    boss_name: str
    boss: TextFile
    player: TextFile
    arenas: TextFile
    animations: TextFile

    @property
    def content(self) -> dict[str, Any]:
        """What the boss's own file says; not to be changed."""
        return _content(self.boss)

    @property
    def paths(self) -> tuple[Path, ...]:
        """Where they lie, the boss's own first."""
        return self.boss.path, self.player.path, self.arenas.path, self.animations.path


def is_path(name: str) -> bool:
    """Is this a path rather than the name of a boss or a variant?"""
    return name.endswith(".toml") or any(mark in name for mark in ("/", os.sep, os.altsep or os.sep))


def variants(boss: str, data: Path = DATA) -> tuple[str, ...]:
    """The variants that lie beside a boss's file, the standard one first."""
    return _variants_beside(_boss_path(boss, data))


def load_fight(boss: str, variant: str = STANDARD, data: Path = DATA) -> FightSpec:
    """Read and check the files of a fight; `boss` and `variant` are names or paths."""
    return load_variant(read_files(boss, data), variant)


def read_files(boss: str, data: Path = DATA) -> FightFiles:
    """The files of a boss; beside one given by its path may lie others to use in place of ours."""
    path = _boss_path(boss, data)
    shared = [data / name for name in SHARED_FILES]
    if is_path(boss):
        shared = [beside if (beside := path.parent / file.name).is_file() else file for file in shared]
    return FightFiles(boss, *(TextFile(file, read_text(file)) for file in (path, *shared)))


def load_variant(files: FightFiles, variant: str) -> FightSpec:
    """The moveset of a boss's files and one of its variants."""
    if variant == STANDARD:
        return _standard(files)
    if variant.startswith(DRAWN):
        raise MisuseError(
            f"variant {variant!r} is a number of drawn files, not one; give a name or the path of a file, "
            "such as one that souls variant draw wrote"
        )
    if is_path(variant):
        path = expanded(variant)
    else:
        known = _variants_beside(files.boss.path)
        if variant not in known:
            raise MisuseError(f"variant {variant!r} of {files.boss_name} is not known{suggestion(variant, known)}")
        path = files.boss.path.with_suffix(f".{variant}.toml")
    return _overlaid(files, TextFile(path, read_text(path)), variant)


def lay_over(files: FightFiles, changes: Mapping[str, Any], file: Path, variant: str) -> FightSpec:
    """The moveset of a boss's files with `changes` in place of its own numbers; `file` is named if they are wrong."""
    # The boss's own file is checked first: what is wrong after that is wrong in the changes.
    _standard(files)
    adjust = parse_adjust(file, changes.get("adjust", {}))
    rest = {key: value for key, value in changes.items() if key != "adjust"}
    made = _made(files, file, overlay(files.content, rest), variant)
    return replace(made, boss=adjust.applied_to(made.boss)) if "adjust" in changes else made


@lru_cache(maxsize=16)
def _standard(files: FightFiles) -> FightSpec:
    return _made(files, files.boss.path, files.content, STANDARD)


@lru_cache(maxsize=16)
def _overlaid(files: FightFiles, file: TextFile, variant: str) -> FightSpec:
    if not file.text.strip():
        raise DataError(file.path, "file", file.path.name, "is empty; give the numbers that differ from the boss's own")
    made = lay_over(files, parse_toml(file.path, file.text), file.path, variant)
    return replace(made, files=(*made.files, file.path))


def _made(files: FightFiles, file: Path, content: dict[str, Any], variant: str) -> FightSpec:
    group = Table(file, "", content).text("animations")
    labels, boss_labels = _labels(files.animations, group)
    player = _player(files.player, tuple(label.name for label in labels))
    reactions = tuple(move.name for move in player.moves if move.kind in ("reaction", "grabbed"))
    boss = parse_boss(file, content, boss_labels, reactions)
    check_attack_types(boss, file, player, files.player.path)
    arena = _arena(files.arenas, boss.arena)
    return FightSpec(boss, player, arena, labels, boss_labels, files.boss_name, variant, files.paths)


# What was made of a text is kept, for many variants are laid over the same files; a file that was changed on disk is
# another text.


@lru_cache(maxsize=16)
def _content(file: TextFile) -> dict[str, Any]:
    return parse_toml(file.path, file.text)


@lru_cache(maxsize=16)
def _labels(file: TextFile, group: str) -> tuple[tuple[PlayerAnimation, ...], tuple[str, ...]]:
    return parse_animations(file.path, _content(file), group)


@lru_cache(maxsize=16)
def _player(file: TextFile, labels: tuple[str, ...]) -> Player:
    return parse_player(file.path, _content(file), labels)


@lru_cache(maxsize=16)
def _arena(file: TextFile, name: str) -> Arena:
    return parse_arena(file.path, _content(file), name)


def _boss_path(boss: str, data: Path) -> Path:
    if is_path(boss):
        return expanded(boss)
    known = tuple(sorted(file.stem for file in (data / "bosses").glob("*.toml") if "." not in file.stem))
    if boss not in known:
        raise MisuseError(f"boss {boss!r} is not known{suggestion(boss, known)}")
    return data / "bosses" / f"{boss}.toml"


def _variants_beside(boss: Path) -> tuple[str, ...]:
    found = boss.parent.glob(f"{glob.escape(boss.stem)}.*.toml")
    return (STANDARD, *sorted(file.stem.removeprefix(f"{boss.stem}.") for file in found))


def expanded(path: Path | str) -> Path:
    """The path with the home of `~` in it."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise DataError(path, "file", str(path), f"cannot be found: {error}") from error


def check_attack_types(boss: Boss, boss_file: Path, player: Player, player_file: Path) -> None:
    """Refuse a fight with a blow of a type for which the one it hits has no absorption."""
    blows = {hit.power for move in boss.moves for hit in move.hits}
    blows |= {throw.power for move in boss.moves for throw in move.throws}
    _check_types(player_file, player.defence, blows)
    _check_types(boss_file, boss.defence, {strike.power for move in player.moves for strike in move.strikes})


def _check_types(file: Path, defence: Defence, powers: set[Power]) -> None:
    for kind in sorted({power.attack_type for power in powers if power.attack_type}):
        if kind not in defence.absorption:
            raise DataError(file, f"defence.absorption.{kind}", None, "is missing; a blow of the fight is of this type")
