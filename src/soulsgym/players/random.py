"""A player that presses anything."""

from __future__ import annotations

import numpy as np

from soulsgym.players.player import Actions, Mask, Observation
from soulsgym.state import NUM_ACTIONS


class Random:
    """Presses one of all twenty actions, open or not, as the player of the recorded fights did."""

    def __init__(self, n: int, seed: int) -> None:
        self._n = n
        self._rng = np.random.default_rng(seed)

    def reset(self, mask: Mask) -> None:
        """Nothing to forget."""

    def act(self, observation: Observation, mask: Mask) -> Actions:
        """Any action; one that is not open has no effect."""
        return self._rng.integers(NUM_ACTIONS, size=self._n)
