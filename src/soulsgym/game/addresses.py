"""Where a game keeps its values: bases, pointer chains and types, read from data/<title>/addresses.toml."""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from soulsgym.errors import MisuseError, suggestion
from soulsgym.game.patterns import Pattern
from soulsgym.spec.fight import DATA, known_titles
from soulsgym.spec.reader import Key, Mark, Number, Table, Words, read_toml
from soulsgym.spec.title import Attribute, parse_title

TITLES = known_titles()
WIDEST_RVA = 1 << 31
"""An executable is smaller than this: addresses in it are reached by signed 32-bit distances."""
FARTHEST_OFFSET = 1 << 24
LARGEST_FIELD = 4096
Id = Annotated[int, Meta(ge=-(1 << 31), le=(1 << 31) - 1)]

_NUMBERS = {"u8": "B", "i32": "i", "u32": "I", "f32": "f"}
_TYPE = re.compile(r"(?P<kind>f32x|text|bytes)(?P<count>[1-9]\d{0,3})|(?P<number>u8|i32|u32|f32)")

Value = int | float | str | bytes | tuple[float, ...]


@dataclass(frozen=True)
class ValueType:
    """How a value lies in memory: i32, u32, u8, f32, f32xN, textN (UTF-16) or bytesN."""

    name: str
    kind: str
    size: int
    _layout: struct.Struct

    @classmethod
    def parse(cls, name: str) -> ValueType:
        """The type of that name, or a ValueError."""
        match = _TYPE.fullmatch(name)
        if match is None:
            raise ValueError("is not a type; give u8, i32, u32, f32, f32xN, textN or bytesN")
        kind, count = match["number"] or match["kind"], int(match["count"] or 1)
        code = _NUMBERS.get(kind) or {"f32x": f"{count}f", "text": f"{count}s", "bytes": f"{count}s"}[kind]
        layout = struct.Struct("<" + code)
        if layout.size > LARGEST_FIELD or (kind == "text" and count % 2):
            raise ValueError(f"must hold an even number of bytes and at most {LARGEST_FIELD}")
        return cls(name, kind, layout.size, layout)

    @property
    def code(self) -> str:
        """Its part of a struct layout."""
        return self._layout.format.removeprefix("<")

    @property
    def items(self) -> int:
        """Values that unpacking its part gives."""
        return self.size // 4 if self.kind == "f32x" else 1

    def unpack(self, data: bytes, offset: int = 0) -> Value:
        """The value at `offset` of `data`; a ValueError if its bytes are no text."""
        values = self._layout.unpack_from(data, offset)
        if self.kind == "f32x":
            return values
        return decoded(values[0]) if self.kind == "text" else values[0]

    def pack(self, value: Value) -> bytes:
        """The bytes of a value; a MisuseError if it does not fit."""
        try:
            if self.kind == "f32x":
                return self._layout.pack(*value)  # type: ignore[misc]
            if self.kind == "text":
                return self._layout.pack(_encoded(value, self.size))
            if self.kind == "bytes" and len(value) != self.size:  # type: ignore[arg-type]
                raise struct.error(f"{self.size} bytes are wanted")
            return self._layout.pack(value)
        except (struct.error, TypeError, OverflowError) as error:
            raise MisuseError(f"{value!r} cannot be written as {self.name}: {error}") from error


@functools.lru_cache(maxsize=4096)
def decoded(data: bytes) -> str:
    """UTF-16 text up to the first zero unit; a ValueError if it is none. Names of animations come again and again."""
    end = data.find(b"\0\0")
    while end % 2 and end >= 0:  # the end of one character and the beginning of the next
        end = data.find(b"\0\0", end + 1)
    return data[: end if end >= 0 else len(data) & ~1].decode("utf-16-le")


def _encoded(value: object, size: int) -> bytes:
    if not isinstance(value, str):
        raise TypeError("a string is wanted")
    data = value.encode("utf-16-le")
    if len(data) > size:
        raise struct.error(f"at most {size // 2} characters are wanted")
    return data


@dataclass(frozen=True)
class Base:
    """A pointer in the executable from which fields are reached."""

    name: str
    source: str
    pattern: Pattern | None = None
    rva: int | None = None
    direct: bool = False
    expected_rva: int | None = None  # where the pattern leads in the known version: decides if it occurs several times
    character: int | None = None  # found among the characters that are loaded, by this number


@dataclass(frozen=True)
class Field:
    """A value of the game: the way to it, its type, and what its bits and numbers mean."""

    name: str
    base: str
    offsets: tuple[int, ...]
    type: ValueType
    bits: Mapping[str, int]
    values: Mapping[str, int]
    source: str
    normal: float | None = None  # what it is in a game that nobody has touched, where that is known
    low: float | None = None  # the range of what can be
    high: float | None = None

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return self.type.size


@dataclass(frozen=True)
class BaseRow:
    """A base as the file has it."""

    name: str
    pattern: str = ""
    rva: Annotated[int, Meta(ge=0, le=WIDEST_RVA)] | None = None
    direct: bool = False
    expected_rva: Annotated[int, Meta(ge=0, le=WIDEST_RVA)] | None = None
    character: Annotated[int, Meta(ge=0, le=99_999)] | None = None


@dataclass(frozen=True)
class FieldRow:
    """A field as the file has it."""

    name: str
    base: str
    offsets: Annotated[tuple[Annotated[int, Meta(ge=0, le=FARTHEST_OFFSET)], ...], Meta(min_length=1)]
    type: str
    bits: Mapping[str, Annotated[int, Meta(ge=1, le=255)]] = field(default_factory=dict)
    values: Mapping[str, Id] = field(default_factory=dict)
    normal: Number | None = None
    low: Number | None = None
    high: Number | None = None


@dataclass(frozen=True)
class AnimationNames:
    """What the names of animations say about a fighter."""

    idle: str
    rising: str
    boss_idle: str
    attack: str
    unreliable: Words


Offset = Annotated[int, Meta(ge=0, le=FARTHEST_OFFSET)]


@dataclass(frozen=True)
class CharacterList:
    """Where the game lists the characters that are loaded, and what is where in an entry and in a character."""

    field: str  # of 16 bytes: where the list begins and where it ends
    entry_bytes: Annotated[int, Meta(ge=8, le=4096)]  # each begins with the pointer to a character
    number_at: Offset  # in a character: the number of its kind
    slot_at: Offset  # in a character: the way to the pointer to it that stays where it is


@dataclass(frozen=True)
class AddressFile:
    """An address table as the file has it; its source stands for all numbers without their own."""

    title: str
    executable: str
    window_title: str
    time: str
    bases: Annotated[tuple[BaseRow, ...], Key("base"), Mark.NAMED, Mark.COVERED]
    fields: Annotated[tuple[FieldRow, ...], Key("field"), Mark.NAMED, Mark.COVERED]
    file_version: str = ""
    animations: AnimationNames | None = None
    characters: Annotated[CharacterList | None, Mark.COVERED] = None


@dataclass(frozen=True)
class BonfireFile:
    """Bonfires as the file has them."""

    bonfires: Mapping[str, Id]
    second: Mapping[str, Id] = field(default_factory=dict)
    untended: Words = ()


@dataclass(frozen=True)
class AddressTable:
    """All addresses of one version of one game."""

    id: str
    title: str
    executable: str
    window_title: str
    file_version: str | None
    time: str
    bases: Mapping[str, Base]
    fields: Mapping[str, Field]
    animations: AnimationNames | None
    characters: CharacterList | None = None

    def field(self, name: str) -> Field:
        """The field of that name, or a MisuseError."""
        try:
            return self.fields[name]
        except KeyError:
            near = suggestion(name, tuple(self.fields))
            raise MisuseError(f"{self.title} has no field {name!r}{near}") from None


@dataclass(frozen=True)
class Bonfires:
    """Bonfires (or sites of grace) by name and by id."""

    ids: Mapping[str, int]
    names: Mapping[int, str]
    untended: frozenset[str]

    def id_of(self, name: str) -> int:
        """The id of a bonfire, or a MisuseError."""
        try:
            return self.ids[name]
        except KeyError:
            near = suggestion(name, tuple(self.ids)) if len(name) > 2 else ""
            raise MisuseError(f"no bonfire is called {name!r}{near[:200]}") from None


@functools.cache
def load_addresses(title: str) -> AddressTable:
    """The address table of a title."""
    return read_addresses(_data_file(title, "addresses.toml"), title)


def read_addresses(file: Path, title: str) -> AddressTable:
    """An address table from a file."""
    table = Table(file, "", read_toml(file))
    read = table.read(AddressFile)
    rows = dict(table.tables("base"))
    bases = {row.name: _base(row, rows[row.name], table) for row in read.bases}
    rows = dict(table.tables("field"))
    fields = {row.name: _field(row, rows[row.name], table, bases) for row in read.fields}
    table.check_known("time", read.time, tuple(fields))
    if fields[read.time].type.name != "u32":
        raise table.error("time", read.time, "must be a field of type u32")
    return AddressTable(
        id=title,
        title=read.title,
        executable=read.executable,
        window_title=read.window_title,
        file_version=read.file_version or None,
        time=read.time,
        bases=bases,
        fields=fields,
        animations=read.animations,
        characters=_characters(table, read.characters, bases, fields),
    )


def _characters(
    table: Table, found: CharacterList | None, bases: Mapping[str, Base], fields: Mapping[str, Field]
) -> CharacterList | None:
    if found is None:
        for base in bases.values():
            if base.character is not None:
                raise table.error(f"base.{base.name}.character", base.character, "needs a table [characters]")
        return None
    table.check_known("characters.field", found.field, tuple(fields))
    if fields[found.field].type.name != "bytes16":
        raise table.error("characters.field", found.field, "must be a field of type bytes16")
    return found


def _base(row: BaseRow, table: Table, file: Table) -> Base:
    pattern = None
    if row.rva is None and row.character is None:
        try:
            pattern = Pattern(table.text("pattern"))
        except ValueError as error:
            raise table.error("pattern", row.pattern, str(error)) from error
    return Base(row.name, _source(table, file), pattern, row.rva, row.direct, row.expected_rva, row.character)


def _field(row: FieldRow, table: Table, file: Table, bases: Mapping[str, Base]) -> Field:
    table.check_known("base", row.base, tuple(bases))
    if bases[row.base].direct and len(row.offsets) != 1:
        raise table.error("offsets", row.offsets, f"must be one offset: {row.base} is not a pointer")
    try:
        value_type = ValueType.parse(row.type)
    except ValueError as error:
        raise table.error("type", row.type, str(error)) from error
    if row.bits and value_type.name != "u8":
        raise table.error("bits", dict(row.bits), "are masks of one byte; give the field the type u8")
    source = _source(table, file)
    return Field(
        row.name, row.base, row.offsets, value_type, row.bits, row.values, source, row.normal, row.low, row.high
    )


def _source(table: Table, file: Table) -> str:
    return str(table.content.get("source", file.content["source"]))


@functools.cache
def load_attributes(title: str) -> tuple[Attribute, ...]:
    """The attributes of a character, in the order of `player_stats`."""
    file = _data_file(title, "title.toml")
    return parse_title(file, read_toml(file)).attributes


@functools.cache
def load_bonfires(title: str) -> Bonfires:
    """The bonfires of a title."""
    return read_bonfires(_data_file(title, "bonfires.toml"))


def read_bonfires(file: Path) -> Bonfires:
    """Bonfires from a file."""
    table = Table(file, "", read_toml(file))
    read = table.read(BonfireFile)
    for name in read.untended:
        table.check_known("untended", name, tuple(read.bonfires))
    names: dict[int, str] = {}
    for key, numbers in (("bonfires", read.bonfires), ("second", read.second)):
        for name, number in numbers.items():
            if number in names:
                raise table.error(f"{key}.{name}", number, f"is the id of {names[number]!r} already")
            names[number] = name
    return Bonfires(read.bonfires, names, frozenset(read.untended))


def _data_file(title: str, file: str) -> Path:
    if title not in TITLES:
        raise MisuseError(f"no title is called {title!r}{suggestion(title, TITLES)}")
    return DATA / title / file
