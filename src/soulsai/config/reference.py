"""The config reference, generated from the schema."""

from __future__ import annotations

from msgspec import Struct, inspect
from msgspec.structs import FieldInfo

from soulsai.config.merging import SECTIONS
from soulsai.config.presets import preset_description, preset_names
from soulsai.config.schema import Config
from soulsai.config.toml import toml_value
from soulsai.config.values import describe_type, keys_of

OPENING = """\
# Config reference

Generated from the schema with `souls config reference > docs/config.md`.

A config is a TOML file. What it leaves out has the default below; a key that is not below is refused.
`extends = "iudex"` at the top begins with a preset instead of the defaults, and `extends = "mine.toml"` with another
file, found from the folder of the file that names it. On the command line, `--set fight.number=64` changes one key and
`--set reward.weights.roll=-0.01` one entry of a table. A table in a file or on the command line adds to the entries
that are already there. A section of an algorithm that is not the run's own is kept and changes nothing. Every run
keeps its whole config."""


def reference() -> str:
    """All presets, sections and keys as Markdown, without a newline at the end."""
    sections = [_section(f"[{name}]", kind) for name, kind in SECTIONS.items()]
    return "\n\n".join([OPENING, _presets(), _section("Top of the file", Config), *sections])


def _presets() -> str:
    rows = [f"| `{name}` | {preset_description(name)} |" for name in preset_names()]
    return "\n".join(["## Presets", "", "| preset | what it is for |", "|---|---|", *rows])


def _section(title: str, section: type[Struct]) -> str:
    rows = [_row(key) for name, key in keys_of(section).items() if name not in SECTIONS]
    head = ["| key | default | values | meaning |", "|---|---|---|---|"]
    return "\n".join([f"## {title}", "", str(section.__doc__), "", *head, *rows])


def _row(key: FieldInfo) -> str:
    default = key.default_factory() if callable(key.default_factory) else key.default
    found = inspect.type_info(key.type)
    meaning = (found.extra_json_schema or {}).get("description", "") if isinstance(found, inspect.Metadata) else ""
    return f"| `{key.name}` | `{toml_value(default)}` | {describe_type(key.type)} | {meaning} |"
