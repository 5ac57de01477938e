"""Environments on the simulator are pickled and copied with all that decides how their fights go on."""

import copy
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode

import soulsgym

RAW, DEMO, ENCODED = "SoulsGymIudexSim-v0", "SoulsGymIudexSimDemo-v0", "SoulsGymIudexSimDemoEncoded-v0"
MADE = [
    (RAW, {}),
    (DEMO, {"randomize": 1.0, "skip_steps": True, "random_player_pose": True}),
    (ENCODED, {"encoder": {"name": "player", "history": 2}, "actions": "reduced", "starts": {"mid_fight": 0.5}}),
]
WAYS = {"pickle": lambda env: pickle.loads(pickle.dumps(env)), "deepcopy": copy.deepcopy}


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def again(request):
    return request.param


def play_alike(one, other, steps):
    """Play both with the same actions, over the ends of fights, and compare everything."""
    for _ in range(steps):
        action = one.action_space.sample()
        assert data_equivalence(action, other.action_space.sample())
        results = one.step(action), other.step(action)
        assert data_equivalence(*results)
        if isinstance(results[0][2], bool) and (results[0][2] or results[0][3]):
            assert data_equivalence(one.reset(), other.reset())


@pytest.mark.parametrize(("name", "keywords"), MADE)
def test_a_copy_of_a_fight_goes_on_as_the_fight_does(name, keywords, again):
    env = gymnasium.make(name, **keywords).unwrapped
    env.action_space.seed(2)
    env.reset(seed=2)
    for _ in range(5):
        env.step(0)
    other = again(env)
    assert other.spec == env.spec
    assert (other.fight.tobytes(), other.np_random_seed) == (env.fight.tobytes(), env.np_random_seed)
    play_alike(env, other, 600)


@pytest.mark.slow
@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize(("name", "keywords"), MADE)
def test_a_copy_of_a_batch_goes_on_as_the_batch_does(name, keywords, mode, again):
    envs = gymnasium.make_vec(name, num_envs=4, autoreset_mode=mode, max_episode_steps=40, threads=2, **keywords)
    envs.reset(seed=2)
    for _ in range(30):
        envs.step(np.full(4, 3))
    other = again(envs.unwrapped)
    play_alike(envs, other, 8 if mode is AutoresetMode.DISABLED else 100)
    assert data_equivalence(envs.reset(), other.reset())  # starts are drawn from where the fights before left off
    play_alike(envs, other, 5)
    envs.close()
    other.close()


def test_the_copy_is_another_fight(again):
    env = gymnasium.make(ENCODED).unwrapped
    env.reset(seed=2)
    before = env.fight.tobytes()
    other = again(env)
    other.step(0)
    other.reset(seed=9)
    assert env.fight.tobytes() == before


def test_before_the_first_reset_a_copy_waits_for_one_and_draws_its_own_fight(again):
    env = gymnasium.make(RAW).unwrapped
    one, other = again(env), again(env)
    with pytest.raises(soulsgym.errors.ResetNeeded):
        one.step(0)
    one.reset()
    other.reset()
    for _ in range(200):
        if one.step(19)[2] | other.step(19)[2]:
            break
    assert one.fight.tobytes() != other.fight.tobytes()


def test_a_fight_that_is_over_stays_over(again):
    env = gymnasium.make(RAW).unwrapped
    env.reset(seed=1, options={"start": {"player_hp": 1}})
    over = False
    while not over:
        over = env.step(19)[2]
    with pytest.raises(soulsgym.errors.ResetNeeded):
        again(env).step(19)


def test_pictures_are_drawn_anew(again, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = gymnasium.make(RAW, render_mode="rgb_array").unwrapped
    env.reset(seed=1)
    env.step(16)
    picture = env.render()
    assert (again(env).render() == picture).all()
