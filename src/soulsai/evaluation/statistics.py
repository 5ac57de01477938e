"""How sure a win rate is, and whether two of them differ."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from soulsgym.errors import MisuseError

Interval = tuple[float, float]
POWER = 0.8


def normal_quantile(confidence: float) -> float:
    """How many standard deviations to both sides hold this share of a normal distribution."""
    if not 0.0 < confidence < 1.0:
        raise MisuseError(f"confidence {confidence} is out of range; give a share between 0 and 1")
    return NormalDist().inv_cdf(0.5 + confidence / 2.0)


def wilson(wins: int, n: int, confidence: float = 0.95) -> Interval:
    """Wilson's score interval: unlike the usual one it stays honest near 0 and 1, where good agents live."""
    _check(wins, n)
    z = normal_quantile(confidence)
    share, scale = wins / n, 1.0 + z * z / n
    middle = (share + z * z / (2 * n)) / scale
    half = z / scale * math.sqrt(share * (1.0 - share) / n + z * z / (4 * n * n))
    return (0.0 if wins == 0 else middle - half), (1.0 if wins == n else middle + half)


def _check(wins: int, n: int) -> None:
    if n < 1 or not 0 <= wins <= n:
        raise MisuseError(f"{wins} wins of {n} fights are not possible; give 0 to n wins of 1 fight or more")


def two_proportions(wins_a: int, n_a: int, wins_b: int, n_b: int) -> float:
    """Fisher's exact test, two-sided: how likely two equal fighters differ at least as much."""
    _check(wins_a, n_a)
    _check(wins_b, n_b)
    from scipy.stats import fisher_exact  # late: it takes a while, and comes with the extra `train`

    return float(fisher_exact([[wins_a, n_a - wins_a], [wins_b, n_b - wins_b]]).pvalue)


def mcnemar(won_a: npt.NDArray[np.bool_], won_b: npt.NDArray[np.bool_]) -> float:
    """McNemar's exact test for the same fights fought by two: only those that one won and the other lost tell."""
    _, only_a, only_b, _ = _pairs(won_a, won_b)
    if not only_a + only_b:
        return 1.0
    from scipy.stats import binomtest

    return float(binomtest(only_a, only_a + only_b).pvalue)


def _pairs(won_a: npt.NDArray[np.bool_], won_b: npt.NDArray[np.bool_]) -> tuple[int, int, int, int]:
    """Fights won by both, only by the first, only by the second, by neither."""
    if len(won_a) != len(won_b):
        raise MisuseError(f"{len(won_a)} and {len(won_b)} fights cannot be paired; give the same number of each")
    a, b = np.asarray(won_a, np.bool_), np.asarray(won_b, np.bool_)
    return int((a & b).sum()), int((a & ~b).sum()), int((~a & b).sum()), int((~a & ~b).sum())


def difference(wins_a: int, n_a: int, wins_b: int, n_b: int, confidence: float = 0.95) -> Interval:
    """Interval of the first win rate minus the second (Newcombe's, from the two Wilson intervals)."""
    return _combine(wins_a, n_a, wins_b, n_b, 0.0, confidence)


def paired_difference(won_a: npt.NDArray[np.bool_], won_b: npt.NDArray[np.bool_], confidence: float = 0.95) -> Interval:
    """The same for pairs: narrower the more often both win, or lose, the same fights."""
    both, only_a, only_b, neither = _pairs(won_a, won_b)
    n = both + only_a + only_b + neither
    excess = float(both * neither - only_a * only_b)
    if excess > 0:
        # Newcombe's continuity correction, without which the interval is too narrow.
        excess = max(0.0, excess - n / 2)
    margins = math.sqrt((both + only_a) * (only_b + neither) * (both + only_b) * (only_a + neither))
    correlation = excess / margins if margins > 0.0 else 0.0
    return _combine(both + only_a, n, both + only_b, n, correlation, confidence)


def _combine(wins_a: int, n_a: int, wins_b: int, n_b: int, correlation: float, confidence: float) -> Interval:
    a, b = wins_a / n_a, wins_b / n_b
    low_a, high_a = wilson(wins_a, n_a, confidence)
    low_b, high_b = wilson(wins_b, n_b, confidence)
    below = _side(a - low_a, high_b - b, correlation)
    above = _side(high_a - a, b - low_b, correlation)
    return a - b - below, a - b + above


def _side(one: float, other: float, correlation: float) -> float:
    return math.sqrt(max(0.0, one * one - 2.0 * correlation * one * other + other * other))


def fights_needed(rate_a: float, rate_b: float, confidence: float = 0.95) -> int | None:
    """Fights of each that show a difference as large four times out of five, roughly; none for equal rates."""
    if rate_a == rate_b:
        return None
    z = normal_quantile(confidence) + NormalDist().inv_cdf(POWER)
    spread = rate_a * (1.0 - rate_a) + rate_b * (1.0 - rate_b)
    return max(2, math.ceil(z * z * spread / (rate_a - rate_b) ** 2))
