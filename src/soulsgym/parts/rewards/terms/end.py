"""How the fight ended."""

from __future__ import annotations

from typing import Any

from soulsgym.compiling import inner
from soulsgym.parts.rewards.term import term
from soulsgym.state import Outcome

RUNNING, WON, BROKEN = int(Outcome.RUNNING), int(Outcome.WON), int(Outcome.BROKEN)


@term("end", "win and death in one: 1 or -1")
@inner
def end(fight: Any) -> float:
    """0 while it runs, and where the game broke it off."""
    if fight.outcome == RUNNING or fight.outcome == BROKEN:
        return 0.0
    return 1.0 if fight.outcome == WON else -1.0
