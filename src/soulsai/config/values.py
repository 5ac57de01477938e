"""Which values fit a key: by its type, as annotated in the schema, and by its limits."""

from __future__ import annotations

import math
from dataclasses import Field, fields
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from soulsai.config.setting import Setting
from soulsai.config.toml import toml_value

LONGEST_VALUE = 120
"""Characters of a bad value that an error shows: it may be a whole table."""

LARGEST = 2**63 - 1
"""Whole numbers have 64 bits in TOML, NumPy and torch."""

NOUNS = {bool: "true or false", int: "whole number", float: "number", str: "text"}
FREE = Setting("")


def kinds(section: type[Any]) -> dict[str, Any]:
    """The type of every key of a section."""
    hints = get_type_hints(section)
    return {key.name: hints[key.name] for key in fields(section)}


def setting_of(key: Field[Any]) -> Setting:
    """What the schema says of a key."""
    about: Setting = key.metadata["setting"]
    return about


def fits(value: object, kind: Any, about: Setting = FREE) -> bool:
    """May a key of this type and these limits have this value, as TOML gives it?"""
    origin = get_origin(kind)
    if origin is tuple:
        return _list_fits(value, get_args(kind), about)
    if origin is dict:
        return isinstance(value, dict) and all(
            fits(name, str) and fits(entry, get_args(kind)[1], about) for name, entry in value.items()
        )
    if origin is UnionType:
        return any(fits(value, one, about) for one in get_args(kind))
    return _plain_fits(value, kind, about)


def _list_fits(value: object, parts: tuple[Any, ...], about: Setting) -> bool:
    if not isinstance(value, list):
        return False
    if parts[-1] is not Ellipsis and len(value) != len(parts):
        return False
    return all(fits(entry, parts[0], about) for entry in value)


def _plain_fits(value: object, kind: type, about: Setting) -> bool:
    if isinstance(value, str):
        return kind is str and _is_unicode(value) and (not about.choices or value in about.choices)
    if isinstance(value, bool):  # before int, which it is to Python
        return kind is bool
    if isinstance(value, int):
        return kind in (int, float) and abs(value) <= LARGEST and _is_within(value, about)
    return isinstance(value, float) and kind is float and math.isfinite(value) and _is_within(value, about)


def _is_unicode(text: str) -> bool:
    """A command line that is not UTF-8 reaches Python as half characters, which no file can hold."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _is_within(value: float, about: Setting) -> bool:
    above = about.low is None or value >= about.low
    return above and (about.high is None or value <= about.high)


def taken(value: Any, kind: Any) -> Any:
    """A fitting value as the schema's type: lists become tuples, and whole numbers floats where those are wanted."""
    origin = get_origin(kind)
    if origin is tuple:
        return tuple(taken(entry, get_args(kind)[0]) for entry in value)
    if origin is dict:
        return {name: taken(entry, get_args(kind)[1]) for name, entry in value.items()}
    return float(value) if kind is float else value


def wanted(kind: Any, about: Setting = FREE) -> str:
    """What fits, in words: for errors and the reference."""
    origin = get_origin(kind)
    if origin is tuple:
        return _wanted_list(get_args(kind), about)
    if origin is dict:
        return f"a table of {_several(get_args(kind)[1])}"
    if about.choices:
        return f"one of {', '.join(about.choices)}"
    noun = NOUNS[kind]
    return noun if kind is bool else f"a {noun}{_limits(about)}"


def _wanted_list(parts: tuple[Any, ...], about: Setting) -> str:
    count = "" if parts[-1] is Ellipsis else f"{len(parts)} "
    return f"a list of {count}{_several(parts[0])}{_limits(about)}"


def _several(kind: Any) -> str:
    if get_origin(kind) is UnionType:
        return "texts, numbers, true or false"
    return f"{NOUNS[kind]}s"


def _limits(about: Setting) -> str:
    if about.low is not None and about.high is not None:
        return f" from {_number(about.low)} to {_number(about.high)}"
    if about.low is not None:
        return f" of at least {_number(about.low)}"
    return "" if about.high is None else f" of at most {_number(about.high)}"


def _number(limit: float) -> str:
    return str(limit) if isinstance(limit, int) else f"{limit:g}"


def shown(value: object) -> str:
    """A value as an error shows it."""
    try:
        text = toml_value(value)
    except ValueError:  # Python refuses to print whole numbers of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."
