"""How a run is going, in a few words: what its evaluations were some time ago, and what they are now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

RATE, LOW, HIGH = "win_rate/evaluation", "win_rate/evaluation_low", "win_rate/evaluation_high"
BOSS_LEFT, RETURN = "boss_health_left/all", "return/evaluation"
NAMES = (RATE, LOW, HIGH, BOSS_LEFT, RETURN)
"""The metrics that a verdict is made of."""
RECENT = 3
"""Evaluations whose mean counts as now: one alone may be luck."""
LEAST_CHANGE = 0.02
SOLVED = 0.95

Points = Sequence[tuple[float, float]]
"""Steps and values, the oldest first."""


@dataclass(frozen=True)
class Change:
    """Means of a few evaluations, then and now."""

    before: float
    now: float
    since: float

    @classmethod
    def of(cls, points: Points) -> Change | None:
        """From a third of the run ago until now; none of fewer than two evaluations."""
        if len(points) < 2:
            return None
        count = min(RECENT, len(points) // 2)
        first = max(0, min(len(points) * 2 // 3, len(points) - 2 * count))
        then, now = points[first : first + count], points[-count:]
        return cls(_mean(then), _mean(now), then[count // 2][0])


def verdict_of(series: Mapping[str, Points]) -> str:
    """A sentence without a full stop; nothing of a run that was never evaluated."""
    if rates := series.get(RATE):
        won = _judge_wins(rates, series.get(LOW, ()), series.get(HIGH, ()))
        return won if any(rate > 0.0 for _, rate in rates) else _judge_damage(series.get(BOSS_LEFT, ()))
    return _judge_returns(series.get(RETURN, ()))


def _judge_wins(rates: Points, lows: Points, highs: Points) -> str:
    change = Change.of(rates)
    if change is None:
        return f"first evaluation: wins {_percent(rates[-1][1])}"
    noise = LEAST_CHANGE
    if lows and highs:  # of one evaluation; the mean of three varies less
        noise = max(noise, (highs[-1][1] - lows[-1][1]) / 2.0)
    if abs(change.now - change.before) < noise:
        word = "solved" if change.now >= SOLVED else "no change"
        return f"{word}: wins about {_percent(change.now)} since {_steps(change.since)}"
    word = "learning" if change.now > change.before else "getting worse"
    return f"{word}: {_percent(change.before)} to {_percent(change.now)} since {_steps(change.since)}"


def _judge_damage(left: Points) -> str:
    change = Change.of(left)
    if change is None:
        return f"no win yet; boss health left {_percent(left[-1][1])}" if left else "no win yet"
    if abs(change.now - change.before) < LEAST_CHANGE:
        return f"no win yet; boss health left about {_percent(change.now)} since {_steps(change.since)}"
    word = "learning" if change.now < change.before else "getting worse"
    trend = f"boss health left {_percent(change.before)} to {_percent(change.now)}"
    return f"{word}, no win yet: {trend} since {_steps(change.since)}"


def _judge_returns(returns: Points) -> str:
    change = Change.of(returns)
    if change is None:
        return f"first evaluation: return {returns[-1][1]:.4g}" if returns else ""
    values = [value for _, value in returns]
    if abs(change.now - change.before) < 0.1 * (max(values) - min(values)):
        return f"no change: return about {change.now:.4g} since {_steps(change.since)}"
    word = "learning" if change.now > change.before else "getting worse"
    return f"{word}: return {change.before:.4g} to {change.now:.4g} since {_steps(change.since)}"


def _mean(points: Points) -> float:
    return sum(value for _, value in points) / len(points)


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f} %"


def _steps(number: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"step {number / size:.3g} {unit}"
    return f"step {number:.0f}"
