"""What workers of a run can have played: bounds for everything they send, generous and finite."""

from __future__ import annotations

import gymnasium
import numpy as np

from soulsai.acting.gym_world import GymWorld
from soulsai.acting.world import FightWorld, World
from soulsai.algorithms.algorithm import Algorithm, algorithm_of
from soulsai.config.schema import Config
from soulsai.experience import LARGEST, Array, Limits, Sizes
from soulsai.learning.wiring import fewest_fights
from soulsgym.parts.encoders import bounds_of
from soulsgym.parts.files import parts_in
from soulsgym.parts.rewards.presets import weights_of

UNDECLARED = 1e6
"""Largest size of a number of an observation for which the environment names no bound."""
TIMES_ALL_WEIGHTS = 20.0
"""So many times all weights of a fight's reward together, the reward of a decision can be; a few times was seen."""
REWARD = 1e4
"""Largest reward of a decision where nothing is known about it."""
STEPS_PER_DECISION = 32
"""Steps that a decision of a fight takes, on average over a chunk: 4 were seen, and 80 in a single one."""
MOST_CHUNK_ROWS, MOST_NUMBER = 16_384, 1024
"""The most that fleet.chunk_rows may be, and fights side by side in a worker that most configs have fewer of."""
RAREST = -100.0
"""Logarithm of the probability of an action that was drawn; no generator draws anything below -40."""


def limits_of(config: Config, algorithm: Algorithm, world: World) -> Limits:
    """The limits of everything that a worker of this config can send."""
    reward = config.fleet.largest_reward or _largest_reward(config)
    gamma = algorithm.gamma(config)
    value = min(reward / max(1.0 - gamma, 1e-6), LARGEST)
    row = min(reward * algorithm.decisions_of_row(config), LARGEST)
    low, high = _widen(*_bounds(world))
    merges = config.world == "fight" and config.fight.decisions
    return Limits(
        low=low,
        high=high,
        numbers={"rewards": (-row, row), "values": (-value, value), "next_values": (-value, value),
                 "log_probs": (RAREST, 1e-4)},
        rows=most_rows(config),
        steps_per_row=STEPS_PER_DECISION if merges else 1,
        length=_longest(config),
        term=reward,
    )  # fmt: skip


def most_rows(config: Config) -> int:
    """Rows that a worker can send in one message; of a run whose fleet settings may have changed since it joined."""
    algorithm, fleet = algorithm_of(config), config.fleet
    number = max(fleet.number or config.side_by_side()[1], fewest_fights(config))
    if length := algorithm.schema(config, Sizes(1, 1, 1, number)).length:
        return max(length * MOST_NUMBER, length * number)
    return MOST_CHUNK_ROWS + max(MOST_NUMBER, number) * algorithm.decisions_of_row(config)


def _bounds(world: World) -> tuple[Array, Array]:
    if isinstance(world, FightWorld) and world.batch.parts.encoder is not None:
        return bounds_of(world.batch.parts.encoder)
    if isinstance(world, GymWorld):
        return world.bounds
    return np.full(world.observation_size, -np.inf), np.full(world.observation_size, np.inf)


def _widen(low: Array, high: Array) -> tuple[Array, Array]:
    """Environments show a little more than they declare, such as after the last step: as wide again at each side."""
    low, high = np.maximum(low, -UNDECLARED).astype(np.float64), np.minimum(high, UNDECLARED).astype(np.float64)
    width = np.maximum(high - low, 1.0)
    return (low - width).astype(np.float32), (high + width).astype(np.float32)


def _largest_reward(config: Config) -> float:
    if config.world == "gym":
        return REWARD
    with parts_in(config.fight.parts):
        known = weights_of(config.reward.preset)
    weights = {**known, **config.reward.weights}
    return TIMES_ALL_WEIGHTS * max(1.0, sum(map(abs, weights.values()))) if known else REWARD


def _longest(config: Config) -> int:
    """Steps of an episode; the last decision of a fight may go beyond its limit."""
    if config.world == "fight":
        limit = config.fight.step_limit
    else:
        known = gymnasium.spec(config.gym.id.rpartition(":")[2]).max_episode_steps
        limit = int(config.gym.kwargs.get("max_episode_steps", known or 0))
    return 2 * limit + 1000 if limit > 0 else Limits().length
