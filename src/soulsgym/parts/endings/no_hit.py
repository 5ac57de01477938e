"""The first hit is the last."""

from __future__ import annotations

import numpy as np

from soulsgym.parts.endings.ending import Flags
from soulsgym.state import Fights


class NoHit:
    """Ends a fight, as lost, once the player has taken damage."""

    def of(self, fights: Fights) -> tuple[Flags, Flags]:
        """Fights in which the player was hit, and none cut off."""
        return fights["taken_total"] > 0.0, np.zeros(len(fights), np.bool_)

    def won(self, fights: Fights) -> Flags:
        """Fights without a hit: one taken together with the winning blow still loses."""
        return np.asarray(fights["taken_total"] == 0.0)
