"""The boss has died."""

from __future__ import annotations

from typing import Any

from soulsgym.compiling import inner
from soulsgym.parts.rewards.term import term
from soulsgym.parts.rewards.terms.end import end


@term("win", "1 when the boss dies")
@inner
def win(fight: Any) -> Any:
    """The better half of `end`."""
    return max(end(fight), 0.0)
