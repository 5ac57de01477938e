"""Gymnasium's wrappers and vector environments, on a raw and on an encoded id."""

import pickle
import warnings
from importlib.util import find_spec

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AsyncVectorEnv, AutoresetMode
from gymnasium.wrappers import (
    FlattenObservation,
    FrameStackObservation,
    RecordEpisodeStatistics,
    RecordVideo,
    TimeLimit,
)
from gymnasium.wrappers.vector import RecordEpisodeStatistics as VectorRecordEpisodeStatistics

import soulsgym  # noqa: F401 (registers the ids)

RAW, ENCODED = "SoulsGymIudexSim-v0", "SoulsGymIudexSimEncoded-v0"


@pytest.fixture(params=[RAW, ENCODED])
def name(request):
    return request.param


@pytest.fixture(autouse=True)
def _no_warnings(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def play(env, limit=4000):
    """The last info of a fight in which random open actions are taken, and the sum of its rewards and their number."""
    observation, info = env.reset(seed=1)
    assert env.observation_space.contains(observation)
    total = 0.0
    env.action_space.seed(1)
    for step in range(1, limit):
        observation, reward, terminated, truncated, info = env.step(
            env.action_space.sample(info["action_mask"].astype(np.int8))
        )
        assert env.observation_space.contains(observation)
        total += reward
        if terminated or truncated:
            return info, total, step
    raise AssertionError(f"the fight is not over after {limit} steps")


def test_episode_statistics(name):
    info, total, steps = play(RecordEpisodeStatistics(gymnasium.make(name)))
    assert info["episode"]["r"] == pytest.approx(total)
    assert info["episode"]["l"] == steps
    assert info["won"] is False


def test_a_time_limit_cuts_the_fight_off_and_tells_how_it_stands(name):
    env = TimeLimit(gymnasium.make(name), max_episode_steps=7)
    info, _, steps = play(env)
    assert steps == 7
    assert (info["won"], info["killed_by"]) == (False, "")
    assert info["time_s"] >= 0.7 - 1e-3


def test_stacked_observations(name):
    env = FrameStackObservation(gymnasium.make(name), 3)
    play(env)
    first, _ = env.reset(seed=1)
    then, *_ = env.step(16)
    last, latest = (seen["boss_pose"] if name == RAW else seen for seen in (first, then))
    assert last.shape[0] == 3
    assert (last[-1] == latest[-2]).all()


def test_flat_observations(name):
    env = FlattenObservation(gymnasium.make(name))
    play(env)
    assert len(env.observation_space.shape) == 1


def test_the_default_limit_can_be_changed(name):
    _, _, steps = play(gymnasium.make(name, max_episode_steps=5))
    assert steps == 5


def test_videos(name, tmp_path):
    env = gymnasium.make(name, render_mode="rgb_array", max_episode_steps=12)
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # moviepy's own
        if find_spec("moviepy") is None:  # in make test; make ecosystem has it
            with pytest.raises(gymnasium.error.DependencyNotInstalled, match="moviepy is not installed"):
                RecordVideo(env, str(tmp_path / "video"))
            return
        env = RecordVideo(env, str(tmp_path / "video"))
        play(env)
        env.close()
    [video] = (tmp_path / "video").glob("*.mp4")
    assert video.stat().st_size > 1000


def test_processes_that_know_nothing_play_the_fights_of_the_native_batch(name):
    """A process that is not a copy of this one finds the id by the module before it."""
    processes = AsyncVectorEnv([lambda: gymnasium.make(f"soulsgym:{name}")] * 2, context="spawn")
    batch = gymnasium.make_vec(name, num_envs=2)
    try:
        assert data_equivalence(processes.reset(seed=5)[0], batch.reset(seed=5)[0])
        batch.action_space.seed(5)
        for _ in range(60):
            actions = batch.action_space.sample()
            one, other = processes.step(actions), batch.step(actions)
            for mine, theirs in zip(one[:4], other[:4], strict=True):
                assert data_equivalence(mine, theirs)
    finally:
        processes.close()
        batch.close()


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_statistics_of_a_batch(name, mode):
    envs = gymnasium.make_vec(name, num_envs=3, autoreset_mode=mode, max_episode_steps=9)
    envs = VectorRecordEpisodeStatistics(envs)
    envs.reset(seed=1)
    for _ in range(9):
        *_, truncated, infos = envs.step(np.full(3, 19))
    assert truncated.all()
    assert infos["episode"]["l"].tolist() == [9, 9, 9]


def test_a_wrapped_environment_is_pickled_in_the_middle_of_a_fight(name):
    env = RecordEpisodeStatistics(gymnasium.make(name))
    env.reset(seed=3)
    for action in (0, 8, 16):
        env.step(action)
    other = pickle.loads(pickle.dumps(env))
    over = False
    while not over:
        one, another = (copy.step(16) for copy in (env, other))
        assert data_equivalence(one[:4], another[:4])
        over = one[2]
    assert one[4]["episode"]["l"] == another[4]["episode"]["l"]


def test_a_spec_is_pickled_and_written_as_text(name):
    spec = gymnasium.make(name, randomize=0.5).spec
    for again in (pickle.loads(pickle.dumps(spec)), gymnasium.envs.registration.EnvSpec.from_json(spec.to_json())):
        one, other = gymnasium.make(spec), gymnasium.make(again)
        assert data_equivalence(one.reset(seed=4)[0], other.reset(seed=4)[0])
        assert data_equivalence(one.step(16)[:4], other.step(16)[:4])
