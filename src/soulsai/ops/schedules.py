"""Numbers that change over a run, or from one actor to the next."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def linear(start: float, end: float, fraction: float) -> float:
    """From start to end in a straight line; before 0 and beyond 1 it stays."""
    return start + (end - start) * min(max(fraction, 0.0), 1.0)


def spread_epsilons(epsilon: float, n: int, exponent: float) -> npt.NDArray[np.float64]:
    """epsilon^(1 + i / (n - 1) * exponent) for actors i = 0 .. n - 1, in float64 (Horgan et al. 2018)."""
    return np.float64(epsilon) ** (1.0 + np.arange(n) / max(n - 1, 1) * exponent)
