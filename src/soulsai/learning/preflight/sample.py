"""A little random play in a small world like that of the run, and what was seen there."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from soulsai.acting.network import mix_random
from soulsai.acting.world import World
from soulsai.algorithms.algorithm import algorithm_of
from soulsai.algorithms.findings import Floats, Sample
from soulsai.config.schema import Config
from soulsai.learning.wiring import build_encoder, build_world, fewest_fights, main_spec
from soulsgym.parts.files import parts_in
from soulsgym.parts.rewards.presets import weights_of

EPISODES = 8
STEPS = 200
"""With eight fights side by side enough for some to end, and less than a tenth of a second."""
SEED = 0
"""Not the run's: which settings are wrong must not depend on it."""
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


def play_sample(config: Config) -> Sample:
    """Play at random among the open actions."""
    fight = replace(config.fight, engine="sim", number=max(EPISODES, fewest_fights(config)))
    world = build_world(replace(config, fight=fight, gym=replace(config.gym, number=EPISODES)))
    try:
        return _play(world, _input_names(config, world.observation_size), config)
    finally:
        world.close()


def _input_names(config: Config, size: int) -> tuple[str, ...]:
    if config.world == "gym":
        return tuple(f"number {i}" for i in range(size))
    return build_encoder(config, main_spec(config), 1).names


def _play(world: World, names: tuple[str, ...], config: Config) -> Sample:
    generator = np.random.default_rng(SEED)
    everywhere, anything = np.ones(world.number), np.zeros(world.number, np.int64)
    seen, closed, rewards, discounts, steps = [], [], [], [], []
    world.reset(SEED)
    for _ in range(STEPS):
        seen.append(world.observations.astype(np.float64))
        closed.append(1.0 - float(world.masks.mean()))
        step = world.step(mix_random(anything, world.masks, everywhere, generator))
        rewards.append(step.rewards.astype(np.float64))
        discounts.append(np.where(step.ended, 0.0, np.float64(algorithm_of(config).gamma(config)) ** step.steps))
        steps.append(float(step.steps.mean()))
    inputs = np.concatenate(seen)
    lowest, highest = _return_limits(rewards, discounts)
    worst, best = _fight_returns(config) if config.world == "fight" else (0.0, 0.0)
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
        worst_return=worst,
        best_return=best,
    )


def _return_limits(rewards: list[Floats], discounts: list[Floats]) -> tuple[float, float]:
    """The lowest and the highest return from any step on."""
    total, lowest, highest = np.zeros_like(rewards[0]), np.inf, -np.inf
    for reward, discount in zip(reversed(rewards), reversed(discounts), strict=True):
        total = reward + discount * total
        lowest, highest = min(lowest, float(total.min())), max(highest, float(total.max()))
    return lowest, highest


def _fight_returns(config: Config) -> tuple[float, float]:
    """The lowest and the highest return of a fight, by the weights of its reward."""
    gamma, steps = algorithm_of(config).gamma(config), config.fight.step_limit
    longest = (1.0 - gamma**steps) / (1.0 - gamma) if gamma < 1.0 else float(steps)
    limits = ONCE | dict.fromkeys(EVERY_STEP, (-longest, 0.0))
    worst = best = 0.0
    with parts_in(config.fight.parts):
        weights = {**weights_of(config.reward.preset), **config.reward.weights}
    for name, weight in weights.items():
        ends = [weight * end for end in limits.get(name, (0.0, 0.0))]
        worst, best = worst + min(ends), best + max(ends)
    return worst, best
