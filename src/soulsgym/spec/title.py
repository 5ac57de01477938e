"""What is true of a game as such: data/<title>/title.toml."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from soulsgym.spec.reader import Key, Mark, NotNegative, Table

Whole = Annotated[int, Meta(ge=0, le=(1 << 31) - 1)]


@dataclass(frozen=True)
class Attribute:
    """One attribute of a character, and where it lies in the block of all of them."""

    name: str
    offset: Annotated[int, Meta(ge=0, le=4096)]
    low: Whole
    high: Whole
    sum_less: Whole | None = None  # it is the sum of the others less this

    @property
    def key(self) -> str:
        """Its name in a character's file."""
        return self.name.lower().replace(" ", "_")


@dataclass(frozen=True)
class LockOn:
    """How the game's lock-on is widened for a fight."""

    bonus_range_m: NotNegative
    unseen_s: NotNegative


@dataclass(frozen=True)
class Title:
    """One game; `id` is the name of its folder."""

    id: str
    attributes: Annotated[tuple[Attribute, ...], Key("attribute"), Mark.COVERED] = ()
    lock_on: Annotated[LockOn | None, Mark.COVERED] = None


def parse_title(file: Path, content: dict[str, Any]) -> Title:
    """Check the content of a title's file."""
    return Table(file, "", content).read(Title, id=file.parent.name)
