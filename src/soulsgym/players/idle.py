"""A player that does nothing."""

from __future__ import annotations

import numpy as np

from soulsgym.actions import NOTHING
from soulsgym.players.player import Actions, Mask, Observation


class Idle:
    """Stands still."""

    def reset(self, mask: Mask) -> None:
        """Nothing to forget."""

    def act(self, observation: Observation, mask: Mask) -> Actions:
        """No key at all."""
        return np.full(len(mask), NOTHING)
