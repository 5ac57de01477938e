"""Gymnasium environments as a world."""

import sys

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from soulsai.acting.gym_world import GymWorld
from soulsai.errors import ConfigError
from soulsgym.envs.vector import FightVectorEnv
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
    # The actions of this space begin at 5. The second episode is over and has begun again.
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


# ---------------------------------------------------------------- Dict observations, masks, native vector environments


class Mixed(gymnasium.Env):
    """Observations by key, one within another; masks by the method that sb3-contrib looks for."""

    observation_space = spaces.Dict(
        place=spaces.Box(-9.0, 9.0, (2,)),
        inner=spaces.Dict(kind=spaces.Discrete(3, start=4)),
        flag=spaces.MultiBinary(2),
    )
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._seen(), {}

    def step(self, action):
        self.steps += 1
        return self._seen(), 1.0, self.steps == 3, False, {}

    def action_masks(self):
        return np.array([True, self.steps % 2 == 0])

    def _seen(self):
        kind = np.int64(4 + self.steps % 3)
        return {"place": np.full(2, self.steps, np.float32), "inner": {"kind": kind}, "flag": np.array([1, 0], np.int8)}


@pytest.fixture
def mixed():
    gymnasium.register("Mixed-v0", entry_point=Mixed)
    yield "Mixed-v0"
    del gymnasium.registry["Mixed-v0"]


def test_dicts_are_flattened_as_gymnasium_does(mixed):
    world, alone = GymWorld(mixed, 2, {}), Mixed()
    world.reset(0)
    seen, _ = alone.reset()
    assert (world.observation_size, world.num_actions) == (7, 2)
    for _ in range(3):
        assert world.observations[1].tolist() == spaces.flatten(alone.observation_space, seen).tolist()
        assert world.masks.tolist() == [alone.action_masks().tolist()] * 2
        step = world.step(np.zeros(2, np.int64))
        seen, *_ = alone.step(0)
    assert step.ended.all()
    assert step.final_observations[0].tolist() == spaces.flatten(alone.observation_space, seen).tolist()
    assert world.masks.all()


def test_final_masks_are_those_of_the_last_step(counting):
    """Open is what was open when the episode ended, not what is open in the next one."""
    world = GymWorld(counting, 2, {})
    world.reset(0)
    step = world.step(np.array([0, 2]))
    assert step.final_masks[1].tolist() == [True, True, True]
    assert world.masks[1].tolist() == [True, False, True]
    world.step(np.array([0, 0]))
    step = world.step(np.array([0, 2]))
    assert step.ended.tolist() == [False, True]
    assert step.final_masks[1].tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("name", "kwargs"),
    [
        ("SoulsGymIudexSim-v0", {}),
        ("SoulsGymIudexSimDemoEncoded-v0", {"actions": "reduced"}),
        ("SoulsGymSim-v0", {"boss": "iudex", "encoder": "soulsai74", "reward": "duel"}),
    ],
)
def test_our_own_ids_are_played_together_and_as_alone(name, kwargs):
    world = GymWorld(name, 3, kwargs | {"max_episode_steps": 40})
    assert isinstance(world._env.unwrapped, FightVectorEnv)
    world.reset(5)
    seeds = np.random.SeedSequence(5).generate_state(3).tolist()
    alone = gymnasium.make(name, disable_env_checker=True, max_episode_steps=40, **kwargs)
    space = alone.observation_space
    seen, info = alone.reset(seed=seeds[2])
    generator, ends = np.random.default_rng(0), 0
    for _ in range(90):
        assert np.array_equal(world.observations[2], spaces.flatten(space, seen).astype(np.float32))
        assert np.array_equal(world.masks[2], info["action_mask"])
        actions = (generator.random(world.masks.shape) * world.masks).argmax(axis=1)
        step = world.step(actions)
        seen, reward, terminated, truncated, info = alone.step(actions[2])
        assert step.rewards[2] == pytest.approx(reward, abs=1e-6)
        assert (step.terminated[2], step.truncated[2]) == (terminated, truncated)
        if terminated or truncated:
            ends += 1
            assert np.array_equal(step.final_observations[2], spaces.flatten(space, seen).astype(np.float32))
            assert np.array_equal(step.final_masks[2], info["action_mask"])
            assert step.won[2] == info["won"]
            seen, info = alone.reset()
    assert ends > 1


def test_nothing_to_save():
    assert GymWorld("CartPole-v1", 1, {}).state() == {}


@pytest.mark.parametrize(
    ("name", "kwargs", "message"),
    [
        ("Pendulum-v1", {}, r"gym.id = 'Pendulum-v1' has actions Box\(.*\); only Discrete ones can be learned$"),
        ("FrozenLake-v1", {}, r"has observations Discrete\(16\); only a Box or a Dict of .* can be learned from$"),
        ("SoulsGymSim-v0", {}, "cannot be made: boss is missing; give the name of one"),
        ("SoulsGymIudexSim-v0", {"encoder": "playr"}, "cannot be made: encoder 'playr' is not known"),
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
