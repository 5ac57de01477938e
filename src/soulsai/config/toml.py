"""Configs as TOML text, every key in the order of the schema, and what differs between two of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import tomli_w
from msgspec import Struct

from soulsai.config.algorithms import algorithm_settings
from soulsai.config.schema import Config

NOT_SET = "not set"


def config_to_toml(config: Config) -> str:
    """Every key with its value; reading it back gives the same config, to the last bit.

    Sections of other algorithms than its own are left out, unless something in them was changed.
    """
    table: dict[str, Any] = msgspec.to_builtins(config, order="deterministic")
    for name in algorithm_settings().keys() - {config.algorithm}:
        if getattr(config, name) == algorithm_settings()[name].section():
            del table[name]
    return tomli_w.dumps(table)


def toml_value(value: object) -> str:
    """One value as TOML writes it, in one line; also what errors and differences show."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_key(name)} = {toml_value(value[name])}' for name in sorted(value))}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(toml_value, value))}]"
    return tomli_w.dumps({"x": value}).removeprefix("x = ").removesuffix("\n")


def _key(name: str) -> str:
    return tomli_w.dumps({name: 0}).removesuffix(" = 0\n")


def differences(a: Config, b: Config) -> list[str]:
    """One line for every key that differs, such as `fight.number: 512 -> 64`, in the order of the schema."""
    return [f"{key}: {old} -> {new}" for key, old, new in _pairs(a, b, "") if old != new]


def _pairs(a: Struct, b: Struct, prefix: str) -> Iterator[tuple[str, str, str]]:
    """Every dotted key with both values as text; as text, true, 1 and 1.0 are told apart."""
    for name in a.__struct_fields__:
        key, old, new = f"{prefix}{name}", getattr(a, name), getattr(b, name)
        if isinstance(old, Struct):
            yield from _pairs(old, new, f"{key}.")
        elif isinstance(old, dict):
            yield from ((f"{key}.{entry}", _entry(old, entry), _entry(new, entry)) for entry in sorted(old | new))
        else:
            yield key, toml_value(old), toml_value(new)


def _entry(table: dict[str, Any], entry: str) -> str:
    return toml_value(table[entry]) if entry in table else NOT_SET
