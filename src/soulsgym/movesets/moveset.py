"""Loads everything one fight is made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from soulsgym.errors import DataError, MisuseError
from soulsgym.movesets.arena import Arena, parse_arena
from soulsgym.movesets.boss import Boss, parse_boss
from soulsgym.movesets.damage import Defence, Power
from soulsgym.movesets.overlay import overlay, parse_adjust
from soulsgym.movesets.player import Player, PlayerAnimation, parse_animations, parse_player
from soulsgym.movesets.reader import Table, read_toml, suggestion

DATA = Path(__file__).parent.parent / "data" / "darksouls3"
STANDARD = "standard"
"""The name of a boss's own file among its variants."""


@dataclass(frozen=True)
class Moveset:
    """A boss, the player and the place they fight in."""

    boss: Boss
    player: Player
    arena: Arena
    player_animations: tuple[PlayerAnimation, ...]
    boss_animations: tuple[str, ...]


def variants(boss: str, data: Path = DATA) -> tuple[str, ...]:
    """The variants a boss has, the standard one first."""
    _check_known(boss, data)
    found = sorted(file.stem.removeprefix(f"{boss}.") for file in (data / "movesets").glob(f"{boss}.*.toml"))
    return (STANDARD, *found)


def load_moveset(boss: str, variant: str = STANDARD, data: Path = DATA) -> Moveset:
    """Read and check the files of a fight; the last word of an error is the way out."""
    known = variants(boss, data)
    if variant not in known:
        raise MisuseError(f"variant {variant!r} of {boss} is not known{suggestion(variant, known)}")
    folder = data / "movesets"
    above = None if variant == STANDARD else folder / f"{boss}.{variant}.toml"
    return read_moveset(folder / f"{boss}.toml", above, data)


def _check_known(boss: str, data: Path) -> None:
    known = tuple(sorted(file.stem for file in (data / "movesets").glob("*.toml") if "." not in file.stem))
    if boss not in known:
        raise MisuseError(f"boss {boss!r} is not known{suggestion(boss, known)}")


@cache
def read_moveset(file: Path, variant_file: Path | None = None, data: Path = DATA) -> Moveset:
    """The fight of a boss's file, with a variant's file laid over it; player, arena and labels come from `data`."""
    content, adjust = read_toml(file), None
    if variant_file is not None:
        # The boss's own file is checked first: what is wrong after that is wrong in the variant.
        read_moveset(file, None, data)
        file = variant_file
        changes = read_toml(file)
        adjust = parse_adjust(file, changes.pop("adjust", {}))
        content = overlay(content, changes)
    player_file, arena_file, label_file = (data / name for name in ("player.toml", "arenas.toml", "animations.toml"))
    group = Table(file, "", content).text("animations")
    labels, boss_labels = parse_animations(label_file, read_toml(label_file), group)
    player = parse_player(player_file, read_toml(player_file), tuple(label.name for label in labels))
    reactions = tuple(move.name for move in player.moves if move.kind in ("reaction", "grabbed"))
    parsed = parse_boss(file, content, boss_labels, reactions)
    check_attack_types(parsed, file, player, player_file)
    arena = parse_arena(arena_file, read_toml(arena_file), parsed.arena)
    return Moveset(adjust.applied_to(parsed) if adjust else parsed, player, arena, labels, boss_labels)


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
