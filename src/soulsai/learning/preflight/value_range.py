"""Whether c51 can say the returns that there will be: what lies outside of its range is cut off in silence."""

from __future__ import annotations

from collections.abc import Iterator

from soulsai.config.schema import Config
from soulsai.config.toml import toml_value
from soulsai.learning.preflight.finding import Finding
from soulsai.learning.preflight.sample import Sample, gamma_of
from soulsgym.parts.files import parts_in
from soulsgym.parts.rewards.presets import weights_of

ONCE = {
    "dealt": (0.0, 1.0),
    "taken": (-1.0, 0.0),
    "win": (0.0, 1.0),
    "death": (-1.0, 0.0),
    "end": (-1.0, 1.0),
    "first_hit": (-1.0, 0.0),
}
"""What terms of weight 1 can add up to in a fight. Those not listed come on top, by how much depends on the fight."""
EVERY_STEP = ("far", "roll", "step")
"""Terms of weight 1 that can cost 1 in every step."""


def value_range_findings(config: Config, sample: Sample) -> Iterator[Finding]:
    """A range that the best or the worst return does not lie in."""
    if config.algorithm != "q" or config.q.distribution != "c51":
        return
    worst, best = _returns(config) if config.world == "fight" else (0.0, 0.0)
    worst, best = min(worst, sample.lowest_return), max(best, sample.highest_return)
    low, high = config.q.value_range
    if worst < low or best > high:
        yield Finding(
            "value-range",
            f"returns can be as low as {worst:.1f} and as high as {best:.1f}, but c51 knows none outside of "
            f"q.value_range = {toml_value(config.q.value_range)}; make it wider, or the reward's weights smaller",
        )


def _returns(config: Config) -> tuple[float, float]:
    """The lowest and the highest return of a fight, by the weights of its reward."""
    gamma, steps = gamma_of(config), config.fight.step_limit
    longest = (1.0 - gamma**steps) / (1.0 - gamma) if gamma < 1.0 else float(steps)
    limits = ONCE | dict.fromkeys(EVERY_STEP, (-longest, 0.0))
    worst = best = 0.0
    with parts_in(config.fight.parts):
        weights = {**weights_of(config.reward.preset), **config.reward.weights}
    for name, weight in weights.items():
        ends = [weight * end for end in limits.get(name, (0.0, 0.0))]
        worst, best = worst + min(ends), best + max(ends)
    return worst, best
