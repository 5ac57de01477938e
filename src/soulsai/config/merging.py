"""Settings laid over a config: a table, as TOML gives it, or single ones from the command line (`--set`)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from soulsai.config.checks import check_config
from soulsai.config.refusal import refusal, way_out
from soulsai.config.schema import Config
from soulsai.config.values import keys_of, read_value
from soulsai.errors import ConfigError

SECTIONS: dict[str, type[Struct]] = {
    name: key.type for name, key in keys_of(Config).items() if isinstance(key.type, type)
}

WITHOUT_ZERO = re.compile(r"[+-]?\.[0-9]+(e[+-]?[0-9]+)?", re.IGNORECASE)
"""Such as .99, which people type and TOML does not know."""

Table = Mapping[str, object]
Section = TypeVar("Section", bound=Struct)


def merge(config: Config, table: Table, source: str) -> Config:
    """The config with the table's keys replaced; `source` says in errors where the table comes from."""
    sections = {name: _section(config, name, table[name], source) for name in table if name in SECTIONS}
    plain = {name: value for name, value in table.items() if name not in SECTIONS}
    return replace(merge_section(config, plain, "", source), **sections)


def table_of(key: str, value: object) -> dict[str, Any]:
    """The table that sets one key, such as `fight.number`; the name of an entry of a table may have dots."""
    table: Any = value
    for part in reversed(key.split(".", 2)):
        table = {part: table}
    return {**table}


def _section(config: Config, name: str, table: object, source: str) -> Struct:
    if not isinstance(table, dict):
        example = next(iter(keys_of(SECTIONS[name])))
        raise refusal(source, f"{name} is a section, not a key: give one of its keys, such as {name}.{example}")
    section: Struct = getattr(config, name)
    return merge_section(section, table, f"{name}.", source)


def merge_section(section: Section, table: Table, prefix: str, source: str) -> Section:
    """The section with the table's keys replaced; `prefix` is what errors write before a key."""
    known, changes = keys_of(type(section)), dict[str, Any]()
    for name, value in table.items():
        if name not in known:
            is_section = isinstance(value, dict) and not prefix
            raise _unknown_section(name, source) if is_section else _unknown_key(name, prefix, known, source)
        new = read_value(value, known[name].type, f"{prefix}{name}", source)
        # Tables add to what was there, so that one weight is changed without repeating all.
        changes[name] = getattr(section, name) | new if isinstance(new, dict) else new
    return replace(section, **changes)


def _unknown_section(name: str, source: str) -> ConfigError:
    return refusal(source, f"there is no section [{name}]; {way_out(name, SECTIONS, '[{}]', 'the sections are {}')}")


def _unknown_key(name: str, prefix: str, known: Mapping[str, object], source: str) -> ConfigError:
    """With the nearest key of the same section, else the same key of another, else all there are."""
    elsewhere = [f"{section}.{name}" for section, kind in SECTIONS.items() if name in keys_of(kind)]
    otherwise = f"did you mean {' or '.join(elsewhere)}?" if elsewhere else "the keys there are {}"
    return refusal(source, f"there is no key {prefix}{name}; {way_out(name, known, prefix + '{}', otherwise)}")


def with_settings(
    config: Config, settings: Sequence[str], *, first: Sequence[str] = (), source: str = "settings"
) -> Config:
    """The config with these settings changed, the last of a key counting; they are checked together, after all.

    `first` come before them and are not the user's, so errors do not quote them; without others they name `source`.
    """
    for setting in (*first, *settings):
        config = _with_setting(config, setting)
    return check_config(config, " ".join(f"--set {setting}" for setting in settings) or source)


def _with_setting(config: Config, setting: str) -> Config:
    name, equals, text = (part.strip() for part in setting.partition("="))
    if not (name and equals and text):
        raise refusal(
            f"--set {setting}", 'give it as section.key=value, such as fight.number=64, or key="" for no text'
        )
    return merge(config, table_of(name, _parse(text)), f"--set {setting}")


def _parse(text: str) -> object:
    """The value as TOML reads it; what is not TOML is a text without its quotes, since shells take those away."""
    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return float(text) if WITHOUT_ZERO.fullmatch(text) else text
    return table["value"] if len(table) == 1 else text
