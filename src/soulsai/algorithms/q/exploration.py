"""How much of what the Q-learner's actors do is random."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from soulsai.algorithms.q.config import QConfig
from soulsai.ops.schedules import linear, spread_epsilons


def epsilons(q: QConfig, step: int, n: int) -> npt.NDArray[np.float64]:
    """The share of random actions of each of `n` actors at an environment step of the run."""
    if q.random_warmup and step < q.warmup_steps:
        return np.ones(n)
    epsilon = linear(q.epsilon, q.final_epsilon, min(1.0, step / q.epsilon_steps))
    return spread_epsilons(epsilon, n, q.spread) if q.spread else np.full(n, epsilon)
