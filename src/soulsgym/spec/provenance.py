"""Where the numbers of the data files come from: how many are measured, derived, public and guessed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from soulsgym.spec.arena import parse_arena
from soulsgym.spec.fight import DATA, STANDARD, boss_file, load_fight, variants
from soulsgym.spec.overlay import overlay
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
    """The provenance of the characters, arenas, labels and bosses of every title in a data folder."""
    found: list[Provenance] = []
    for folder in sorted(file.parent for file in data.glob("*/bosses")):
        found += [_character(file, folder) for file in sorted((folder / "characters").glob("*.toml"))]
        found += [_arenas(folder / "arenas.toml"), _animations(folder / "animations.toml")]
        bosses = sorted(file.stem for file in (folder / "bosses").glob("*.toml") if "." not in file.stem)
        found += [one for boss in bosses for one in boss_provenance(boss, data)]
    return tuple(found)


def boss_provenance(boss: str, data: Path = DATA) -> tuple[Provenance, ...]:
    """The provenance of a boss's own file and of its variants, which count only what they change."""
    own = boss_file(boss, data)
    names = (own.stem if variant == STANDARD else f"{own.stem}.{variant}" for variant in variants(boss, data))
    return tuple(file_provenance(own.with_name(f"{name}.toml"), data) for name in names)


def file_provenance(file: Path, data: Path = DATA) -> Provenance:
    """The provenance of a boss's or a variant's file, wherever it is; a boss that is not beside a variant is ours."""
    content = read_toml(file)
    boss, _, variant = file.stem.partition(".")
    below = file.with_name(f"{boss}.toml")
    if variant and not below.exists():
        below = boss_file(boss, data)
    spec = load_fight(str(below), str(file) if variant else STANDARD, data=data, moves=False)
    return _count(file, content, spec.boss.sources)


def _character(file: Path, folder: Path) -> Provenance:
    labels, _ = parse_animations(*_labels(folder / "animations.toml"))
    content = read_toml(file)
    whole = overlay(read_toml(file.with_name(f"{content.pop('like')}.toml")), content) if "like" in content else content
    return _count(file, content, parse_player(file, whole, tuple(label.name for label in labels)).sources)


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
        sources |= parse_arena(file, content, name, simulated=False).sources
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
