"""The cells that mid-fight starts fall into: a phase to begin in, and a stretch of the boss's health."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from soulsgym.spec import FightSpec

HP_BINS = 8


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
