"""How a config field is declared: its default, what it means, and which values it may have."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Setting:
    """What is known of a field beside its type and default."""

    text: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()


def setting(
    default: Any,
    text: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """A dataclass field with its meaning and limits (inclusive) beside it, so that the reference can be generated."""
    about = {"setting": Setting(text, low, high, choices)}
    if isinstance(default, (dict, list)):
        return field(default_factory=lambda: copy.deepcopy(default), metadata=about)
    return field(default=default, metadata=about)
