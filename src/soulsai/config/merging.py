"""A table of settings, as TOML gives it, laid over a config; whatever the schema does not know is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from soulsai.config.refusal import did_you_mean, refusal
from soulsai.config.schema import Config
from soulsai.config.setting import Setting
from soulsai.config.values import fits, kinds, setting_of, shown, taken, wanted

SECTIONS = {name: kind for name, kind in kinds(Config).items() if isinstance(kind, type) and is_dataclass(kind)}

Table = Mapping[str, object]


def merged(config: Config, table: Table, source: str) -> Config:
    """The config with the table's keys replaced; `source` says in errors where the table comes from."""
    sections = {name: _merged_section(config, name, table[name], source) for name in table if name in SECTIONS}
    plain = {name: value for name, value in table.items() if name not in SECTIONS}
    with_plain: Config = _replaced(config, plain, "", source)
    return replace(with_plain, **sections)


def _merged_section(config: Config, name: str, table: object, source: str) -> Any:
    if not isinstance(table, dict):
        example = next(iter(kinds(SECTIONS[name])))
        raise refusal(source, f"{name} is a section, not a key: give one of its keys, such as {name}.{example}")
    return _replaced(getattr(config, name), table, f"{name}.", source)


def _replaced(section: Any, table: Table, prefix: str, source: str) -> Any:
    """The section with the table's keys replaced; `prefix` is what errors write before a key."""
    types, known = kinds(type(section)), {key.name: key for key in fields(section)}
    changes = {}
    for name, value in table.items():
        if name not in known:
            raise _unknown(name, value, prefix, source)
        about = setting_of(known[name])
        changes[name] = _value(getattr(section, name), value, types[name], about, f"{prefix}{name}", source)
    return replace(section, **changes)


def _value(old: Any, value: object, kind: Any, about: Setting, key: str, source: str) -> Any:
    """The new value of one key. Tables add to what was there, so that one weight is changed without repeating all."""
    if not fits(value, kind, about):
        raise _unfit(value, kind, about, key, source)
    new = taken(value, kind)
    return old | new if isinstance(new, dict) else new


def _unfit(value: object, kind: Any, about: Setting, key: str, source: str) -> Exception:
    near = did_you_mean(value, about.choices) if isinstance(value, str) else None
    hint = f"; did you mean {near}?" if near else ""
    return refusal(source, f"{key} must be {wanted(kind, about)}, not {shown(value)}{hint}")


def _unknown(name: str, value: object, prefix: str, source: str) -> Exception:
    if isinstance(value, dict) and not prefix:
        return refusal(source, f"there is no section [{name}]; {_nearest_section(name)}")
    return refusal(source, f"there is no key {prefix}{name}; {_nearest_key(name, prefix)}")


def _nearest_section(name: str) -> str:
    near = did_you_mean(name, SECTIONS)
    return f"did you mean [{near}]?" if near else f"the sections are {', '.join(SECTIONS)}"


def _nearest_key(name: str, prefix: str) -> str:
    """The nearest key of the same section, else the same key of another, else all there are."""
    here = kinds(SECTIONS[prefix[:-1]] if prefix else Config)
    elsewhere = [f"{section}.{name}" for section, kind in SECTIONS.items() if name in kinds(kind)]
    near = did_you_mean(name, here)
    if near:
        return f"did you mean {prefix}{near}?"
    if elsewhere:
        return f"did you mean {' or '.join(elsewhere)}?"
    return f"the keys there are {', '.join(here)}"
