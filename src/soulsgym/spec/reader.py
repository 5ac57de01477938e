"""Reads one TOML table strictly: every key known, every number in range and with a stated source."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from soulsgym.errors import DataError, suggestion

SOURCES = ("measured", "derived", "public", "guess")
"""measured: a recording of the game; derived: worked out from those; public: published; guess: what players know."""
LARGEST = 1e6
"""No number of a data file is larger, so that whatever the simulator makes of one stays finite."""


def read_text(file: Path) -> str:
    """The text of a file, or a DataError that says why it cannot be read."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(file, "file", file.name, f"cannot be read: {error.strerror}") from error
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


class Table:
    """A table of a data file from which values are taken by name, once each."""

    def __init__(self, file: Path, path: str, content: object) -> None:
        if not isinstance(content, Mapping):
            raise DataError(file, path, content, "must be a table")
        self.file, self.path = file, path
        self._content: dict[str, Any] = dict(content)
        self._known: list[str] = ["source"]
        self._numbers: list[str] = []
        self._source = self._content.pop("source", None)

    def error(self, key: str, value: object, reason: str) -> DataError:
        """The error for `value` under `key` of this table, or for the table itself."""
        return DataError(self.file, ".".join(part for part in (self.path, key) if part), value, reason)

    def has(self, key: str) -> bool:
        """Is the key there, not yet taken?"""
        self._known.append(key)
        return key in self._content

    def names(self) -> tuple[str, ...]:
        """What is there, not yet taken."""
        return tuple(self._content)

    def is_list(self, key: str) -> bool:
        """Is there a list under the key?"""
        return isinstance(self._content.get(key), list)

    def _take(self, key: str, kind: str) -> Any:
        self._known.append(key)
        if key not in self._content:
            raise self.error(key, None, f"is missing; give {kind}")
        return self._content.pop(key)

    def number(self, key: str, *, low: float = -LARGEST, high: float = LARGEST, default: float | None = None) -> float:
        """A number within [low, high]."""
        if default is not None and not self.has(key):
            return default
        value = self._take(key, "a number")
        self._numbers.append(key)
        return self._checked(key, value, low, high)

    def whole(self, key: str, *, low: int, high: int) -> int:
        """A whole number within [low, high]."""
        value = self.number(key, low=low, high=high)
        if not value.is_integer():
            raise self.error(key, value, "must be a whole number")
        return int(value)

    def numbers(self, key: str, *, low: float = -LARGEST, high: float = LARGEST, count: int = 0) -> tuple[float, ...]:
        """A list of numbers within [low, high]; `count` fixes its length."""
        values = self._take(key, "a list of numbers")
        self._numbers.append(key)
        if not isinstance(values, list) or not values or (count and len(values) != count):
            raise self.error(key, values, f"must be a list of {count or 'one or more'} numbers")
        return tuple(self._checked(key, value, low, high) for value in values)

    def lists(self, key: str) -> list[tuple[float, ...]]:
        """A list of lists of numbers."""
        rows = self._take(key, "a list of lists of numbers")
        self._numbers.append(key)
        if not isinstance(rows, list) or not rows or not all(isinstance(row, list) for row in rows):
            raise self.error(key, rows, "must be a list of lists of numbers")
        return [tuple(self._checked(key, value, -LARGEST, LARGEST) for value in row) for row in rows]

    def span(self, key: str, *, low: float = -LARGEST, high: float = LARGEST) -> tuple[float, float]:
        """Two numbers, the first not above the second."""
        first, second = self.numbers(key, low=low, high=high, count=2)
        if first > second:
            raise self.error(key, [first, second], "must not begin above its end")
        return first, second

    def _checked(self, key: str, value: object, low: float, high: float) -> float:
        # isfinite would fail on a whole number that no float can hold; the bounds refuse it.
        endless = isinstance(value, float) and not math.isfinite(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or endless:
            raise self.error(key, value, "must be a finite number")
        if value < low:
            raise self.error(key, value, f"must be at least {low:g}")
        if value > high:
            raise self.error(key, value, f"must be at most {high:g}")
        return float(value)

    def text(self, key: str, *, among: tuple[str, ...] | None = None, default: str | None = None) -> str:
        """A string, one of `among` if given."""
        if default is not None and not self.has(key):
            return default
        value = self._take(key, "a string")
        if not isinstance(value, str):
            raise self.error(key, value, "must be a string")
        if among is not None and value not in among:
            raise self.error(key, value, f"is not known{suggestion(value, among)}")
        return value

    def texts(self, key: str, *, among: tuple[str, ...] | None = None, count: int = 0) -> tuple[str, ...]:
        """A list of strings, each one of `among` if given; `count` fixes its length."""
        values = self._take(key, "a list of strings")
        if not isinstance(values, list) or not values or (count and len(values) != count):
            raise self.error(key, values, f"must be a list of {count or 'one or more'} strings")
        for value in values:
            if not isinstance(value, str):
                raise self.error(key, value, "must be a string")
            if among is not None and value not in among:
                raise self.error(key, value, f"is not known{suggestion(value, among)}")
        return tuple(values)

    def flag(self, key: str) -> bool:
        """True or false; false when absent."""
        if not self.has(key):
            return False
        value = self._take(key, "true or false")
        if not isinstance(value, bool):
            raise self.error(key, value, "must be true or false")
        return value

    def table(self, key: str) -> Table:
        """The table under `key`."""
        return Table(self.file, f"{self.path}.{key}" if self.path else key, self._take(key, "a table"))

    def tables(self, key: str) -> Iterator[tuple[str, Table]]:
        """Every table in the table under `key`, by name; none when absent."""
        if not self.has(key):
            return
        content = self._take(key, "a table of tables")
        path = f"{self.path}.{key}" if self.path else key
        if not isinstance(content, Mapping):
            raise self.error(key, content, "must be a table of tables")
        for name, inner in content.items():
            yield name, Table(self.file, f"{path}.{name}", inner)

    def rows(self, key: str) -> Iterator[Table]:
        """Every table in the list under `key`; none when absent."""
        if not self.has(key):
            return
        content = self._take(key, "a list of tables")
        if not isinstance(content, list):
            raise self.error(key, content, "must be a list of tables")
        path = f"{self.path}.{key}" if self.path else key
        for index, inner in enumerate(content):
            yield Table(self.file, f"{path}[{index}]", inner)

    def weights(self, key: str) -> dict[str, float]:
        """A table of weights by name, at least one of them above 0."""
        inner = self.table(key)
        weights = {name: inner.number(name, low=0.0) for name in list(inner._content)}
        if not any(weights.values()):
            raise self.error(key, weights, "must hold at least one weight above 0")
        inner.close(inherited_source=True)
        self.cover(key)
        return weights

    def named(self, key: str, *, low: float = -LARGEST, high: float = LARGEST) -> dict[str, float]:
        """A table of numbers by name; empty when absent."""
        if not self.has(key):
            return {}
        inner = self.table(key)
        numbers = {name: inner.number(name, low=low, high=high) for name in list(inner._content)}
        inner.close(inherited_source=True)
        self.cover(key)
        return numbers

    def cover(self, key: str) -> None:
        """This table's source stands for the numbers inside `key` too."""
        self._numbers.append(key)

    def close(self, *, inherited_source: bool = False) -> dict[str, str]:
        """Refuse what was not taken, and return the source of every number that was."""
        for key, value in self._content.items():
            raise self.error(key, value, f"is not a known key{suggestion(key, tuple(self._known))}")
        self._check_source()
        if inherited_source and self._source is None:
            return {}
        return {key: self._source_of(key) for key in self._numbers}

    def _check_source(self) -> None:
        by_key = self._source if isinstance(self._source, Mapping) else {"": self._source}
        for name, source in by_key.items():
            key = f"source.{name}" if name else "source"
            if name not in ("", "*", *self._known):
                raise self.error(key, source, f"names no key here{suggestion(name, tuple(self._known))}")
            if source is not None and source not in SOURCES:
                raise self.error(key, source, f"is not one of {', '.join(SOURCES)}")

    def _source_of(self, key: str) -> str:
        source = self._source
        if isinstance(source, Mapping):
            source = source.get(key, source.get("*"))
        if source is None:
            raise self.error(key, None, f"has no source; give one of {', '.join(SOURCES)}")
        return str(source)
