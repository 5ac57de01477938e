"""From an address table to places in the memory of one running game, checked at every use.

The game makes its objects again whenever it loads, so an address that was right may be someone else's a moment later.
Therefore the pointers that lead to a value are read together with it, in one batch: if one of them has changed, the way
is found again.
"""

from __future__ import annotations

import itertools
import logging
import struct
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from soulsgym.errors import GameVersionError, MisuseError, ReadFailed, suggestion
from soulsgym.game.addresses import AddressTable, Base, Field, Value, decoded
from soulsgym.game.memory import ProcessMemory
from soulsgym.game.patterns import INSTRUCTION_LENGTH, rip_target
from soulsgym.game.pe import Module

log = logging.getLogger(__name__)

ATTEMPTS = 5
"""Times that a read is repeated because the game changed something in between."""
ATTEMPTS_S = 0.25
"""A read is repeated for so long in any case: beside busy programs one takes longer than a tick, but not every one."""
MOST_CHARACTERS = 4096
"""More would be no list of those who are loaded."""
LOWEST_POINTER, HIGHEST_POINTER = 0x10000, 0x7FFF_FFFF_FFFF
"""Windows gives programs no memory below or above; anything else in a pointer means that nothing is there."""


@dataclass(frozen=True)
class _Link:
    """A pointer on the way: where it lies, from its parent's target or (parent -1) in the executable itself."""

    parent: int
    offset: int
    depth: int
    field: str


class _Way:
    """The links that lead to some fields, parents first, shared where fields share them."""

    def __init__(self, bases: dict[str, int], table: AddressTable, fields: Iterable[Field]) -> None:
        self.links: list[_Link] = []
        self.ends: list[tuple[int, int]] = []
        known: dict[tuple[int, tuple[int, ...]], int] = {}
        for field in fields:
            base = bases[field.base]
            if table.bases[field.base].direct:
                self.ends.append((-1, base + field.offsets[0]))
                continue
            parent, offset = -1, base
            for depth in range(len(field.offsets)):
                key = (base, field.offsets[:depth])
                if key not in known:
                    known[key] = len(self.links)
                    self.links.append(_Link(parent, offset, depth, field.name))
                parent, offset = known[key], field.offsets[depth]
            self.ends.append((parent, offset))

    def link_addresses(self, targets: Sequence[int]) -> list[int]:
        """Where each pointer lies, given where they lead."""
        return [_place(link.parent, link.offset, targets) for link in self.links]

    def field_addresses(self, targets: Sequence[int]) -> list[int]:
        """Where each field lies."""
        return [_place(parent, offset, targets) for parent, offset in self.ends]

    def follow(self, memory: ProcessMemory) -> tuple[int, ...]:
        """Read all pointers again, one batch for each step of the way; ReadFailed if one leads nowhere."""
        targets = [0] * len(self.links)
        for depth in range(max((link.depth for link in self.links), default=-1) + 1):
            level = [index for index, link in enumerate(self.links) if link.depth == depth]
            for index, target in zip(level, self._step(memory, targets, level), strict=True):
                targets[index] = target
        return tuple(targets)

    def _step(self, memory: ProcessMemory, targets: Sequence[int], level: Sequence[int]) -> list[int]:
        """Where the pointers lead that lie where the ones before them lead."""
        links = [self.links[index] for index in level]
        places = [_place(link.parent, link.offset, targets) for link in links]
        try:
            data = memory.process.read_many([(place, 8) for place in places])
        except ReadFailed as error:
            link = links[places.index(error.address)] if error.address in places else links[0]
            raise ReadFailed(error.address, f"the way to {link.field} is broken: not in game") from error
        found = list(struct.unpack(f"<{len(places)}Q", data))
        for link, place, target in zip(links, places, found, strict=True):
            if not LOWEST_POINTER <= target <= HIGHEST_POINTER:
                raise ReadFailed(place, f"the way to {link.field} ends in {target:#x}: not in game")
        return found


def _place(parent: int, offset: int, targets: Sequence[int]) -> int:
    return targets[parent] + offset if parent >= 0 else offset


class Look:
    """Many fields, the pointers to them and the game's time before and after, in one batch of memory.

    `timed=False` leaves the times out: then values may be of two moments, which is fine where one value is polled.
    """

    def __init__(self, pointers: Pointers, fields: Iterable[str], *, timed: bool = True) -> None:
        table = pointers.table
        self.fields = tuple(fields)
        self._memory = pointers.memory
        self._timed = timed
        wanted = [table.field(name) for name in self.fields]
        ends = [table.field(table.time)] if timed else []
        self._sizes = [field.size for field in wanted]
        self._way = _Way(pointers.bases, table, [*wanted, *ends])
        count = len(self._way.links)
        ends_code = "I" if timed else ""
        self._layout = struct.Struct(f"<{ends_code}{count}Q{''.join(field.type.code for field in wanted)}{ends_code}")
        self._links = slice(len(ends), len(ends) + count)
        self._places = _places(wanted, len(ends) + count)
        self._targets: tuple[int, ...] | None = None
        self._addresses: list[int] = []

    def forget(self) -> None:
        """Find the way again at the next read."""
        self._targets = None

    def addresses(self) -> dict[str, int]:
        """Where the fields lie now."""
        self._fetch()
        return dict(zip(self.fields, self._addresses, strict=False))

    def chain(self) -> list[int]:
        """Where the pointers lie that lead to the fields, and then the fields."""
        self._fetch()
        return [*self._way.link_addresses(self._targets or ()), *self._addresses[: len(self.fields)]]

    def read(self) -> dict[str, Value]:
        """The values by name; if timed, all of one moment, and the game's time is among them."""
        end = time.monotonic() + ATTEMPTS_S
        for attempt in itertools.count(1):
            items = self._fetch()
            if not self._timed or items[0] == items[-1]:
                return self._values(items)
            if attempt >= ATTEMPTS and time.monotonic() > end:
                break
        raise ReadFailed(
            self._addresses[-1], f"the game ticked during each of {attempt} reads: pause it or slow it down"
        )

    def _fetch(self) -> tuple[Any, ...]:
        """One batch, read by the very pointers that are in it."""
        for _ in range(ATTEMPTS):
            fresh = self._targets is None
            if fresh:
                self._find()
            try:
                items = self._layout.unpack(self._batch())
            except ReadFailed as error:
                if fresh:
                    raise ReadFailed(
                        error.address, f"{self._name_of(error.address)} cannot be read: not in game"
                    ) from error
                self.forget()
                continue
            if items[self._links] == self._targets:
                return items
            self.forget()
        raise ReadFailed(self._addresses[0], f"the pointers to {self.fields[0]} keep changing: not in game")

    def _find(self) -> None:
        targets = self._way.follow(self._memory)
        self._addresses = self._way.field_addresses(targets)
        spans = [(link, 8) for link in self._way.link_addresses(targets)]
        spans += zip(self._addresses, self._sizes, strict=False)
        if self._timed:
            time = (self._addresses[-1], 4)
            spans = [time, *spans, time]
        self._batch = self._memory.process.prepare(spans)
        self._targets = targets

    def _name_of(self, address: int) -> str:
        return next(
            (name for name, at in zip(self.fields, self._addresses, strict=False) if at == address), "a pointer"
        )

    def _values(self, items: tuple[Any, ...]) -> dict[str, Value]:
        values: dict[str, Value] = {"time": items[0]} if self._timed else {}
        for name, kind, place in self._places:
            try:
                values[name] = decoded(items[place]) if kind == "text" else items[place]
            except UnicodeDecodeError as error:
                raise ReadFailed(self.addresses()[name], f"{name} holds no text: not in game") from error
        return values


def _places(fields: list[Field], first: int) -> list[tuple[str, str, int | slice]]:
    """Name, kind and place of each field among the unpacked items."""
    places: list[tuple[str, str, int | slice]] = []
    for field in fields:
        count = field.type.items
        places.append(
            (field.name, field.type.kind, slice(first, first + count) if field.type.kind == "f32x" else first)
        )
        first += count
    return places


class Pointers:
    """The places of one running game, by the names of its address table."""

    def __init__(self, memory: ProcessMemory, table: AddressTable) -> None:
        self.memory, self.table = memory, table
        module = memory.module(table.executable)
        check_version(module, table)
        self.bases = self._find_bases(module)
        self._characters = {name: base.character for name, base in table.bases.items() if base.character is not None}
        self._looks: dict[tuple[tuple[str, ...], bool], Look] = {}
        self.written = False
        """Was anything written?"""

    def _find_bases(self, module: Module) -> dict[str, int]:
        bases = {name: module.base + base.rva for name, base in self.table.bases.items() if base.rva is not None}
        for name, hits in find_hits(self.memory, self.table, module).items():
            bases[name], note = choose_target(self.table.bases[name], hits, module)
            if note:
                log.warning("%s", note)
        for name, address in bases.items():
            if not module.base <= address < module.base + module.size:
                raise GameVersionError(
                    f"{name} leads to {address:#x}, outside of {module.name}: this is not version "
                    f"{self.table.file_version or 'of the address table'}"
                )
        return bases

    def look(self, *fields: str, timed: bool = True) -> Look:
        """A batched read of these fields, made once; ReadFailed if they are of a character who is not loaded."""
        if self._characters:
            for name in {self.table.field(field).base for field in fields} & self._characters.keys():
                self._find_character(name)
        look = self._looks.get((fields, timed))
        if look is None:
            look = self._looks[fields, timed] = Look(self, fields, timed=timed)
        return look

    def _find_character(self, name: str) -> None:
        """Note where the pointer to a character lies, unless it is still there."""
        listed, number = self.table.characters, self._characters[name]
        assert listed is not None
        if name in self.bases and self._number_of(self.bases[name], listed.number_at) == number:
            return
        self.bases.pop(name, None)
        own = {field.name for field in self.table.fields.values() if field.base == name}
        self._looks = {key: look for key, look in self._looks.items() if own.isdisjoint(key[0])}
        begin, end = struct.unpack("<2Q", self.memory.read(self.address(listed.field), 16))
        count = (end - begin) // listed.entry_bytes
        if not LOWEST_POINTER <= begin <= end <= HIGHEST_POINTER or count > MOST_CHARACTERS:
            raise ReadFailed(begin, f"the list of characters would have {count} entries: not in game")
        data = self.memory.read(begin, end - begin) if count else b""
        for at in range(0, count * listed.entry_bytes, listed.entry_bytes):
            (character,) = struct.unpack_from("<Q", data, at)
            if self._number_at(character, listed.number_at) == number:
                (self.bases[name],) = struct.unpack("<Q", self.memory.read(character + listed.slot_at, 8))
                return
        raise ReadFailed(begin, f"{name} is none of the {count} characters that are loaded: not in game")

    def _number_of(self, slot: int, offset: int) -> int | None:
        """The number of the character whom a pointer leads to."""
        try:
            (character,) = struct.unpack("<Q", self.memory.read(slot, 8))
        except ReadFailed:
            return None
        return self._number_at(character, offset)

    def _number_at(self, character: int, offset: int) -> int | None:
        if not LOWEST_POINTER <= character <= HIGHEST_POINTER:
            return None
        try:
            return int.from_bytes(self.memory.read(character + offset, 4), "little", signed=True)
        except ReadFailed:
            return None  # it has just been unloaded

    def address(self, name: str) -> int:
        """Where a field lies now; ReadFailed while the way to it is broken."""
        return self.look(name, timed=False).addresses()[name]

    def values(self, *fields: str) -> dict[str, Any]:
        """Values of fields by name, with their pointers checked, in one batch; maybe of two moments."""
        return self.look(*fields, timed=False).read()

    def read(self, name: str) -> Value:
        """The value of one field."""
        return self.look(name, timed=False).read()[name]

    def integer(self, name: str) -> int:
        """The same of a whole number."""
        return self.read(name)  # type: ignore[return-value]

    def number(self, name: str) -> float:
        """The same of a floating point number."""
        return self.read(name)  # type: ignore[return-value]

    def numbers(self, name: str) -> tuple[float, ...]:
        """The same of several."""
        return self.read(name)  # type: ignore[return-value]

    def text(self, name: str) -> str:
        """The same of a text."""
        return self.read(name)  # type: ignore[return-value]

    def write(self, name: str, value: Value) -> None:
        """Put a value there."""
        data = self.table.field(name).type.pack(value)
        self.written = True
        self.memory.write(self.address(name), data)

    def bit(self, name: str, bit: str) -> bool:
        """Is a named bit of a field set?"""
        return bool(self.integer(name) & self.mask(name, bit))

    def set_bit(self, name: str, bit: str, on: bool) -> None:
        """Set or clear a named bit; its neighbours stay as they are."""
        mask, old = self.mask(name, bit), self.integer(name)
        new = old | mask if on else old & ~mask
        if new != old:
            self.write(name, new)

    def mask(self, name: str, bit: str) -> int:
        """The mask of a named bit."""
        bits = self.table.field(name).bits
        if bit not in bits:
            raise MisuseError(f"{name} has no bit {bit!r}{suggestion(bit, tuple(bits))}")
        return bits[bit]

    def meaning(self, name: str, word: str) -> int:
        """The number that stands for a word in a field."""
        values = self.table.field(name).values
        if word not in values:
            raise MisuseError(f"{name} has no value {word!r}{suggestion(word, tuple(values))}")
        return values[word]

    def forget(self) -> None:
        """Find the way to every field again. Needed for nothing but memory: ways are checked at every use."""
        for look in self._looks.values():
            look.forget()


@dataclass(frozen=True)
class Hit:
    """A place in the code where a pattern begins, and where its first instruction leads."""

    place: int
    target: int


def find_hits(memory: ProcessMemory, table: AddressTable, module: Module) -> dict[str, list[Hit]]:
    """Every occurrence of the pattern of each base that has one."""
    patterns = {name: base.pattern for name, base in table.bases.items() if base.pattern is not None}
    return {
        name: [Hit(place, rip_target(place, memory.read(place, INSTRUCTION_LENGTH))) for place in places]
        for name, places in memory.occurrences(patterns, module).items()
    }


def choose_target(base: Base, hits: Sequence[Hit], module: Module) -> tuple[int, str]:
    """Where a base lies, and a note if that is not certain; GameVersionError if its pattern does not occur.

    A getter of a few bytes occurs more than once. If all lead to one place, that is it; else the one that is known of
    this version, else the first, which is what other tools take.
    """
    targets = list(dict.fromkeys(hit.target for hit in hits))
    if not targets:
        raise GameVersionError(
            f"the code for {base.name} does not occur in {module.name}: this is not the version that the address table "
            "was made for, or a mod changes it"
        )
    if len(targets) == 1:
        return targets[0], ""
    if base.expected_rva is not None and module.base + base.expected_rva in targets:
        return module.base + base.expected_rva, ""
    # What lies outside of the program cannot be a pointer of it.
    inside = [target for target in targets if module.base <= target < module.base + module.size] or targets
    return inside[0], (
        f"the code for {base.name} occurs {len(hits)} times in {module.name} and leads to {len(targets)} places; "
        f"the first, {inside[0] - module.base:#x}, is taken"
    )


def check_version(module: Module, table: AddressTable) -> None:
    """GameVersionError if the executable is not the one the table was made for."""
    if table.file_version is not None and module.file_version != table.file_version:
        raise GameVersionError(
            f"{table.executable} has the version {module.file_version or 'unknown'}, and the addresses are those of "
            f"{table.file_version}: update the game, or choose that version among the betas in Steam"
        )
