"""Reads data files strictly.

The tables of a file are dataclasses: their fields are the keys, and msgspec checks types and bounds. What it leaves is
done here: an unknown key is refused, every number has a stated source, and an error names file, key, value and the way
out. (msgspec's own errors name neither the value nor the key of a table in a table, nor a word that is near.)
"""

from __future__ import annotations

import enum
import math
import stat
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from soulsgym.errors import DataError, suggestion

SOURCES = ("measured", "derived", "public", "guess")
"""measured: a recording of the game; derived: worked out from those; public: published; guess: what players know."""
LARGEST = 1e6
"""No number of a data file is larger, so that whatever the simulator makes of one stays finite."""
LARGEST_BYTES = 10_000_000
"""No data file is larger; the largest of the package has 72,000."""

T = TypeVar("T")


class Mark(enum.Enum):
    """What a field of a dataclass is beside its type; given with Annotated."""

    NAMED = "its tables have names; one that has a field `name` gets it there"
    COVERED = "the source of the table around it stands for all numbers in it"
    SAME_TABLE = "its keys stand in the table around it"
    IN_ORDER = "its first number is not above its second"
    ONE_OR_MORE = "a single number stands for a list of one"


@dataclass(frozen=True)
class Key:
    """The name of a field in the file, if it is another."""

    name: str


Number = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
NotNegative = Annotated[float, Meta(ge=0.0, le=LARGEST)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Numbers = Annotated[tuple[Number, ...], Meta(min_length=1)]
Words = Annotated[tuple[str, ...], Meta(min_length=1)]
Span = Annotated[tuple[NotNegative, NotNegative], Mark.IN_ORDER]


def read_text(file: Path) -> str:
    """The text of a file, or a DataError that says why it cannot be read."""
    try:
        status = file.stat()
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            raise DataError(file, "file", file.name, "is a device or a pipe; give a file")
        if status.st_size > LARGEST_BYTES:
            raise DataError(file, "file", file.name, f"has {status.st_size:,} bytes; give at most {LARGEST_BYTES:,}")
        return file.read_text(encoding="utf-8-sig")  # editors of Windows begin a file with a mark
    except OSError as error:
        raise DataError(file, "file", file.name, f"cannot be read: {error.strerror}; check its path") from error
    except UnicodeDecodeError as error:
        raise DataError(file, "file", file.name, f"is not UTF-8 text: {error.reason} at byte {error.start}") from error
    except ValueError as error:  # a name that no file can have
        raise DataError(file, "file", file.name, f"cannot be read: {error}") from error


def parse_toml(file: Path, text: str) -> dict[str, Any]:
    """The content of a TOML file, or a DataError that says what is wrong with it."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(file, "file", file.name, f"is not TOML: {error}") from error


def read_toml(file: Path) -> dict[str, Any]:
    """The content of the TOML file on disk."""
    return parse_toml(file, read_text(file))


@dataclass(frozen=True)
class Part:
    """A field of a dataclass as a file has it."""

    field: str
    key: str
    hint: Any
    item: Any  # the dataclass of the table or the tables that it is; None for a plain value
    is_many: bool
    is_required: bool
    is_number: bool
    marks: frozenset[Mark]


@cache
def parts_of(kind: Any, given: frozenset[str] = frozenset()) -> tuple[Part, ...]:
    """The fields of a dataclass as a file has them, but for those that are given."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(_part(one, hints[one.name]) for one in fields(kind) if one.name not in given)


def _part(one: Field[Any], hint: Any) -> Part:
    base, notes = _bare(hint)
    many = get_origin(base) is tuple and is_dataclass(get_args(base)[0])
    item = get_args(base)[0] if many else base
    return Part(
        field=one.name,
        key=next((note.name for note in notes if isinstance(note, Key)), one.name),
        hint=hint,
        item=item if is_dataclass(item) else None,
        is_many=many,
        is_required=one.default is MISSING and one.default_factory is MISSING,
        is_number=_holds_numbers(base),
        marks=frozenset(note for note in notes if isinstance(note, Mark)),
    )


@cache
def keys_of(kind: Any, given: frozenset[str]) -> Mapping[str, Part]:
    """The keys of a dataclass's table, those of dataclasses in the same table among them."""
    return {
        inner.key: inner
        for part in parts_of(kind, given)
        for inner in (parts_of(part.item) if Mark.SAME_TABLE in part.marks else (part,))
    }


def _bare(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A hint without Annotated and None, and what Annotated adds to it."""
    base, notes = (hint.__origin__, hint.__metadata__) if get_origin(hint) is Annotated else (hint, ())
    if get_origin(base) in (Union, UnionType):
        [base] = [kind for kind in get_args(base) if kind is not NoneType]
        base, more = _bare(base)
        notes += more
    return base, notes


def _holds_numbers(hint: Any) -> bool:
    base, _ = _bare(hint)
    return base in (int, float) or (get_origin(base) is not Literal and any(map(_holds_numbers, get_args(base))))


class Table:
    """A table of a data file."""

    def __init__(self, file: Path, path: str, content: object) -> None:
        if not isinstance(content, Mapping):
            raise DataError(file, path, content, "must be a table")
        self.file, self.path, self.content = file, path, content

    def error(self, key: str, value: object, reason: str) -> DataError:
        """The error for `value` under `key` of this table, or for the table itself."""
        return DataError(self.file, self._path(key), list(value) if isinstance(value, tuple) else value, reason)

    def missing(self, key: str, what: str) -> DataError:
        """The error for a key that must be there."""
        return self.error(key, None, f"is missing; give {what}")

    def unknown(self, key: str, known: Collection[str]) -> DataError:
        """The error for a key that does not exist here."""
        return self.error(key, self.content[key], f"is not a known key{suggestion(key, [*known, 'source'])}")

    def check_known(self, key: str, word: str, known: tuple[str, ...]) -> None:
        """Refuse a word that is none of the known ones."""
        if word not in known:
            raise self.error(key, word, f"is not known{suggestion(word, known)}")

    def check_at_most(self, key: str, value: float, high: float) -> None:
        """Refuse a number that is above another."""
        if value > high:
            raise self.error(key, value, f"must be at most {high:g}")

    def table(self, key: str) -> Table:
        """The table under `key`."""
        if key not in self.content:
            raise self.missing(key, "a table")
        return Table(self.file, self._path(key), self.content[key])

    def tables(self, key: str) -> Iterator[tuple[str, Table]]:
        """Every table in the table under `key`, by name; none when absent."""
        content = self.content.get(key, {})
        if not isinstance(content, Mapping):
            raise self.error(key, content, "must be a table of tables")
        return ((name, Table(self.file, self._path(f"{key}.{name}"), inner)) for name, inner in content.items())

    def rows(self, key: str) -> Iterator[Table]:
        """Every table in the list under `key`; none when absent."""
        content = self.content.get(key, [])
        if not isinstance(content, list):
            raise self.error(key, content, "must be a list of tables")
        return (Table(self.file, self._path(f"{key}[{index}]"), inner) for index, inner in enumerate(content))

    def text(self, key: str) -> str:
        """A string, before the rest of the table is read."""
        if key not in self.content:
            raise self.missing(key, "a string")
        value = self.content[key]
        if not isinstance(value, str):
            raise self.error(key, value, "must be a string")
        return value

    def read(
        self,
        kind: type[T],
        sources: dict[str, str] | None = None,
        *,
        covered: bool = False,
        **given: object,
    ) -> T:
        """The dataclass that this table describes, with fields that are `given`; adds the source of every number.

        Sources are not asked for if those of the table around it cover this one.
        """
        outline: Any = (kind, frozenset(given))
        parts, keys = parts_of(*outline), keys_of(*outline)
        self._check_keys(keys)
        found = {part.field: self._value(part, sources, covered) for part in keys.values() if self._has(part)}
        for part in parts:
            if Mark.SAME_TABLE in part.marks:
                inner = parts_of(part.item)
                own = {one.field: found.pop(one.field) for one in inner if one.field in found}
                found[part.field] = self._convert(part.item, own, inner)
        made = self._convert(kind, {**found, **given}, parts)
        self._note_sources(keys, sources, covered)
        return made

    def _path(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path and key else self.path or key

    def _check_keys(self, known: Mapping[str, Part]) -> None:
        for key in self.content:
            if key not in known and key != "source":
                raise self.unknown(key, known)

    def _has(self, part: Part) -> bool:
        if part.key in self.content:
            return True
        if part.is_required:
            raise self.missing(part.key, _what(part.hint))
        return False

    def _value(self, part: Part, sources: dict[str, str] | None, covered: bool) -> Any:
        value = self.content[part.key]
        if part.item is not None:
            covered = covered or Mark.COVERED in part.marks
            if not part.is_many:
                return self.table(part.key).read(part.item, sources, covered=covered)
            if Mark.NAMED not in part.marks:
                return [row.read(part.item, sources, covered=covered) for row in self.rows(part.key)]
            has_name = "name" in part.item.__dataclass_fields__
            made = []
            for name, table in self.tables(part.key):
                given: dict[str, Any] = {"name": name} if has_name else {}
                made.append(table.read(part.item, sources, covered=covered, **given))
            return made
        if Mark.ONE_OR_MORE in part.marks and isinstance(value, (int, float)) and not isinstance(value, bool):
            return [value]
        if isinstance(value, dict) and "source" in value:
            self.table(part.key)._check_source(value)
            return {key: inner for key, inner in value.items() if key != "source"}
        return value

    def _convert(self, kind: type[T], values: Mapping[str, Any], parts: tuple[Part, ...]) -> T:
        try:
            made = msgspec.convert(values, kind)
        except msgspec.ValidationError as error:
            for part in parts:
                if part.field in values and part.item is None and not _fits(values[part.field], part.hint):
                    inner, bad, reason = _explained(values[part.field], part.hint)
                    raise self.error(part.key + inner, bad, reason) from None
            raise self.error("", values, str(error)) from None  # none of the above: an error of ours
        for part in parts:
            if Mark.IN_ORDER in part.marks and part.field in values:
                first, second = getattr(made, part.field)
                if first > second:
                    raise self.error(part.key, (first, second), "must not begin above its end")
        return made

    def _note_sources(self, keys: Mapping[str, Part], sources: dict[str, str] | None, covered: bool) -> None:
        self._check_source(keys)
        if covered:
            return
        for key in self.content:
            if key != "source" and (keys[key].is_number or Mark.COVERED in keys[key].marks):
                source = self._source_of(key)
                if sources is not None:
                    sources[self._path(key)] = source

    def _check_source(self, known: Collection[str]) -> None:
        given = self.content.get("source")
        for name, source in (given if isinstance(given, Mapping) else {"": given}).items():
            key = f"source.{name}" if name else "source"
            if name not in ("", "*", "source") and name not in known:
                raise self.error(key, source, f"names no key here{suggestion(name, [*known, 'source'])}")
            if source is not None and source not in SOURCES:
                raise self.error(key, source, f"is not one of {', '.join(SOURCES)}")

    def _source_of(self, key: str) -> str:
        source = self.content.get("source")
        if isinstance(source, Mapping):
            source = source.get(key, source.get("*"))
        if source is None:
            raise self.error(key, None, f"has no source; give one of {', '.join(SOURCES)}")
        return str(source)


def _fits(value: object, hint: Any) -> bool:
    try:
        msgspec.convert(value, hint)
    except msgspec.ValidationError:
        return False
    return True


def _what(hint: Any) -> str:
    """What to give for a key that is missing."""
    base, _ = _bare(hint)
    if get_origin(base) is tuple:
        return f"a list of {_items(get_args(base)[0])}"
    if base is str or get_origin(base) is Literal:
        return "a string"
    return "a number" if base in (int, float) else "a table"


def _items(hint: Any) -> str:
    base, _ = _bare(hint)
    if get_origin(base) is tuple:
        return f"lists of {_items(get_args(base)[0])}"
    if is_dataclass(base):
        return "tables"
    return "numbers" if base in (int, float) else "strings"


def _explained(value: Any, hint: Any) -> tuple[str, object, str]:
    """Why a value does not fit: where in it, what it is, and the reason."""
    base, notes = _bare(hint)
    meta = next((note for note in notes if isinstance(note, Meta)), Meta())
    origin, inner = get_origin(base), get_args(base)
    if origin is tuple:
        count, items = len(inner) if inner[-1] is not Ellipsis else 0, _items(inner[0])
        if not isinstance(value, list) or not value or (count and len(value) != count):
            number = "" if items.startswith("lists") else f"{count or 'one or more'} "
            return "", value, f"must be a list of {number}{items}"
        return _explained(next(one for one in value if not _fits(one, inner[0])), inner[0])
    if origin is Literal and isinstance(value, str):
        return "", value, f"is not known{suggestion(value, inner)}"
    if origin is Literal or base is str:
        return "", value, "must be a string"
    if base is bool:
        return "", value, "must be true or false"
    if base in (int, float):
        return "", value, _number_reason(value, base, meta)
    if not isinstance(value, Mapping):
        return "", value, "must be a table"
    name, bad = next((name, one) for name, one in value.items() if not _fits(one, inner[1]))
    deeper, bad, reason = _explained(bad, inner[1])
    return f".{name}{deeper}", bad, reason


def _number_reason(value: object, kind: type[Any], meta: Meta) -> str:
    # isfinite would fail on a whole number that no float can hold; the bounds refuse it.
    endless = isinstance(value, float) and not math.isfinite(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or endless:
        return "must be a finite number"
    if meta.lt is not None:
        return f"must be at least {meta.ge:g} and below {meta.lt:g}"
    if meta.ge is not None and value < meta.ge:
        return f"must be at least {meta.ge:g}"
    if meta.le is not None and value > meta.le:
        return f"must be at most {meta.le:g}"
    return "must be a whole number" if kind is int else "must be a number"
