"""Is one fighter really better than another?"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from soulsai.evaluation.evaluation import Evaluation
from soulsai.evaluation.statistics import difference, fights_needed, mcnemar, paired_difference, two_proportions
from soulsgym.errors import MisuseError

LEVEL = 0.05
OF_THE_SAMPLE = ("seed", "fights")
"""Settings that may differ: they say which fights were drawn, not what kind of fights they are."""


@dataclass(frozen=True)
class Comparison:
    """Two win rates, their difference and whether it is real."""

    rate_a: float
    rate_b: float
    fights_a: int
    fights_b: int
    p: float
    low: float  # 95 % interval of rate_a - rate_b
    high: float
    is_paired: bool
    fights_needed: int | None  # of each, to tell a difference this large; None without a difference
    names: tuple[str, str]

    @property
    def difference(self) -> float:
        """The first win rate minus the second."""
        return self.rate_a - self.rate_b

    @property
    def is_real(self) -> bool:
        """Is it rarer than once in twenty between equals?"""
        return self.p < LEVEL

    @property
    def sentence(self) -> str:
        """The verdict, with what it rests on."""
        a, b = self.names
        rates = (
            f"{a} wins {_percent(self.rate_a)} of {self.fights_a:,} fights, "
            f"{b} {_percent(self.rate_b)} of {self.fights_b:,}"
        )
        interval = f"95 % interval {100 * self.low:+.1f} to {100 * self.high:+.1f}"
        test = "McNemar's exact test on the same fights" if self.is_paired else "Fisher's exact test"
        found = f"the difference of {100 * self.difference:+.1f} points ({interval}; p = {self.p:.2g}, {test})"
        if self.is_real:
            return f"{rates}: {found} is real at the 5 % level."
        return f"{rates}: {found} may be chance; {self._way_out()}."

    def _way_out(self) -> str:
        if self.fights_needed is None:
            return "they won equally often"
        if self.fights_needed <= min(self.fights_a, self.fights_b):
            return "a few more fights may tell"
        return f"it takes about {_rough(self.fights_needed):,} fights of each to tell a difference this small"


def compare(a: Evaluation, b: Evaluation, *, names: tuple[str, str] = ("A", "B")) -> Comparison:
    """Compare the win rates of two evaluations of the same kind, fight by fight where the seed is the same."""
    _refuse_different(a, b)
    # A running game has no seed: its fights are never the same twice.
    is_paired = a.settings.seed == b.settings.seed and a.settings.engine == "sim"
    if a.drawn_files and a.fights != b.fights:
        is_paired = False  # fight i is of another file
    # Fight i of a seed is the same in both, so the shorter evaluation is a part of the longer.
    shared = min(a.fights, b.fights) if is_paired else None
    won_a, won_b = a.won[:shared], b.won[:shared]
    counts = int(won_a.sum()), len(won_a), int(won_b.sum()), len(won_b)
    low, high = paired_difference(won_a, won_b) if is_paired else difference(*counts)
    rate_a, rate_b = counts[0] / counts[1], counts[2] / counts[3]
    return Comparison(
        rate_a=rate_a,
        rate_b=rate_b,
        fights_a=len(won_a),
        fights_b=len(won_b),
        p=mcnemar(won_a, won_b) if is_paired else two_proportions(*counts),
        low=low,
        high=high,
        is_paired=is_paired,
        fights_needed=fights_needed(rate_a, rate_b),
        names=names,
    )


def _refuse_different(a: Evaluation, b: Evaluation) -> None:
    one, other = dataclasses.asdict(a.settings), dataclasses.asdict(b.settings)
    different = [key for key in one if key not in OF_THE_SAMPLE and one[key] != other[key]]
    found = [f"{key} {one[key]!r} and {other[key]!r}" for key in different]
    if found:
        raise MisuseError(f"evaluations differ in {', '.join(found)}; evaluate both with the same settings")


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _rough(number: int) -> int:
    """Two digits are all that such an estimate is worth."""
    return int(float(f"{number:.1e}"))
