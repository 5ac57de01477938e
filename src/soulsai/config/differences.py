"""What differs between two configs, for people: used when a run is resumed with other settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from soulsai.config.schema import Config
from soulsai.config.toml import toml_value

NOT_SET = "not set"


def differences(a: Config, b: Config) -> list[str]:
    """One line for every key that differs, such as `ppo.gamma: 0.98 -> 0.99`, in the order of the schema."""
    return [f"{key}: {old} -> {new}" for key, old, new in _pairs(a, b, "") if old != new]


def _pairs(a: Any, b: Any, prefix: str) -> Iterator[tuple[str, str, str]]:
    """Every dotted key with both values as text; as text, true, 1 and 1.0 are told apart."""
    for key in fields(a):
        name, old, new = f"{prefix}{key.name}", getattr(a, key.name), getattr(b, key.name)
        if is_dataclass(old):
            yield from _pairs(old, new, f"{name}.")
        elif isinstance(old, dict):
            yield from ((f"{name}.{entry}", _entry(old, entry), _entry(new, entry)) for entry in sorted(old | new))
        else:
            yield name, toml_value(old), toml_value(new)


def _entry(table: dict[str, Any], entry: str) -> str:
    return toml_value(table[entry]) if entry in table else NOT_SET
