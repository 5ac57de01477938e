"""What a worker can have played: everything that one plays is within, and little more."""

import numpy as np
import pytest

from soulsai.algorithms.algorithm import algorithm_of
from soulsai.config import load_preset, with_settings
from soulsai.learning.limits import limits_of, most_rows
from soulsai.learning.wiring import build_world, smallest

PRESETS = ["cartpole-dqn", "cartpole-ppo", "clipped-dqn", "recipe-soulsai", "sac", "impala"]


def limits(preset, *settings):
    config = with_settings(load_preset(preset), ["run.threads=1", *settings])
    world = build_world(smallest(config))
    try:
        return config, world, limits_of(config, algorithm_of(config), world)
    finally:
        world.close()


@pytest.mark.parametrize("preset", PRESETS)
def test_what_is_played_is_within(preset):
    config, _, found = limits(preset)
    world = build_world(smallest(config))
    world.reset(0)
    generator = np.random.default_rng(0)
    for _ in range(300):
        step = world.step((generator.random(world.masks.shape) * world.masks).argmax(axis=1))
        assert ((world.observations >= found.low) & (world.observations <= found.high)).all()
        assert np.abs(step.rewards).max() <= found.numbers["rewards"][1]
        assert step.steps.sum() <= found.steps_per_row * 10 * len(step.steps)
    world.close()
    assert np.isfinite(found.low).all()
    assert np.isfinite(found.high).all()


def test_bounds_come_from_the_space_and_the_config():
    _, _, found = limits("cartpole-dqn")
    assert found.high.tolist() == pytest.approx([14.4, 3e6, 1.4189, 3e6], rel=1e-3)
    assert (found.steps_per_row, found.length, found.term) == (1, 2000, 1e4)
    _, _, found = limits("cartpole-dqn", "fleet.largest_reward=3", "q.n_step=4", "gym.kwargs={max_episode_steps=9}")
    assert found.numbers["rewards"] == (-12.0, 12.0)
    assert (found.term, found.length) == (3.0, 1018)
    config, _, found = limits("clipped-dqn")
    assert found.length == 2 * config.fight.step_limit + 1000
    assert 20.0 <= found.term < 1000.0
    assert found.steps_per_row > 1


def test_messages_of_workers_that_joined_before_a_setting_was_changed_are_not_too_large():
    config = with_settings(load_preset("cartpole-dqn"), ["fleet.chunk_rows=64"])
    assert most_rows(config) > 16_384
    assert most_rows(load_preset("cartpole-ppo")) >= 1024
