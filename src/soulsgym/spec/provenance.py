"""Where the numbers of the data files come from: how many are measured, derived, public and guessed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from soulsgym.spec.arena import parse_arena
from soulsgym.spec.fight import DATA, STANDARD, load_fight, variants
from soulsgym.spec.player import parse_animations, parse_player
from soulsgym.spec.reader import SOURCES, read_toml


@dataclass(frozen=True)
class Provenance:
    """The numbers of one data file by source; a list counts its length."""

    file: Path
    counts: Mapping[str, int]

    @property
    def total(self) -> int:
        """All numbers of the file."""
        return sum(self.counts.values())


def data_provenance(data: Path = DATA) -> tuple[Provenance, ...]:
    """The provenance of every file of the simulator in a data folder."""
    bosses = sorted(file.stem for file in (data / "bosses").glob("*.toml") if "." not in file.stem)
    return (
        _player(data),
        _arenas(data / "arenas.toml"),
        _animations(data / "animations.toml"),
        *(found for boss in bosses for found in boss_provenance(boss, data)),
    )


def boss_provenance(boss: str, data: Path = DATA) -> tuple[Provenance, ...]:
    """The provenance of a boss's own file and of its variants, which count only what they change."""
    names = (boss if variant == STANDARD else f"{boss}.{variant}" for variant in variants(boss, data))
    return tuple(file_provenance(data / "bosses" / f"{name}.toml") for name in names)


def file_provenance(file: Path) -> Provenance:
    """The provenance of a boss's or a variant's file, wherever it is.

    What else the fight needs comes from the data folder it is in, or else from the shipped one.
    """
    content = read_toml(file)
    folder = file.parent.parent
    data = folder if file.parent.name == "bosses" and (folder / "player.toml").exists() else DATA
    boss, _, variant = file.stem.partition(".")
    if not variant:
        return _count(file, content, load_fight(str(file), data=data).boss.sources)
    below = file.parent / f"{boss}.toml"
    below = below if below.exists() else DATA / "bosses" / below.name
    return _count(file, content, load_fight(str(below), str(file), data).boss.sources)


def _player(data: Path) -> Provenance:
    labels, _ = parse_animations(*_labels(data / "animations.toml"))
    file = data / "player.toml"
    content = read_toml(file)
    return _count(file, content, parse_player(file, content, tuple(label.name for label in labels)).sources)


def _animations(file: Path) -> Provenance:
    sources: dict[str, str] = {}
    _, content, group = _labels(file)
    parse_animations(file, content, group, sources)
    return _count(file, content, sources)


def _labels(file: Path) -> tuple[Path, dict[str, object], str]:
    """The labels' file, its content, and one of the groups in it."""
    content = read_toml(file)
    groups = content.get("boss")
    return file, content, next(iter(groups), "") if isinstance(groups, Mapping) else ""


def _arenas(file: Path) -> Provenance:
    content = read_toml(file)
    sources: dict[str, str] = {}
    for name in content:
        sources |= parse_arena(file, content, name).sources
    return _count(file, content, sources)


def _count(file: Path, content: Mapping[str, object], sources: Mapping[str, str]) -> Provenance:
    """Count the numbers that a file itself holds, by the sources its loader found for them."""
    numbers: dict[str, int] = {}
    _count_below("", content, numbers)
    counts = dict.fromkeys(SOURCES, 0)
    for path, source in sources.items():
        counts[source] += numbers.get(path, 0)
    return Provenance(file, counts)


def _count_below(path: str, value: object, numbers: dict[str, int]) -> int:
    """Fill in how many numbers every path holds, with the names that the loader's sources have."""
    if isinstance(value, Mapping):
        inner = ((f"{path}.{key}" if path else key, inner) for key, inner in value.items() if key != "source")
        count = sum(_count_below(name, below, numbers) for name, below in inner)
    elif isinstance(value, list):
        count = sum(_count_below(f"{path}[{index}]", below, numbers) for index, below in enumerate(value))
    else:
        count = int(isinstance(value, (int, float)) and not isinstance(value, bool))
    numbers[path] = count
    return count
