"""Gymnasium environments as a world."""

import sys

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from soulsai.acting.gym_world import GymWorld
from soulsai.errors import ConfigError
from soulsgym.errors import MissingPackage


class Counting(gymnasium.Env):
    """Shows how many steps were played; ends when told by action 7, its last of three."""

    observation_space = spaces.Box(0.0, 100.0, (2, 1))
    action_space = spaces.Discrete(3, start=5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._seen(), {"action_mask": np.array([1, 0, 1], np.int8)}

    def step(self, action):
        self.steps += 1
        mask = np.array([1, self.steps % 2, 1], np.int8)
        return self._seen(), float(action), action == 7, False, {"action_mask": mask}

    def _seen(self):
        return np.array([[self.steps], [10 * self.steps]], np.float32)


@pytest.fixture
def counting():
    gymnasium.register("Counting-v0", entry_point=Counting, max_episode_steps=4)
    yield "Counting-v0"
    del gymnasium.registry["Counting-v0"]


def test_final_observation_truncation_and_masks(counting):
    world = GymWorld(counting, 2, {})
    world.reset(0)
    assert (world.number, world.observation_size, world.num_actions) == (2, 2, 3)
    assert world.masks.tolist() == [[True, False, True]] * 2
    step = world.step(np.array([0, 2]))
    # The actions of this space begin at 5. The second episode is over and has begun anew.
    assert step.rewards.tolist() == [5.0, 7.0]
    assert step.terms.tolist() == [[5.0], [7.0]]
    assert step.terminated.tolist() == step.ended.tolist() == [False, True]
    assert step.final_observations[1].tolist() == [1, 10]
    assert world.observations.tolist() == [[1, 10], [0, 0]]
    assert world.masks.tolist() == [[True, True, True], [True, False, True]]
    for _ in range(2):
        world.step(np.array([0, 0]))
    step = world.step(np.array([0, 0]))
    assert step.truncated.tolist() == step.ended.tolist() == [True, False]
    assert not step.terminated.any()
    assert step.final_observations[0].tolist() == [4, 40]
    assert world.observations.tolist() == [[0, 0], [3, 30]]
    assert step.steps.tolist() == [1, 1]
    world.close()


def test_cartpole_beside_a_single_one():
    world = GymWorld("CartPole-v1", 2, {})
    world.reset(3)
    seeds = np.random.SeedSequence(3).generate_state(2).tolist()
    alone = gymnasium.make("CartPole-v1")
    seen, _ = alone.reset(seed=seeds[1])
    over = False
    while not over:
        assert np.array_equal(world.observations[1], seen)
        step = world.step(np.ones(2, np.int64))
        seen, reward, over, _, _ = alone.step(1)
        assert (step.rewards[1], step.terminated[1]) == (reward, over)
    assert np.array_equal(step.final_observations[1], seen)
    assert not np.array_equal(world.observations[1], seen)
    world.close()


def test_the_seed_decides():
    def first(seed):
        world = GymWorld("CartPole-v1", 2, {})
        world.reset(seed)
        return world.observations.copy()

    assert np.array_equal(first(1), first(1))
    assert not np.array_equal(first(1), first(2))
    assert not np.array_equal(first(1)[0], first(1)[1])


def test_nothing_to_save():
    assert GymWorld("CartPole-v1", 1, {}).state() == {}


@pytest.mark.parametrize(
    ("name", "kwargs", "message"),
    [
        ("Pendulum-v1", {}, r"gym.id = 'Pendulum-v1' has actions Box\(.*\); only Discrete ones can be learned$"),
        ("FrozenLake-v1", {}, r"has observations Discrete\(16\); only a Box of numbers can be learned from$"),
        ("CartPol-v1", {}, "gym.id = 'CartPol-v1' cannot be made: .*Did you mean: `CartPole`"),
        ("nowhere:Thing-v0", {}, "gym.id = 'nowhere:Thing-v0' cannot be made: No module named 'nowhere'"),
        ("CartPole-v1", {"nonsense": 1}, "cannot be made: .*unexpected keyword argument 'nonsense'"),
    ],
)
def test_what_cannot_be_learned_is_refused_in_one_sentence(name, kwargs, message):
    with pytest.raises(ConfigError, match=message) as refused:
        GymWorld(name, 2, kwargs)
    assert "\n" not in str(refused.value)
    assert ". " not in str(refused.value)


def test_missing_box2d_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "Box2D", None)
    monkeypatch.delitem(sys.modules, "gymnasium.envs.box2d.lunar_lander", raising=False)
    for module in [name for name in sys.modules if name.startswith("gymnasium.envs.box2d")]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(MissingPackage, match=r"box2d is not installed; run: pip install '[\w-]+\[lander\]'") as refused:
        GymWorld("LunarLander-v3", 1, {})
    assert "\n" not in str(refused.value)
