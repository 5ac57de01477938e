"""What is true of a game as such: data/<title>/title.toml."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from soulsgym.spec.reader import Table

LARGEST_OFFSET = 4096
LARGEST_VALUE = (1 << 31) - 1


@dataclass(frozen=True)
class Attribute:
    """One attribute of a character, and where it lies in the block of all of them."""

    name: str
    offset: int
    low: int
    high: int

    @property
    def key(self) -> str:
        """Its name in a character's file."""
        return self.name.lower().replace(" ", "_")


@dataclass(frozen=True)
class LockOn:
    """How the game's lock-on is widened for a fight."""

    bonus_range_m: float
    unseen_s: float


@dataclass(frozen=True)
class Title:
    """One game."""

    id: str
    attributes: tuple[Attribute, ...]
    lock_on: LockOn | None = None


def parse_title(file: Path, content: dict[str, Any]) -> Title:
    """Check the content of a title's file, which lies in the folder that is called like the title."""
    table = Table(file, "", content)
    attributes = tuple(_attribute(row) for row in table.rows("attribute"))
    table.cover("attribute")
    lock_on = None
    if table.has("lock_on"):
        inner = table.table("lock_on")
        lock_on = LockOn(inner.number("bonus_range_m", low=0.0), inner.number("unseen_s", low=0.0))
        inner.close(inherited_source=True)
        table.cover("lock_on")
    table.close()
    return Title(file.parent.name, attributes, lock_on)


def _attribute(row: Table) -> Attribute:
    attribute = Attribute(
        name=row.text("name"),
        offset=row.whole("offset", low=0, high=LARGEST_OFFSET),
        low=row.whole("low", low=0, high=LARGEST_VALUE),
        high=row.whole("high", low=0, high=LARGEST_VALUE),
    )
    row.close(inherited_source=True)
    return attribute
