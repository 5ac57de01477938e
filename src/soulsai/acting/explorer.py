"""Random actions among the open ones."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from soulsai.config.schema import QConfig
from soulsai.ops.schedules import linear, spread_epsilons


def epsilons(
    step: int, n: int, *, start: float, end: float, steps: int, spread: float, warmup: int = 0
) -> npt.NDArray[np.float64]:
    """The share of random actions of each of `n` actors at an environment step; all random within the warm-up."""
    if step < warmup:
        return np.ones(n)
    epsilon = linear(start, end, min(1.0, step / steps))
    return np.asarray(spread_epsilons(epsilon, n, spread)) if spread else np.full(n, epsilon)


def scheduled_epsilons(q: QConfig, step: int, n: int) -> npt.NDArray[np.float64]:
    """The shares that a config asks for."""
    warmup = q.warmup_steps if q.random_warmup else 0
    return epsilons(
        step, n, start=q.epsilon, end=q.final_epsilon, steps=q.epsilon_steps, spread=q.spread, warmup=warmup
    )


def explored(
    greedy: npt.NDArray[np.int64],
    masks: npt.NDArray[np.bool_],
    shares: npt.NDArray[np.float64],
    generator: np.random.Generator,
) -> npt.NDArray[np.int64]:
    """The greedy actions with a share of them replaced by open ones, drawn evenly."""
    numbers = generator.random((len(greedy), masks.shape[1] + 1))
    random = np.where(masks, numbers[:, 1:], -1.0).argmax(axis=1)
    return np.where(numbers[:, 0] < shares, random, greedy)
