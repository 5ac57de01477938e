"""The player has died."""

from __future__ import annotations

from typing import Any

from soulsgym.compiling import inner
from soulsgym.parts.rewards.term import term
from soulsgym.parts.rewards.terms.end import end


@term("death", "-1 when the player dies or falls")
@inner
def death(fight: Any) -> Any:
    """The worse half of `end`."""
    return min(end(fight), 0.0)
