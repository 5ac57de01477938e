"""Configs from TOML: files of the user, and presets by name. Both may build on another with `extends`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from soulsai.config.checks import check_config
from soulsai.config.merging import merge
from soulsai.config.refusal import refusal, way_out
from soulsai.config.schema import Config
from soulsai.config.values import show_value
from soulsgym.spec.fight import expanded

FOLDER = Path(__file__).parent.parent / "presets"
EXTENDS = "extends"


def preset_names() -> tuple[str, ...]:
    """All presets, by alphabet."""
    return tuple(sorted(file.stem for file in FOLDER.glob("*.toml")))


def preset_description(name: str) -> str:
    """What a preset is for, in one line: the comment its file begins with."""
    return read_text(_preset_file(name, "presets")).partition("\n")[0].lstrip("#").strip()


def load_preset(name: str) -> Config:
    """The config of a preset, or of a file (.toml); what that leaves out has its default."""
    return _load(Path(name) if name.endswith(".toml") else _preset_file(name, "presets"), ())


def config_from_toml(text: str, source: str) -> Config:
    """The config in a TOML text; `source` says in errors where the text comes from."""
    return _config(text, source, ())


def _load(file: Path, extended_by: tuple[Path, ...]) -> Config:
    """`extended_by` are the files that wait for this one."""
    is_preset = file.parent == FOLDER
    return _config(read_text(file), file.name if is_preset else str(file), (*extended_by, file))


def _config(text: str, source: str, files: tuple[Path, ...]) -> Config:
    """`files` are the file of the text, if it has one, and before it those that extend it."""
    table = parse_toml(text, source)
    base = table.pop(EXTENDS, None)
    config = Config() if base is None else _load(_base_file(base, source, files), files)
    return check_config(merge(config, table, source), source)


def _base_file(base: object, source: str, files: tuple[Path, ...]) -> Path:
    if not isinstance(base, str):
        raise refusal(
            source, f"{EXTENDS} must be the name of a preset or the path of a .toml file, not {show_value(base)}"
        )
    if not base.endswith(".toml"):
        file = _preset_file(base, source)
    elif not files:  # such as a config that another machine has sent
        raise refusal(source, f"{EXTENDS} = {show_value(base)} names a file, which only a file can; name a preset")
    else:
        file = expanded(files[-1].parent / base if not base.startswith("~") else base)
    known = [one.resolve() for one in files]
    if file.resolve() in known:
        circle = " -> ".join(one.name for one in (*files[known.index(file.resolve()) :], file))
        raise refusal(source, f"files extend one another in a circle: {circle}")
    return file


def _preset_file(name: str, source: str) -> Path:
    known = preset_names()
    if name not in known:
        raise refusal(source, f"there is no preset {show_value(name)}; {way_out(name, known)}")
    return FOLDER / f"{name}.toml"


def parse_toml(text: str, source: str) -> dict[str, Any]:
    """The table in a TOML text, or a ConfigError that says what is wrong with it."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # beside bad TOML: numbers too long, lists too deep
        raise refusal(source, f"this is not TOML: {error}") from error


def read_text(file: Path, what: str = "config") -> str:
    """The text of a file with settings, or a ConfigError that says why it cannot be read."""
    try:
        return file.read_text(encoding="utf-8-sig")  # some editors of Windows put a mark before the text
    except UnicodeDecodeError as error:
        raise refusal(str(file), f"byte {error.start} is not UTF-8; save the file as UTF-8") from error
    except OSError as error:
        way_out = "; check the path, or see `souls presets`" if what == "config" else ""
        raise refusal(str(file), f"this {what} cannot be read: {error.strerror}{way_out}") from error
