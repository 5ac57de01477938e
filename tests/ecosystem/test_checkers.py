"""What other libraries check of an environment, on the ids and keywords that they are meant for."""

import warnings

import gymnasium
import numpy as np
import pytest

import soulsgym  # noqa: F401 (registers the ids)

RAW, ENCODED = "SoulsGymIudexSim-v0", "SoulsGymIudexSimEncoded-v0"
MADE = [
    (ENCODED, {}),
    ("SoulsGymIudexSimDemoEncoded-v0", {"encoder": "soulsai74", "actions": "reduced", "reward": "soulsgym"}),
    ("SoulsGymSimEncoded-v0", {"boss": "iudex", "starts": {"mid_fight": 0.5}, "randomize": 1.0}),
    (RAW, {"zero_based": True}),
    (RAW, {"encoder": "player", "decisions": True}),
]


@pytest.mark.parametrize(("name", "keywords"), MADE)
def test_stable_baselines3_has_nothing_to_say(name, keywords, need):
    need("stable_baselines3")
    from stable_baselines3.common.env_checker import check_env

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(name, **keywords), skip_render_check=True)


def test_stable_baselines3_warns_of_nothing_but_the_numbers_that_do_not_begin_at_0(need):
    need("stable_baselines3")
    from stable_baselines3.common.env_checker import check_env

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(gymnasium.make(RAW), skip_render_check=True)
    assert {str(one.message).partition(" (")[0] for one in caught} == {"Discrete observation space"}
    assert all("non-zero start" in str(one.message) for one in caught)


@pytest.mark.parametrize(("name", "keywords"), MADE)
def test_torchrl_finds_the_specs_kept(name, keywords, need):
    need("torchrl")
    from torchrl.envs import GymEnv, check_env_specs

    env = GymEnv(name, **keywords)
    check_env_specs(env)
    assert env.rollout(50).batch_size[0] > 1


@pytest.mark.parametrize(("name", "keywords"), MADE)
def test_torchrl_finds_the_specs_of_a_batch_kept(name, keywords, need):
    need("torchrl")
    from torchrl.envs import GymWrapper, check_env_specs

    env = GymWrapper(gymnasium.make_vec(name, num_envs=3, autoreset_mode="Disabled", max_episode_steps=20, **keywords))
    check_env_specs(env)
    played = env.rollout(50, break_when_any_done=False)
    assert played.batch_size == (3, 50)
    assert played["next", "done"].sum() >= 6  # it begins ended fights again


@pytest.mark.parametrize("data_format", ["hdf5", "arrow"])
@pytest.mark.parametrize("name", [RAW, ENCODED])
def test_minari_records_infos(name, data_format, need, tmp_path, monkeypatch):
    need("jax")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    import minari

    env = minari.DataCollector(gymnasium.make(name, randomize=0.5), record_infos=True, data_format=data_format)
    last = []
    for seed in range(2):
        env.reset(seed=seed)
        over = False
        while not over:
            _, _, terminated, truncated, info = env.step(16)
            over = terminated or truncated
        last.append(info)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # author, description and the like are not given
        env.create_dataset("souls/fights-v0")
    dataset = minari.load_dataset("souls/fights-v0")
    assert dataset.total_episodes == 2
    for episode, info in zip(dataset, last, strict=True):
        assert len(episode.infos["won"]) == len(episode.actions) + 1
        assert (episode.infos["action_mask"][-1] == info["action_mask"]).all()
        for key in ("won", "time_s", "damage_dealt", "damage_taken"):
            assert episode.infos[key][-1] == pytest.approx(info[key])
        killer = episode.infos["killed_by"][-1]
        assert (killer.decode() if isinstance(killer, bytes) else killer) == info["killed_by"]
        assert np.asarray(episode.infos["killed_by"])[0] in ("", b"")
    env = dataset.recover_environment()
    assert env.spec.kwargs["randomize"] == 0.5
    env.reset(seed=0)
