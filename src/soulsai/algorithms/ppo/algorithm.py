"""PPO as an algorithm."""

from __future__ import annotations

import math
from collections.abc import Iterator

from soulsai.algorithms.findings import Finding, Sample, rate_findings
from soulsai.algorithms.ppo.config import PPOConfig
from soulsai.algorithms.rollout_algorithm import RolloutAlgorithm
from soulsai.config.schema import Config

MOST_EPOCHS = 20
"""Beyond, the clipped ratios leave nothing to learn from."""


class PPO(RolloutAlgorithm):
    """Proximal policy optimisation (Schulman et al. 2017) with generalised advantages."""

    name = "ppo"
    workers_wait = True

    def rows_of_update(self, config: Config) -> int:
        """A rollout of all fights of the config."""
        return config.section(PPOConfig).rollout * config.side_by_side()[1]

    def max_lag(self, config: Config) -> int | None:
        """Older rollouts teach little, and that wrong."""
        return config.fleet.max_lag

    def findings(self, config: Config, sample: Sample) -> Iterator[Finding]:
        """Too many epochs, decisions that no minibatch holds, odd learning rates."""
        ppo = config.section(PPOConfig)
        yield from rate_findings("ppo.learning_rate", ppo.learning_rate)
        if ppo.epochs > MOST_EPOCHS:
            yield Finding(
                "many-updates",
                f"ppo.epochs = {ppo.epochs} passes over the same decisions; use {MOST_EPOCHS} or fewer, such as 4",
            )
        collected = self.rows_of_update(config)
        if left := collected % ppo.minibatch:
            yield Finding(
                "minibatch-remainder",
                f"ppo.minibatch = {ppo.minibatch} leaves {left} of {collected} decisions out of every pass; "
                f"a divisor such as {math.gcd(collected, ppo.minibatch)} leaves none out",
                refuses=False,
            )


ALGORITHM = PPO()
