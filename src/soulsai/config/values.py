"""Which values fit a key: by its type and limits, as the schema declares them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect
from msgspec.structs import FieldInfo

from soulsai.config.refusal import did_you_mean, refusal
from soulsai.config.toml import toml_value

LONGEST_VALUE = 120
"""Characters of a bad value that an error shows: it may be a whole table."""

LARGEST = 2**63 - 1
"""Whole numbers have 64 bits in TOML, NumPy and torch."""

NOUNS: dict[type[inspect.Type], str] = {
    inspect.IntType: "whole number",
    inspect.FloatType: "number",
    inspect.StrType: "string",
    inspect.AnyType: "setting",
}


@cache
def keys_of(section: type[msgspec.Struct]) -> dict[str, FieldInfo]:
    """The keys of a section by name."""
    return {key.name: key for key in msgspec.structs.fields(section)}


def type_of(kind: Any) -> inspect.Type:
    """The type of a key as msgspec describes it, limits and all."""
    found = inspect.type_info(kind)
    return found.type if isinstance(found, inspect.Metadata) else found


def read_value(value: object, kind: Any, key: str, source: str) -> Any:
    """A value of TOML as the type of its key; a ConfigError says what would fit."""
    try:
        new = msgspec.convert(value, kind)
    except msgspec.ValidationError:
        raise refusal(source, f"{key} must be {_describe_misfit(value, kind, source)}") from None
    for plain in _plain_values(new):
        if isinstance(plain, int) and abs(plain) > LARGEST:
            limit = f"at most {LARGEST}" if plain > 0 else f"at least {-LARGEST}"
            raise refusal(source, f"{key} must be {limit}, not {show_value(value)}")
        if not _is_storable(plain):
            raise refusal(source, f"{key} must be {describe_type(kind)}, not {show_value(value)}")
    return new


def _plain_values(value: Any) -> Iterator[Any]:
    if isinstance(value, (dict, list, tuple)):
        entries = (*value, *value.values()) if isinstance(value, dict) else value
        yield from (plain for entry in entries for plain in _plain_values(entry))
    else:
        yield value


def _is_storable(value: Any) -> bool:
    """No file can hold the half characters that a command line becomes which is not UTF-8."""
    if isinstance(value, str):
        return not any("\ud800" <= letter <= "\udfff" for letter in value)
    return not isinstance(value, float) or math.isfinite(value)


def _describe_misfit(value: object, kind: Any, source: str) -> str:
    """What fits, and what does not; with the nearest choice, or how a list of these words is written."""
    words, found = f"{describe_type(kind)}, not {show_value(value)}", type_of(kind)
    if not isinstance(value, str):
        return words
    if isinstance(found, inspect.LiteralType) and (near := did_you_mean(value, map(str, found.values))):
        return f"{words}; did you mean {near}?"
    if isinstance(found, inspect.VarTupleType) and isinstance(found.item_type, inspect.StrType):
        # Shells take away the quotes inside of brackets unless all of it is in quotes.
        example = toml_value([word.strip() for word in value.strip("[]").split(",")])
        example = repr(example) if source.startswith("--set") else example
        return f"{describe_type(kind)}, e.g. {example}, not {show_value(value)}"
    return words


def describe_type(kind: Any) -> str:
    """What fits, in words: for errors and the reference."""
    found = type_of(kind)
    match found:
        case inspect.BoolType():
            return "true or false"
        case inspect.LiteralType():
            return f"one of {', '.join(map(str, found.values))}"
        case inspect.VarTupleType():
            return f"a list of {_several(found.item_type)}"
        case inspect.TupleType():
            return f"a list of {len(found.item_types)} {_several(found.item_types[0])}"
        case inspect.DictType():
            return f"a table of {_several(found.value_type)}"
        case _:
            return f"a {NOUNS[type(found)]}{_limits(found)}"


def _several(kind: inspect.Type) -> str:
    is_union = isinstance(kind, inspect.UnionType)
    return "strings, numbers, true or false" if is_union else f"{NOUNS[type(kind)]}s{_limits(kind)}"


def _limits(kind: Any) -> str:
    limits = (getattr(kind, "ge", None), getattr(kind, "le", None))
    low, high = (f"{limit:g}" if isinstance(limit, float) else limit for limit in limits)
    if low is not None and high is not None:
        return f" from {low} to {high}"
    return f" of at least {low}" if low is not None else f" of at most {high}" if high is not None else ""


def show_value(value: object) -> str:
    """A value as an error shows it."""
    try:
        text = toml_value(value)
    except ValueError:  # Python refuses to print whole numbers of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."
