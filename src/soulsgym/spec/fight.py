"""Loads everything one fight is made of."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from soulsgym.errors import DataError, MisuseError, suggestion
from soulsgym.spec.arena import Arena, parse_arena
from soulsgym.spec.boss import Boss, has_moves, parse_boss
from soulsgym.spec.damage import Defence, Power
from soulsgym.spec.game import GameSetup, WatchSetup, game_setup, watch_setup
from soulsgym.spec.overlay import Adjust, overlay
from soulsgym.spec.player import Player, PlayerAnimation, parse_animations, parse_player
from soulsgym.spec.reader import Table, parse_toml, read_text
from soulsgym.spec.title import Title, parse_title

DATA = Path(__file__).parent.parent / "data"
"""A folder for each title."""
STANDARD = "standard"
"""The name of a boss's own file among its variants."""
DRAWN = "drawn:"
"""How the name of a number of drawn variants begins."""


@dataclass(frozen=True)
class FightSpec:
    """A boss, the character who fights him and the place they fight in, and what they were read from."""

    boss: Boss
    player: Player
    arena: Arena
    player_animations: tuple[PlayerAnimation, ...]
    boss_animations: tuple[str, ...]
    title: Title
    boss_name: str = field(default="", compare=False)  # as it was asked for: a name or a path
    variant: str = field(default=STANDARD, compare=False)  # a name, a path, or what a drawn file was drawn from
    files: tuple[Path, ...] = field(default=(), compare=False)

    @cached_property
    def game(self) -> GameSetup:
        """How the fight is set up in the running game."""
        if self.boss.game is None or self.title.lock_on is None:
            raise MisuseError(
                f"boss {self.boss_name!r} is not known for the running game; "
                f"give its file {self.files[0]} a [game] table"
            )
        return game_setup(self, self.boss.game, self.title.lock_on)

    @property
    def watch(self) -> WatchSetup:
        """What it takes to watch the fight in the running game, which may be known where its set-up is not."""
        return watch_setup(self) if self.boss.game is None else self.game


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
    characters: tuple[TextFile, ...]  # the boss's own, and the one it is like if there is one
    arenas: TextFile
    animations: TextFile
    title: TextFile

    @property
    def content(self) -> dict[str, Any]:
        """What the boss's own file says; not to be changed."""
        return _content(self.boss)

    @property
    def paths(self) -> tuple[Path, ...]:
        """Where they lie, the boss's own first."""
        shared = (*self.characters, self.arenas, self.animations, self.title)
        return self.boss.path, *(file.path for file in shared)


def is_path(name: str) -> bool:
    """Is this a path rather than the name of a boss or a variant?"""
    return name.endswith(".toml") or any(mark in name for mark in ("/", os.sep, os.altsep or os.sep))


def name_or_path(what: str, given: object) -> str:
    """The name or path as a string, if it is one."""
    if isinstance(given, os.PathLike):
        given = os.fspath(given)
    if not isinstance(given, str):
        raise MisuseError(f"{what} {given!r} is no string; give a name or the path of a file")
    return given


def variants(boss: str, data: Path = DATA) -> tuple[str, ...]:
    """The variants that lie beside a boss's file, the standard one first."""
    return _variants_beside(boss_file(boss, data))


def load_fight(boss: str, variant: str = STANDARD, *, data: Path = DATA, moves: bool = True) -> FightSpec:
    """Read and check the files of a fight; `boss` and `variant` are names or paths.

    A boss whose moves nobody has described can be fought in the running game alone; it is refused unless `moves` is
    false.
    """
    return load_variant(read_files(boss, data, moves=moves), variant)


def read_files(boss: str, data: Path = DATA, *, moves: bool = True) -> FightFiles:
    """The files of a boss, in the folder of its title; what lies beside one given by its path is used instead."""
    boss = name_or_path("boss", boss)
    path = boss_file(boss, data)
    own = TextFile(path, read_text(path))
    if moves and not has_moves(_content(own)):
        raise MisuseError(
            f"boss {boss!r} has no moves yet, so it can be fought in the running game alone; describe them in {path}"
        )
    head = Table(path, "", _content(own))
    folder = _title_folder(path, head, data)

    def shared(name: str) -> TextFile:
        beside = path.parent / Path(name).name
        file = beside if is_path(boss) and beside != path and beside.is_file() else folder / name
        return TextFile(file, read_text(file))

    def character(table: Table, key: str) -> TextFile:
        name = table.text(key)
        known = [file.stem for place in (folder / "characters", path.parent) for file in place.glob("*.toml")]
        if name not in known:
            ours = (file.stem for file in (folder / "characters").glob("*.toml"))
            raise table.error(key, name, f"is not a character{suggestion(name, ours)}")
        return shared(f"characters/{name}.toml")

    characters = [character(head, "character")]
    if "like" in _content(characters[0]):
        own_character = Table(characters[0].path, "", _content(characters[0]))
        characters.append(character(own_character, "like"))
        if "like" in _content(characters[1]):
            raise own_character.error("like", characters[1].path.stem, "is like another itself; name that one")
    title = folder / "title.toml"
    return FightFiles(
        boss, own, tuple(characters), shared("arenas.toml"), shared("animations.toml"),
        TextFile(title, read_text(title)),
    )  # fmt: skip


def _title_folder(boss: Path, head: Table, data: Path) -> Path:
    """The folder of the title that a boss says he is of: the one he lies in, or one of `data`."""
    around = boss.parent.resolve().parent
    if boss.parent.resolve().name == "bosses" and (around / "title.toml").is_file():
        head.check_known("title", head.text("title"), (around.name,))
        return around
    head.check_known("title", head.text("title"), known_titles(data))
    return data / head.text("title")


def known_titles(data: Path = DATA) -> tuple[str, ...]:
    """The games that there are data for."""
    return tuple(sorted(file.parent.name for file in data.glob("*/title.toml")))


def load_variant(files: FightFiles, variant: str) -> FightSpec:
    """The moveset of a boss's files and one of its variants."""
    variant = name_or_path("variant", variant)
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
    sources: dict[str, str] = {}
    adjust = Table(file, "adjust", changes.get("adjust", {})).read(Adjust, sources)
    rest = {key: value for key, value in changes.items() if key != "adjust"}
    for key in ("title", "character"):
        if rest.get(key, files.content[key]) != files.content[key]:
            raise DataError(file, key, rest[key], f"must be {files.content[key]!r}, as the boss's file says")
    own, moves = files.content.get("move", {}), rest.get("move", {})
    for name, move in moves.items() if isinstance(moves, dict) else ():
        if name not in own and isinstance(move, dict) and "animation" not in move:  # a new one has that at least
            raise DataError(file, "move", name, f"is no move of {files.boss_name}{suggestion(name, own)}")
    made = _build_spec(files, file, overlay(files.content, rest), variant)
    return replace(made, boss=adjust.applied_to(made.boss, sources)) if "adjust" in changes else made


@lru_cache(maxsize=16)
def _standard(files: FightFiles) -> FightSpec:
    return _build_spec(files, files.boss.path, files.content, STANDARD)


@lru_cache(maxsize=16)
def _overlaid(files: FightFiles, file: TextFile, variant: str) -> FightSpec:
    if not file.text.strip():
        raise DataError(file.path, "file", file.path.name, "is empty; give the numbers that differ from the boss's own")
    made = lay_over(files, parse_toml(file.path, file.text), file.path, variant)
    return replace(made, files=(*made.files, file.path))


def _build_spec(files: FightFiles, file: Path, content: dict[str, Any], variant: str) -> FightSpec:
    head = Table(file, "", content)
    group = head.text("animations")
    head.check_known("animations", group, tuple(_content(files.animations).get("boss", (group,))))
    labels, boss_labels = _labels(files.animations, group)
    title, player = _title(files.title), _character(files.characters, tuple(label.name for label in labels))
    reactions = tuple(move.name for move in player.moves if move.kind in ("reaction", "grabbed"))
    boss = parse_boss(file, content, boss_labels, reactions)
    if boss.moves:
        check_attack_types(boss, file, player, files.characters[0].path)
        check_statuses(boss, file, player)
    if boss.game is not None or player.attributes:
        check_attributes(player, files.characters[0].path, title)
    if boss.game is not None and title.lock_on is None:
        raise DataError(files.title.path, "lock_on", None, "is missing; a fight in the running game needs it")
    head.check_known("arena", boss.arena, tuple(_content(files.arenas)))
    arena = _arena(files.arenas, boss.arena, bool(boss.moves))
    return FightSpec(boss, player, arena, labels, boss_labels, title, files.boss_name, variant, files.paths)


# What was made of a text is kept, for many variants are laid over the same files; a file that was changed on disk is
# another text.


@lru_cache(maxsize=16)
def _content(file: TextFile) -> dict[str, Any]:
    return parse_toml(file.path, file.text)


@lru_cache(maxsize=16)
def _labels(file: TextFile, group: str) -> tuple[tuple[PlayerAnimation, ...], tuple[str, ...]]:
    return parse_animations(file.path, _content(file), group)


@lru_cache(maxsize=16)
def _title(file: TextFile) -> Title:
    return parse_title(file.path, _content(file))


@lru_cache(maxsize=16)
def _character(files: tuple[TextFile, ...], labels: tuple[str, ...]) -> Player:
    """The character of a file, or of one that says only how it differs from the one in the second file."""
    own, *base = files
    content = _content(own)
    if base:
        _character(tuple(base), labels)  # what is wrong after that is wrong in the first file
        content = overlay(_content(base[0]), {key: value for key, value in content.items() if key != "like"})
    return parse_player(own.path, content, labels)


@lru_cache(maxsize=16)
def _arena(file: TextFile, name: str, simulated: bool) -> Arena:
    return parse_arena(file.path, _content(file), name, simulated=simulated)


def known_bosses(data: Path = DATA) -> dict[str, Path]:
    """The bosses of all titles, by name, and their files."""
    return {file.stem: file for file in sorted(data.glob("*/bosses/*.toml")) if "." not in file.stem}


def boss_file(boss: str, data: Path = DATA) -> Path:
    """The file of a boss by its name or its path."""
    if is_path(boss):
        return expanded(boss)
    known = known_bosses(data)
    if boss not in known:
        raise MisuseError(f"boss {boss!r} is not known{suggestion(boss, known)}")
    return known[boss]


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


def check_statuses(boss: Boss, file: Path, player: Player) -> None:
    """Refuse a boss who builds up a status that the character knows nothing of."""
    known = {status.name for status in player.statuses}
    named: dict[str, tuple[str, str | float]] = {
        f"move.{move.name}.hit.{hit.name}.status.{name}": (name, points)
        for move in boss.moves
        for hit in move.hits
        for name, points in hit.status.items()
    }
    for number, phase in enumerate(boss.phases, start=1):
        if phase.aura is not None:
            named[f"phase.{number}.aura.status"] = phase.aura.status, phase.aura.status
    for key, (name, value) in named.items():
        if name not in known:
            raise DataError(
                file, key, value, f"is not a status of the character {player.name!r}{suggestion(name, known)}"
            )


def check_attributes(player: Player, file: Path, title: Title) -> None:
    """Refuse a character whose attributes are not those of the title, or not what the game allows."""
    known = {attribute.key: attribute for attribute in title.attributes}
    for key, value in player.attributes.items():
        if key not in known:
            raise DataError(file, f"body.attributes.{key}", value, f"is not a known key{suggestion(key, known)}")
    for key, attribute in known.items():
        if key not in player.attributes:
            raise DataError(file, f"body.attributes.{key}", None, "is missing; give a number")
        if not attribute.low <= player.attributes[key] <= attribute.high:
            reason = f"must be from {attribute.low} to {attribute.high}"
            raise DataError(file, f"body.attributes.{key}", player.attributes[key], reason)


def _check_types(file: Path, defence: Defence, powers: set[Power]) -> None:
    for kind in sorted({power.attack_type for power in powers if power.attack_type}):
        if kind not in defence.absorption:
            raise DataError(file, f"defence.absorption.{kind}", None, "is missing; a blow of the fight is of this type")
