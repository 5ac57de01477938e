"""A fight takes too long."""

from __future__ import annotations

import numpy as np

from soulsgym.errors import MisuseError
from soulsgym.parts.endings.ending import Flags
from soulsgym.state import Fights


class StepLimit:
    """Cuts a fight off after `limit` environment steps; merged steps all count."""

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise MisuseError(f"step limit {limit} is not possible; give 1 or more")
        self._limit = limit

    def of(self, fights: Fights) -> tuple[Flags, Flags]:
        """No fight that is over, and those that took too long."""
        return np.zeros(len(fights), np.bool_), fights["step"] >= self._limit

    def won(self, fights: Fights) -> Flags:
        """All: how long a won fight took does not matter."""
        return np.ones(len(fights), np.bool_)
