"""A boss in the memory of a running game: which fields are his, and his values by name."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from soulsgym.errors import DataError, MisuseError, suggestion
from soulsgym.game.addresses import AddressTable, load_addresses
from soulsgym.game.titles.values import Numbers, array, pose_of, vector, whole_number, wrap_angle
from soulsgym.spec.reader import read_toml

if TYPE_CHECKING:
    from soulsgym.game.titles.title import FightTitle

DATA = Path(__file__).parents[2] / "data"
LISTS = ("other_max_hp", "attack_ids", "set", "clear", "values")
MOST_HP = 1_000_000
Named = tuple[str, str]
"""A field, and one of its bits or values; in the file `Field.name`."""


@dataclass(frozen=True)
class BossFields:
    """The fields of the address table that are one boss's, some with the name of a bit or a value of theirs."""

    hp: str
    max_hp: str
    heading: str
    position: str
    animation: str
    animation_time: str
    animation_max_time: str
    attack_switch: Named
    other_max_hp: tuple[str, ...] = ()
    attack_ids: tuple[str, ...] = ()
    set: tuple[Named, ...] = ()
    clear: tuple[Named, ...] = ()
    values: tuple[Named, ...] = ()

    @functools.cached_property
    def glanced(self) -> tuple[str, ...]:
        """What is polled."""
        return (self.hp, self.animation, *self.attack_ids)

    @functools.cached_property
    def seen(self) -> tuple[str, ...]:
        """What a look at a fight reads."""
        return (*self.glanced, self.max_hp, *self.other_max_hp, self.heading, self.position, self.animation_time)

    def max_in(self, seen: Mapping[str, Any]) -> int:
        """His most HP, by values read before: the first that can be true, of several places that it may lie at."""
        places = (self.max_hp, *self.other_max_hp)
        return int(next((seen[name] for name in places if 0 < seen[name] <= MOST_HP and seen[name] >= seen[self.hp]),
                        seen[self.max_hp]))  # fmt: skip


@functools.cache
def load_boss_fields(title: str, data: Path = DATA) -> Mapping[str, BossFields]:
    """The fields of every boss of a title, as `data/<title>/boss_fields.toml` says; none without that file."""
    file = data / title / "boss_fields.toml"
    if not file.is_file():
        return {}
    table = load_addresses(title)
    return {boss: _boss_fields(file, boss, content, table) for boss, content in read_toml(file).items()}


def _boss_fields(file: Path, boss: str, content: object, table: AddressTable) -> BossFields:
    if not isinstance(content, dict):
        raise DataError(file, boss, content, "must be a table of the boss's fields")
    known = tuple(field.name for field in fields(BossFields))
    for key in content.keys() - set(known):
        raise DataError(file, f"{boss}.{key}", content[key], f"is not a known key{suggestion(key, known)}")
    for key in (key for key in known if key not in LISTS and key not in content):
        raise DataError(file, f"{boss}.{key}", None, "is missing; give the name of a field of addresses.toml")
    bits = tuple(f"{field.name}.{bit}" for field in table.fields.values() for bit in field.bits)
    words = tuple(f"{field.name}.{word}" for field in table.fields.values() for word in field.values)
    named = {"attack_switch": bits, "set": bits, "clear": bits, "values": words}
    checked: dict[str, Any] = {}
    for key, value in content.items():
        names = value if key in LISTS else [value]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise DataError(file, f"{boss}.{key}", value, f"must be {'a list of names' if key in LISTS else 'a name'}")
        among = named.get(key, tuple(table.fields))
        for name in names:
            if name not in among:
                raise DataError(file, f"{boss}.{key}", name, f"is not in addresses.toml{suggestion(name, among)[:200]}")
        parts = tuple(tuple(name.split(".")) for name in names) if key in named else tuple(names)
        checked[key] = parts if key in LISTS else parts[0]
    return BossFields(**checked)


class Boss:
    """One boss of a running game."""

    def __init__(self, title: FightTitle, name: str, fields: BossFields) -> None:
        self.name, self.fields = name, fields
        self._title, self._pointers = title, title.pointers

    @property
    def hp(self) -> int:
        """His HP."""
        return self._pointers.integer(self.fields.hp)

    @hp.setter
    def hp(self, hp: int) -> None:
        self._pointers.write(self.fields.hp, whole_number(hp, f"{self.name}_hp", low=0))

    @property
    def max_hp(self) -> int:
        """His most HP; wrong unless his map is loaded."""
        fields = self.fields
        return fields.max_in(self._pointers.values(fields.hp, fields.max_hp, *fields.other_max_hp))

    def reset_hp(self) -> None:
        """Fill his HP."""
        self.hp = self.max_hp

    @property
    def pose(self) -> Numbers:
        """His x, y, z and heading. It is written while the game stands still, if it can: the game writes it too."""
        seen = self._pointers.values(self.fields.heading, self.fields.position)
        return array(*pose_of(seen[self.fields.heading], seen[self.fields.position]))

    @pose.setter
    def pose(self, pose: Sequence[float] | Numbers) -> None:
        x, y, z, heading = vector(pose, 4, f"{self.name}_pose")
        with self._title.paused():
            self._pointers.write(self.fields.position, (x, z, y))
            self._pointers.write(self.fields.heading, wrap_angle(heading))

    @property
    def animation(self) -> str:
        """The name of what he does."""
        return self.animation_in(self._pointers.values(self.fields.animation, *self.fields.attack_ids))

    def animation_in(self, seen: Mapping[str, Any]) -> str:
        """What he really does, by values read before: hits overwrite the name, and that of a past attack lingers."""
        name, names = seen[self.fields.animation], self._title.names
        if not any(mark in name for mark in names.unreliable):
            return str(name)
        for register in self.fields.attack_ids:
            if seen[register] != self._pointers.meaning(register, "none"):
                return f"{names.attack}{seen[register]}"
        return names.boss_idle

    @property
    def animation_time(self) -> float:
        """Seconds since it began."""
        return self._pointers.number(self.fields.animation_time)

    @property
    def animation_max_time(self) -> float:
        """Seconds that it takes."""
        return self._pointers.number(self.fields.animation_max_time)

    @property
    def attacks(self) -> bool:
        """May he attack? Doubtful in the real game."""
        return not self._pointers.bit(*self.fields.attack_switch)

    @attacks.setter
    def attacks(self, allowed: bool) -> None:
        self._pointers.set_bit(*self.fields.attack_switch, not allowed)

    @property
    def flags(self) -> bool:
        """Can he be fought, by the flags of the story? False makes it as if he had never been met."""
        return (
            all(self._pointers.bit(field, bit) for field, bit in self.fields.set)
            and not any(self._pointers.bit(field, bit) for field, bit in self.fields.clear)
            and all(self._may_be(field, word) for field, word in self.fields.values)
        )

    @flags.setter
    def flags(self, ready: bool) -> None:
        for field, word in self.fields.values if ready else ():
            self._pointers.write(field, self._pointers.meaning(field, word))
        for field, bit in self.fields.clear:
            self._pointers.set_bit(field, bit, False)
        for field, bit in self.fields.set:
            self._pointers.set_bit(field, bit, ready)

    def _may_be(self, field: str, word: str) -> bool:
        """Is the field's value none that stands for another word?"""
        number, meanings = self._pointers.integer(field), self._pointers.table.field(field).values
        return number == meanings[word] or number not in meanings.values()


def find_boss_fields(title: str, boss: str) -> BossFields:
    """The fields of a boss, or a MisuseError that says which bosses there are."""
    known = load_boss_fields(title)
    if boss not in known:
        near = suggestion(boss, tuple(known))
        raise MisuseError(f"no boss of {load_addresses(title).title} is called {boss!r}{near}")
    return known[boss]
