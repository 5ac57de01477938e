"""Configs as TOML text: every key, in the order of the schema, so that equal configs give equal texts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from soulsai.config.schema import Config

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def config_to_toml(config: Config) -> str:
    """Every key with its value; reading it back gives the same config, to the last bit."""
    sections = {key.name: getattr(config, key.name) for key in fields(config)}
    blocks = [_lines(config)]
    blocks += [[f"[{name}]", *_lines(section)] for name, section in sections.items() if is_dataclass(section)]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _lines(section: Any) -> list[str]:
    """The keys of one table that are not tables of their own."""
    values = {key.name: getattr(section, key.name) for key in fields(section)}
    return [f"{name} = {toml_value(value)}" for name, value in values.items() if not is_dataclass(value)]


def toml_value(value: object) -> str:
    """One value as TOML writes it; also what errors and differences show."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, Mapping):
        return _inline_table(value)
    return str(value)  # of a float, the shortest text that gives the same bits again


def _quoted(text: str) -> str:
    # The escapes of JSON are among those of TOML, which wants one more character escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _inline_table(table: Mapping[str, object]) -> str:
    entries = [f"{_key(name)} = {toml_value(table[name])}" for name in sorted(table)]
    return f"{{{', '.join(entries)}}}"


def _key(name: str) -> str:
    return name if BARE_KEY.fullmatch(name) else _quoted(name)
