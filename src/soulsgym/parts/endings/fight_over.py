"""Somebody died."""

from __future__ import annotations

import numpy as np

from soulsgym.parts.endings.ending import Flags
from soulsgym.state import Fights, Outcome

RUNNING, WON, BROKEN = int(Outcome.RUNNING), int(Outcome.WON), int(Outcome.BROKEN)


class FightOver:
    """Ends the fights that were won or lost, and cuts off those that the game broke off."""

    def of(self, fights: Fights) -> tuple[Flags, Flags]:
        """Fights that are over, and fights that a failure of the game ended."""
        broken = np.asarray(fights["outcome"] == BROKEN)
        return (fights["outcome"] != RUNNING) & ~broken, broken

    def won(self, fights: Fights) -> Flags:
        """Fights in which the boss died."""
        return np.asarray(fights["outcome"] == WON)
