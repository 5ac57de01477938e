"""The VecEnv for Stable-Baselines3, beside SB3's own on single environments."""

import gymnasium
import numpy as np
import pytest

import soulsgym  # noqa: F401 (registers the ids)

pytest.importorskip("stable_baselines3")

from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

from soulsgym.envs.registry import ENCODED
from soulsgym.errors import MisuseError
from soulsgym.integrations.sb3 import FightVecEnv

ENCODED_DEMO, DEMO = "SoulsGymIudexSimDemoEncoded-v0", "SoulsGymIudexSimDemo-v0"
N = 4


class AnyOpen:
    """A policy that takes any open action."""

    def __init__(self, env):
        self.env, self.generator = env, np.random.default_rng(0)

    def predict(self, observations, **keywords):
        masks = np.stack(self.env.env_method("action_masks"))
        return (self.generator.random(masks.shape) * masks).argmax(axis=1), None


def played(env, steps=150):
    observations, policy = env.reset(), AnyOpen(env)
    for _ in range(steps):
        yield (*env.step(policy.predict(observations)[0]), policy)


def test_fights_are_those_of_sb3s_own_vecenv():
    ours = FightVecEnv(ENCODED_DEMO, N, max_episode_steps=60)
    made = [lambda: Monitor(gymnasium.make(ENCODED_DEMO, max_episode_steps=60))] * N
    theirs = DummyVecEnv(made)
    ours.seed(7)
    theirs.seed(7)
    assert np.array_equal(ours.reset(), theirs.reset())
    policy, ends = AnyOpen(ours), 0
    for _ in range(150):
        assert np.array_equal(*(np.stack(env.env_method("action_masks")) for env in (ours, theirs)))
        actions, _ = policy.predict(None)
        mine, its = ours.step(actions), theirs.step(actions)
        assert np.array_equal(mine[0], its[0])
        assert mine[1].dtype == np.float32
        assert mine[1] == pytest.approx(its[1], abs=1e-6)
        assert mine[2].tolist() == its[2].tolist()
        for index in np.flatnonzero(mine[2]):
            ends += 1
            one, other = mine[3][index], its[3][index]
            assert np.array_equal(one["terminal_observation"], other["terminal_observation"])
            assert one["TimeLimit.truncated"] == other["TimeLimit.truncated"]
            assert one["episode"]["r"] == pytest.approx(other["episode"]["r"], abs=1e-3)
            assert one["episode"]["l"] == other["episode"]["l"]
            assert one["is_success"] == other["won"] == one["won"]
            assert one["killed_by"] == other["killed_by"]
            assert one["reward_terms"] == pytest.approx(other["reward_terms"])
    assert ends > N


def test_a_fight_that_goes_on_has_nothing_to_tell():
    env = FightVecEnv(ENCODED_DEMO, N)
    assert next(played(env))[3] == [{}] * N


def test_attributes_and_methods_of_each_fight():
    env = FightVecEnv(ENCODED_DEMO, 3, actions="reduced")
    env.seed(1)
    env.reset()
    env.step(np.array([8, 19 - 4, 0]))
    masks = env.env_method("action_masks")
    assert [mask.shape for mask in masks] == [(16,)] * 3
    assert env.env_method("action_masks", indices=1)[0].tolist() == masks[1].tolist()
    assert env.has_attr("action_masks")
    assert not env.has_attr("nonsense")
    assert env.get_attr("fight", indices=[0, 2])[1]["step"].shape == (1,)
    assert env.env_method("current_valid_actions", indices=0) == [np.flatnonzero(masks[0]).tolist()]
    assert env.get_attr("render_mode") == [None] * 3
    env.set_attr("level", 5, indices=[1])
    env.set_attr("level", 6, indices=[0, 2])
    assert env.get_attr("level") == [6, 5, 6]
    assert env.env_is_wrapped(Monitor) == [True] * 3
    assert env.env_is_wrapped(gymnasium.wrappers.TimeLimit) == [False] * 3
    with pytest.raises(MisuseError, match="reset is for all fights together"):
        env.env_method("reset")


def test_seeds_and_options_count_for_the_next_reset_only():
    env = FightVecEnv(ENCODED_DEMO, N, randomize=1.0)
    assert env.seed(5) == [5, 6, 7, 8]
    first = env.reset()
    env.seed(5)
    env.set_options({"start": {"boss_hp": 500}})
    weaker = env.reset()
    assert np.count_nonzero((first != weaker).any(axis=0)) == 1
    env.seed(5)
    assert np.array_equal(env.reset(), first)
    env.set_options([{}, {}, {}, {"start": {"boss_hp": 5}}])
    with pytest.raises(MisuseError, match="options differ between the fights"):
        env.reset()


def test_pictures_of_all_fights(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    pytest.importorskip("pygame")
    env = FightVecEnv(ENCODED_DEMO, 2, render_mode="rgb_array")
    env.reset()
    picture = env.render()
    assert picture.ndim == 3
    assert picture.std() > 1.0
    env.close()


def test_an_id_that_is_not_simulated_is_refused():
    with pytest.raises(gymnasium.error.Error):
        FightVecEnv("SoulsGymIudex-v0", 2)


@pytest.mark.parametrize("name", [*ENCODED])
def test_sb3s_checker_has_nothing_to_say(name, recwarn):
    check_env(gymnasium.make(name, boss="iudex", disable_env_checker=True), skip_render_check=True)
    assert [str(one.message) for one in recwarn] == []


def test_wrappers_of_sb3_work_on_top():
    env = VecNormalize(VecMonitor(FightVecEnv(ENCODED_DEMO, N, max_episode_steps=10)))
    env.reset()
    for _ in range(12):
        observations, _, dones, infos = env.step(np.full(N, 19))
        if dones.any():
            assert all(info["terminal_observation"].shape == observations[0].shape for info in infos)
            assert infos[0]["episode"]["l"] == 10
            break
    assert dones.all()


def test_evaluation_of_sb3_counts_the_fights_own_episodes(recwarn):
    env = FightVecEnv(ENCODED_DEMO, N, max_episode_steps=20)
    env.seed(1)
    mean, _ = evaluate_policy(AnyOpen(env), env, n_eval_episodes=8, return_episode_rewards=True)
    assert len(mean) == 8
    assert not [one for one in recwarn if "Monitor" in str(one.message)]


def test_ppo_learns_on_numbers_and_on_the_record_by_key():
    from stable_baselines3 import DQN, PPO

    kind = {"n_steps": 16, "batch_size": 16, "n_epochs": 1, "policy_kwargs": {"net_arch": [8]}, "device": "cpu"}
    PPO("MlpPolicy", FightVecEnv(ENCODED_DEMO, N), **kind).learn(64)
    PPO("MultiInputPolicy", FightVecEnv(DEMO, N, zero_based=True), **kind).learn(64)
    single = gymnasium.make(DEMO, zero_based=True)
    DQN("MultiInputPolicy", single, learning_starts=8, batch_size=8, buffer_size=64, device="cpu").learn(32)


def test_maskable_ppo_takes_only_open_actions():
    contrib = pytest.importorskip("sb3_contrib")
    env = FightVecEnv(ENCODED_DEMO, N, decisions=False)
    chosen = []
    step = env.env.batch.step

    def watched(actions):
        chosen.append(env.env.batch.masks[np.arange(N), actions].all())
        return step(actions)

    env.env.batch.step = watched
    contrib.MaskablePPO("MlpPolicy", env, n_steps=32, batch_size=32, n_epochs=1, device="cpu").learn(128)
    assert len(chosen) >= 32
    assert all(chosen)
