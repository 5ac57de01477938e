"""A little random play in a small world like that of the run, and what was seen there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from soulsai.acting.explorer import explored
from soulsai.acting.world import World
from soulsai.config.schema import Config
from soulsai.learning.wiring import build_encoder, build_world, main_spec

Floats = npt.NDArray[np.float64]

EPISODES = 8
STEPS = 200
"""With eight fights side by side enough for some to end, and less than a tenth of a second."""
SEED = 0
"""Not the run's: which settings are wrong must not depend on it."""


@dataclass(frozen=True, eq=False)
class Sample:
    """What random play has met."""

    names: tuple[str, ...]  # of the inputs
    low: Floats  # of each input
    high: Floats
    deviation: Floats
    num_actions: int
    closed_share: float  # of all actions, over time
    steps_per_decision: float
    lowest_return: float  # discounted, from any step to the end of its episode or of the sample
    highest_return: float


def gamma_of(config: Config) -> float:
    """The discount of an environment step."""
    return config.ppo.gamma if config.algorithm == "ppo" else config.q.gamma


def play_sample(config: Config) -> Sample:
    """Play at random among the open actions."""
    fight = replace(config.fight, engine="sim", number=max(EPISODES, len(config.fight.variants)))
    world = build_world(replace(config, fight=fight, gym=replace(config.gym, number=EPISODES)))
    try:
        return _played(world, _input_names(config, world.observation_size), config)
    finally:
        world.close()


def _input_names(config: Config, size: int) -> tuple[str, ...]:
    if config.world == "gym":
        return tuple(f"number {i}" for i in range(size))
    return build_encoder(config, main_spec(config), 1).names


def _played(world: World, names: tuple[str, ...], config: Config) -> Sample:
    generator = np.random.default_rng(SEED)
    everywhere, anything = np.ones(world.number), np.zeros(world.number, np.int64)
    seen, closed, rewards, discounts, steps = [], [], [], [], []
    world.reset(SEED)
    for _ in range(STEPS):
        seen.append(world.observations.astype(np.float64))
        closed.append(1.0 - float(world.masks.mean()))
        step = world.step(explored(anything, world.masks, everywhere, generator))
        rewards.append(step.rewards.astype(np.float64))
        discounts.append(np.where(step.ended, 0.0, np.float64(gamma_of(config)) ** step.steps))
        steps.append(float(step.steps.mean()))
    inputs = np.concatenate(seen)
    lowest, highest = _return_limits(rewards, discounts)
    return Sample(
        names=names,
        low=inputs.min(axis=0),
        high=inputs.max(axis=0),
        deviation=inputs.std(axis=0),
        num_actions=world.num_actions,
        closed_share=float(np.mean(closed)),
        steps_per_decision=float(np.mean(steps)),
        lowest_return=lowest,
        highest_return=highest,
    )


def _return_limits(rewards: list[Floats], discounts: list[Floats]) -> tuple[float, float]:
    """The lowest and the highest return from any step on."""
    total, lowest, highest = np.zeros_like(rewards[0]), np.inf, -np.inf
    for reward, discount in zip(reversed(rewards), reversed(discounts), strict=True):
        total = reward + discount * total
        lowest, highest = min(lowest, float(total.min())), max(highest, float(total.max()))
    return lowest, highest
