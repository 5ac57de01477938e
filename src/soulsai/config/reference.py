"""The config reference, generated from the schema."""

from __future__ import annotations

from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from soulsai.config.merging import SECTIONS
from soulsai.config.presets import preset_description, preset_names
from soulsai.config.schema import Config
from soulsai.config.toml import toml_value
from soulsai.config.values import kinds, setting_of, wanted

OPENING = """\
# Config reference

Generated from the schema with `souls config reference > docs/config.md`.

A config is a TOML file. What it leaves out has the default below; a key that is not below is refused.
`extends = "iudex"` at the top begins with a preset instead of the defaults. On the command line,
`--set ppo.gamma=0.99` changes one key and `--set reward.weights.roll=-0.01` one entry of a table. A table in a file
or on the command line adds to the entries that are already there. Every run keeps its whole config."""


def reference() -> str:
    """All presets, sections and keys as Markdown, without a newline at the end."""
    sections = [_section(f"[{name}]", kind) for name, kind in SECTIONS.items()]
    return "\n\n".join([OPENING, _presets(), _section("Top of the file", Config), *sections])


def write_reference(file: Path) -> None:
    """Write the reference as a page."""
    file.write_text(reference() + "\n", encoding="utf-8", newline="\n")


def _presets() -> str:
    rows = [f"| `{name}` | {preset_description(name)} |" for name in preset_names()]
    return "\n".join(["## Presets", "", "| preset | what it is for |", "|---|---|", *rows])


def _section(title: str, section: type) -> str:
    rows = [_row(key, kinds(section)[key.name]) for key in fields(section) if key.name not in SECTIONS]
    head = ["| key | default | values | meaning |", "|---|---|---|---|"]
    return "\n".join([f"## {title}", "", str(section.__doc__), "", *head, *rows])


def _row(key: Field[Any], kind: Any) -> str:
    about = setting_of(key)
    default = toml_value(_default(key))
    return f"| `{key.name}` | `{default}` | {wanted(kind, about)} | {about.text} |"


def _default(key: Field[Any]) -> object:
    return key.default_factory() if callable(key.default_factory) else key.default
