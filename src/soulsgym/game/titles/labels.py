"""Names for the numbers of animations: data/<title>/labels.toml, for games that keep numbers."""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from soulsgym.errors import ReadFailed
from soulsgym.game.titles.boss import DATA
from soulsgym.spec.reader import Mark, Table, read_toml

Number = Annotated[int, Meta(ge=0, le=(1 << 31) - 1)]
ENTRIES, ENTRY_BYTES = 10, 16


@dataclass(frozen=True)
class Label:
    """What the animations of some numbers are called."""

    name: str
    first: Number
    last: Number
    less: Number | None = None  # the number less this is the end of the name


@dataclass(frozen=True)
class LabelFile:
    """The labels of a title."""

    player: Annotated[tuple[Label, ...], Mark.COVERED]
    boss: Annotated[tuple[Label, ...], Mark.COVERED]


@functools.cache
def load_labels(title: str) -> LabelFile:
    """The labels of a title."""
    file = DATA / title / "labels.toml"
    table = Table(file, "", read_toml(file))
    read = table.read(LabelFile)
    for key in ("player", "boss"):
        last = -1
        for number, label in enumerate(sorted(getattr(read, key), key=lambda one: one.first)):
            if label.last < label.first or label.first <= last:
                raise table.error(
                    f"{key}.{number}.first", label.first, "must be above all before it, and not above last"
                )
            last = label.last
    return read


def name_of(labels: tuple[Label, ...], number: int) -> str:
    """What the animation of a number is called; one that nobody knows, its digits."""
    for label in labels:
        if label.first <= number <= label.last:
            return label.name if label.less is None else f"{label.name}{number - label.less}"
    return str(number)


def playing(ring: bytes) -> tuple[int, float]:
    """Number of the animation that plays and for how many seconds it has, from a ring of ten of them."""
    (at,) = struct.unpack_from("<I", ring, ENTRIES * ENTRY_BYTES + 4)
    if at >= ENTRIES:
        raise ReadFailed(0, f"animation {at} of {ENTRIES} plays: not in game")
    number, seconds = struct.unpack_from("<if", ring, at * ENTRY_BYTES)
    return number, seconds
