"""Which middles of fights to begin in, and how often.

Mid-fight starts fall into cells: a phase to begin in, and a stretch of the boss's health. Cells that are won about half
of the time teach most, so they come more often.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from soulsgym.spec import FightSpec

HP_BINS = 8
FIRST_RATE = 0.5
NEWEST_SHARE = 0.02
"""Weight of the newest fight in a cell's win rate: it is that of about the last fifty."""
LEAST = 0.02
"""Added to p (1 - p), which is 0.25 at most, so that no cell is ever left out."""


@dataclass(frozen=True, eq=False)
class Cells:
    """One row per cell. Drawing a cell by its share, then health evenly within it, draws health evenly overall."""

    phase: npt.NDArray[np.int32]  # 0: the one the environment was made for
    low: npt.NDArray[np.float64]  # shares of the boss's health
    high: npt.NDArray[np.float64]
    share: npt.NDArray[np.float64]  # of all mid-fight starts

    def __len__(self) -> int:
        return len(self.share)


def make_cells(
    spec: FightSpec, boss_hp_share: tuple[float, float], *, late_phase: float, full: bool, phase: int
) -> Cells:
    """Even stretches of health, cut at the thresholds too; below one, `late_phase` is the share of the later phase."""
    thresholds = phase_thresholds(spec, phase) if full else ()
    rows = []
    for low, high in _stretches(boss_hp_share, thresholds):
        width = (high - low) / (boss_hp_share[1] - boss_hp_share[0]) if high > low else 1.0
        later = phase + sum(high <= threshold for threshold in thresholds)
        late = late_phase if later > phase else 0.0
        rows += [(0, low, high, width * (1.0 - late)), (later, low, high, width * late)]
    phases, lows, highs, shares = zip(*(row for row in rows if row[3] > 0.0), strict=True)
    return Cells(np.array(phases, np.int32), np.array(lows), np.array(highs), np.array(shares))


def phase_thresholds(spec: FightSpec, phase: int) -> tuple[float, ...]:
    """Shares of the boss's health at which he leaves `phase` and those after it; each at most the one before."""
    shares = [one.changes_at_hp_share for one in spec.boss.phases[phase - 1 : -1]]
    return tuple(np.minimum.accumulate(shares).tolist()) if shares else ()


def _stretches(between: tuple[float, float], cuts: tuple[float, ...]) -> list[tuple[float, float]]:
    low, high = between
    inside = [cut for cut in cuts if low < cut < high]
    edges = np.unique([*np.linspace(low, high, HP_BINS + 1), *inside]).tolist()
    return list(pairwise(edges)) or [(low, high)]


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
