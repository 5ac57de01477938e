"""IMPALA as an algorithm."""

from __future__ import annotations

from collections.abc import Iterator

from soulsai.algorithms.findings import Finding, Sample, rate_findings
from soulsai.algorithms.impala.config import ImpalaConfig
from soulsai.algorithms.rollout_algorithm import RolloutAlgorithm
from soulsai.config.schema import Config


class Impala(RolloutAlgorithm):
    """Actor-critic with V-trace (Espeholt et al. 2018): corrects for the age of the policy that played."""

    name = "impala"

    def rows_of_update(self, config: Config) -> int:
        """As many sequences as a gradient step has, or as there are fights in a process of its own."""
        impala = config.section(ImpalaConfig)
        return impala.rollout * min(impala.sequences, config.side_by_side()[1])

    def max_lag(self, config: Config) -> int | None:
        """Far more than others allow: the importance weights correct for it."""
        return config.section(ImpalaConfig).max_lag

    def findings(self, config: Config, sample: Sample) -> Iterator[Finding]:
        """Odd learning rates."""
        yield from rate_findings("impala.learning_rate", config.section(ImpalaConfig).learning_rate)


ALGORITHM = Impala()
