"""Starts that are won about half of the time teach most, so they come more often."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FIRST_RATE = 0.5
NEWEST_SHARE = 0.02
"""Weight of the newest fight in a cell's win rate: it is that of about the last fifty."""
LEAST = 0.02
"""Added to p (1 - p), which is 0.25 at most, so that no cell is ever left out."""


class Curriculum:
    """The win rate of every cell, and how often each is to come for it; at strength 0 always by its share."""

    def __init__(self, shares: npt.NDArray[np.float64], strength: float) -> None:
        self._shares, self._strength = shares, strength
        self.rates = np.full(len(shares), FIRST_RATE)

    def weights(self) -> npt.NDArray[np.float64]:
        """How likely each cell is to be drawn; they sum to 1."""
        worth = self._shares * (self.rates * (1.0 - self.rates) + LEAST)
        mixed = (1.0 - self._strength) * self._shares / self._shares.sum() + self._strength * worth / worth.sum()
        return np.asarray(mixed, np.float64)

    def learn(self, cells: npt.NDArray[np.int64], won: npt.NDArray[np.bool_]) -> None:
        """Hear how fights that began in these cells went. Those of one cell count as if each had been their mean."""
        counts = np.bincount(cells, minlength=len(self.rates))
        wins = np.bincount(cells, weights=won, minlength=len(self.rates))
        mean = wins / np.maximum(counts, 1)
        self.rates = mean + (self.rates - mean) * (1.0 - NEWEST_SHARE) ** counts
