"""Every registered id, by Gymnasium's own checks."""

import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence

import soulsgym
from soulsgym.errors import MisuseError

IUDEX, DEMO, ANY_BOSS = "SoulsGymIudexSim-v0", "SoulsGymIudexSimDemo-v0", "SoulsGymSim-v0"
VORDT, VORDT_DEMO = "SoulsGymVordtSim-v0", "SoulsGymVordtSimDemo-v0"
MADE = [
    (IUDEX, {}),
    (IUDEX, {"phase": 2}),
    (IUDEX, {"random_player_pose": True, "skip_steps": True}),
    (IUDEX, {"variant": "hard", "randomize": 0.5, "game_speed": 3.0}),
    (DEMO, {}),
    (DEMO, {"randomize": 1.0, "random_player_pose": True, "skip_steps": True}),
    (VORDT, {"phase": 2, "variant": "hard"}),
    (VORDT_DEMO, {"randomize": 1.0, "skip_steps": True}),
]
NAMES = [f"{name} {kwargs}" for name, kwargs in MADE]


def test_all_ids_are_known():
    in_the_game = {"SoulsGymIudex-v0", "SoulsGymIudexImg-v0", "SoulsGymIudexDemo-v0", "SoulsGymVordt-v0"}
    simulated = {IUDEX, DEMO, VORDT, VORDT_DEMO, "SoulsGymMargitSim-v0", "SoulsGymMargitSimDemo-v0", ANY_BOSS}
    encoded = {name.replace("-v0", "Encoded-v0") for name in simulated}
    assert set(soulsgym.available_envs) == simulated | encoded | in_the_game
    assert {name for name in gymnasium.registry if name.startswith("SoulsGym")} >= set(soulsgym.available_envs)


MAKE = f"gymnasium.make('{IUDEX}').close()"
LOADED = "assert not {'gymnasium', 'numba', 'numpy'} & set(sys.modules), sorted(sys.modules)"


@pytest.mark.parametrize(
    "code",
    [
        f"import sys, soulsgym, soulsgym.errors; {LOADED}; import gymnasium; {MAKE}",
        f"import gymnasium, soulsgym; {MAKE}",
        f"import soulsgym; from gymnasium.envs.registration import make; assert make('{IUDEX}')",
        f"import gymnasium; gymnasium.make('soulsgym:{IUDEX}')",
        "import soulsgym, sys; sys.modules['gymnasium'] = None\n"
        f"try:\n    import gymnasium\nexcept ImportError:\n    del sys.modules['gymnasium']\nimport gymnasium; {MAKE}",
    ],
    ids=["soulsgym first", "gymnasium first", "a part of gymnasium", "by module", "at the second try"],
)
def test_ids_are_known_whoever_is_imported_first(code):
    """And importing soulsgym waits for no other library."""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=180)
    assert result.returncode == 0, result.stderr
    assert "Overriding" not in result.stderr


@pytest.mark.parametrize("name", soulsgym.available_envs)
def test_every_id_lasts_3000_steps_at_most(name):
    assert gymnasium.spec(name).max_episode_steps == 3000


@pytest.mark.parametrize("name", [IUDEX, DEMO])
def test_a_fight_lasts_3000_steps_at_most(name):
    assert gymnasium.spec(name).max_episode_steps == 3000
    env = gymnasium.make_vec(name, num_envs=2)
    assert env.spec.max_episode_steps == 3000
    env.close()


@pytest.mark.parametrize(("name", "kwargs"), MADE, ids=NAMES)
def test_gymnasiums_checker_has_nothing_to_say(name, kwargs):
    env = gymnasium.make(name, **kwargs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=True)


def test_gymnasiums_checker_accepts_the_pictures(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    check_env(gymnasium.make(IUDEX).unwrapped)


@pytest.mark.parametrize(("name", "kwargs"), MADE, ids=NAMES)
def test_two_copies_roll_out_alike(name, kwargs):
    """As Gymnasium tests its own environments."""
    one, other = (gymnasium.make(name, disable_env_checker=True, **kwargs) for _ in range(2))
    assert data_equivalence(one.reset(seed=7), other.reset(seed=7))
    one.action_space.seed(7)
    for _ in range(200):
        action = one.action_space.sample()
        results = [env.step(action) for env in (one, other)]
        assert data_equivalence(*results)
        assert one.observation_space.contains(results[0][0])
        if results[0][2] or results[0][3]:
            assert data_equivalence(one.reset(), other.reset())


def test_the_full_fight_begins_in_phase_one_and_can_change():
    env = gymnasium.make(DEMO)
    observation, _ = env.reset(seed=1, options={"start": {"boss_hp": 500}})
    assert observation["phase"] == 1
    phases, labels = set(), set()
    for _ in range(70):
        observation, _, over, *_ = env.step(19)
        phases.add(int(observation["phase"]))
        labels.add(int(observation["boss_animation"]))
        if over:
            break
    assert phases == {1, 2}
    assert -1 in labels


def test_a_training_environment_never_changes():
    env = gymnasium.make(IUDEX)
    env.reset(seed=1, options={"start": {"boss_hp": 100}})
    for _ in range(70):
        observation, _, over, *_ = env.step(19)
        assert observation["phase"] == 1
        assert observation["boss_animation"] != -1
        if over:
            break


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"phase": 3}, "phase 3 is not there"),
        ({"randomize": -0.5}, "randomize -0.5 is out of range"),
        ({"variant": "harder"}, "variant 'harder' of iudex is not known, did you mean 'hard'?"),
        ({"game_speed": 0.0}, "game_speed 0.0 is not possible"),
    ],
)
def test_impossible_keywords_are_refused(kwargs, message):
    with pytest.raises(MisuseError, match=message):
        gymnasium.make(IUDEX, **kwargs)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"num_envs": 0}, "number of fights 0 is not possible"),
        ({"num_envs": 2, "threads": 0}, "threads 0 is not possible"),
        ({"num_envs": 2, "render_mode": "human"}, "render_mode 'human' is not possible for many fights"),
        ({"num_envs": 2, "autoreset_mode": "sometimes"}, "autoreset_mode 'sometimes' is not known; give one of 'Next"),
        ({"num_envs": 2, "max_episode_steps": 0}, "max_episode_steps 0 is not possible"),
    ],
)
def test_impossible_batches_are_refused(kwargs, message):
    with pytest.raises(MisuseError, match=message):
        gymnasium.make_vec(IUDEX, **kwargs)


def test_random_poses_come_from_the_list(spec):
    env = gymnasium.make(IUDEX, random_player_pose=True)
    listed = {tuple(np.float32(pose[:2]).tolist()) for pose in spec.arena.player_starts}
    drawn = {tuple(env.reset(seed=seed)[0]["player_pose"][:2].tolist()) for seed in range(60)}
    assert drawn <= listed
    assert len(drawn) > 6


def test_without_random_poses_every_fight_begins_alike(spec):
    env = gymnasium.make(IUDEX)
    drawn = {tuple(env.reset(seed=seed)[0]["player_pose"].tolist()) for seed in range(5)}
    assert len(drawn) == 1
    assert drawn.pop()[:2] == pytest.approx(spec.arena.player_start[:2], abs=1e-3)
