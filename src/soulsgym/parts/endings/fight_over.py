"""Somebody died."""

from __future__ import annotations

import numpy as np

from soulsgym.parts.endings.ending import Flags
from soulsgym.state import Fights, Outcome

RUNNING, WON = int(Outcome.RUNNING), int(Outcome.WON)


class FightOver:
    """Ends the fights that were won or lost."""

    def of(self, fights: Fights) -> tuple[Flags, Flags]:
        """Fights that are over, and none cut off."""
        return fights["outcome"] != RUNNING, np.zeros(len(fights), np.bool_)

    def won(self, fights: Fights) -> Flags:
        """Fights in which the boss died."""
        return np.asarray(fights["outcome"] == WON)
