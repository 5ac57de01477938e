"""The networks of Q-learning."""

from __future__ import annotations

from soulsai.algorithms.q.config import QConfig
from soulsai.config.schema import Config
from soulsai.networks import QNetwork


def build_network(config: Config, observation_size: int, num_actions: int) -> QNetwork:
    """One network as the settings want it."""
    q = config.section(QConfig)
    return QNetwork(
        observation_size,
        num_actions,
        config.network,
        dueling=q.dueling,
        noise=q.noise if q.noisy else None,
        distribution=q.distribution,
        atoms=q.atoms,
        value_range=q.value_range,
    )
