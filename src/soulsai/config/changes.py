"""Single settings from the command line: `--set ppo.gamma=0.99`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence

from soulsai.config.checks import checked
from soulsai.config.merging import merged
from soulsai.config.refusal import refusal
from soulsai.config.schema import Config

LEVELS = 3
"""section.key, or section.key.entry for an entry of a table; an entry's own name may have dots."""

WITHOUT_ZERO = re.compile(r"[+-]?\.[0-9]+(e[+-]?[0-9]+)?", re.IGNORECASE)
"""Such as .99, which people type and TOML does not know."""


def with_settings(config: Config, settings: Sequence[str]) -> Config:
    """The config with these settings changed, the last of a key counting; they are checked together, after all."""
    for setting in settings:
        config = _with_setting(config, setting)
    return checked(config, " ".join(f"--set {setting}" for setting in settings) or "settings")


def _with_setting(config: Config, setting: str) -> Config:
    name, equals, text = (part.strip() for part in setting.partition("="))
    if not (name and equals and text):
        raise refusal(f"--set {setting}", 'give it as section.key=value, such as ppo.gamma=0.99, or key="" for no text')
    value = _parsed(text)
    for part in reversed(name.split(".", LEVELS - 1)):
        value = {part: value}
    assert isinstance(value, dict)
    return merged(config, value, f"--set {setting}")


def _parsed(text: str) -> object:
    """The value as TOML reads it; what is not TOML is a text without its quotes, since shells take those away."""
    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return float(text) if WITHOUT_ZERO.fullmatch(text) else text
    return table["value"] if len(table) == 1 else text
