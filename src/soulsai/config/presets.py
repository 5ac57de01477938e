"""Configs from TOML: files of the user, and presets by name. Both may build on a preset with `extends`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from soulsai.config.checks import checked
from soulsai.config.merging import merged
from soulsai.config.refusal import did_you_mean, refusal
from soulsai.config.schema import Config
from soulsai.config.values import shown

FOLDER = Path(__file__).parent.parent / "presets"
EXTENDS = "extends"


def preset_names() -> tuple[str, ...]:
    """All presets, by alphabet."""
    return tuple(sorted(file.stem for file in FOLDER.glob("*.toml")))


def preset_description(name: str) -> str:
    """What a preset is for, in one line: the comment its file begins with."""
    return _text(_preset_file(name, "presets")).partition("\n")[0].lstrip("#").strip()


def load_preset(name: str) -> Config:
    """The config of a preset."""
    return _load_preset(name, "presets", ())


def read_config(file: Path) -> Config:
    """The config in a TOML file; what the file leaves out has its default."""
    return config_from_toml(_text(file), str(file))


def config_from_toml(text: str, source: str) -> Config:
    """The config in a TOML text; `source` says in errors where the text comes from."""
    return _config(text, source, ())


def _load_preset(name: str, source: str, extended_by: tuple[str, ...]) -> Config:
    """`extended_by` are the presets that wait for this one."""
    file = _preset_file(name, source)
    if name in extended_by:
        raise refusal(source, f"presets extend one another in a circle: {' -> '.join((*extended_by, name))}")
    return _config(_text(file), file.name, (*extended_by, name))


def _config(text: str, source: str, extended_by: tuple[str, ...]) -> Config:
    table = _table(text, source)
    base = table.pop(EXTENDS, None)
    config = Config() if base is None else _load_preset(_base_name(base, source), source, extended_by)
    return checked(merged(config, table, source), source)


def _base_name(base: object, source: str) -> str:
    if not isinstance(base, str):
        raise refusal(source, f"{EXTENDS} must be the name of a preset, not {shown(base)}")
    return base


def _preset_file(name: str, source: str) -> Path:
    known = preset_names()
    if name not in known:
        near = did_you_mean(name, known)
        way_out = f"did you mean {near}?" if near else f"there are {', '.join(known)}"
        raise refusal(source, f"there is no preset {shown(name)}; {way_out}")
    return FOLDER / f"{name}.toml"


def _table(text: str, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # beside bad TOML: numbers too long, lists too deep
        raise refusal(source, f"this is not TOML: {error}") from error


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")  # some editors of Windows put a mark before the text
    except UnicodeDecodeError as error:
        raise refusal(str(file), f"byte {error.start} is not UTF-8; save the file as UTF-8") from error
    except OSError as error:
        raise refusal(str(file), f"this config cannot be read: {error.strerror}") from error
