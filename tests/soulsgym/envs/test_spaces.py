"""The observation as SoulsGym users know it."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from soulsgym.envs.registry import SIMULATED
from soulsgym.state import OBSERVATION_KEYS

SHAPES = {
    "player_hp": 1, "player_sp": 1, "boss_hp": 1, "player_pose": 4, "boss_pose": 4, "camera_pose": 6,
    "player_animation_duration": 1, "boss_animation_duration": 1,
}  # fmt: skip
DISCRETE = {
    "phase": (1, 2), "player_max_hp": (454, 1), "player_max_sp": (95, 1), "boss_max_hp": (1037, 1),
    "player_animation": (-1, 51), "boss_animation": (-1, 33), "lock_on": (0, 2),
}  # fmt: skip


@pytest.fixture(params=SIMULATED)
def env(request):
    made = gymnasium.make(request.param, boss="iudex", disable_env_checker=True)
    yield made
    made.close()


def test_the_space_has_the_fifteen_keys(env):
    assert isinstance(env.observation_space, spaces.Dict)
    assert set(env.observation_space) == set(SHAPES) | set(DISCRETE) == set(OBSERVATION_KEYS)
    assert len(OBSERVATION_KEYS) == 15
    for key, size in SHAPES.items():
        assert env.observation_space[key].shape == (size,)
        assert env.observation_space[key].dtype == np.float32
    for key, (start, n) in DISCRETE.items():
        space = env.observation_space[key]
        assert isinstance(space, spaces.Discrete)
        assert (space.start, space.n) == (start, n)


def test_the_numbers_have_their_bounds(env):
    space = env.observation_space
    assert (space["player_hp"].low, space["player_hp"].high) == (0.0, 454.0)
    assert (space["player_sp"].low, space["player_sp"].high) == (-60.0, 95.0)
    assert (space["boss_hp"].low, space["boss_hp"].high) == (0.0, 1037.0)
    assert (space["boss_animation_duration"].low, space["boss_animation_duration"].high) == (0.0, 10.0)
    assert space["player_pose"].low.tolist() == pytest.approx([110.0, 540.0, -73.0, -np.pi])
    assert space["player_pose"].high.tolist() == pytest.approx([190.0, 640.0, -55.0, np.pi])
    assert space["camera_pose"].low[3:].tolist() == [-1.0, -1.0, -1.0]


def test_twenty_actions(env):
    assert env.action_space == spaces.Discrete(20)


def test_observations_have_their_types(env):
    observation, info = env.reset(seed=1)
    for _ in range(2):
        assert set(observation) == set(OBSERVATION_KEYS)
        for key, size in SHAPES.items():
            assert observation[key].shape == (size,)
            assert observation[key].dtype == np.float32
        for key in DISCRETE:
            assert type(observation[key]) is int
        assert info["action_mask"].shape == (20,)
        assert info["action_mask"].dtype == np.bool_
        observation, _, _, _, info = env.step(8)


def test_an_observation_is_not_changed_by_later_steps(env):
    observation, info = env.reset(seed=1)
    kept = {key: np.array(value) for key, value in observation.items()}
    mask = info["action_mask"].copy()
    for _ in range(5):
        env.step(8)
    assert all(np.array_equal(kept[key], observation[key]) for key in kept)
    assert np.array_equal(mask, info["action_mask"])


def test_flattening_works(env):
    flat = spaces.flatten(env.observation_space, env.reset(seed=1)[0])
    assert flat.shape == spaces.flatten_space(env.observation_space).shape
