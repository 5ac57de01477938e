"""The environments on a running game, for which the stand-in stands."""

import os
import signal
import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from standin_kit import date_of, rate_of

import soulsgym  # noqa: F401 (registers the ids)
from soulsgym import games
from soulsgym.actions import NOTHING
from soulsgym.core import utils
from soulsgym.core.speedhack import SpeedHackConnector
from soulsgym.envs.darksouls3.iudex import IudexEnv
from soulsgym.errors import GameNotFound, MisuseError, ResetNeeded
from soulsgym.game.engine import GameEngine
from soulsgym.game.process import find_processes
from soulsgym.state import OBSERVATION_KEYS

pytestmark = [pytest.mark.wine, pytest.mark.usefixtures("no_lapse")]

IUDEX, DEMO, SCREEN, VORDT = (
    "SoulsGymIudex-v0", "SoulsGymIudexDemo-v0", "SoulsGymIudexImg-v0", "SoulsGymVordt-v0",
)  # fmt: skip
FORWARD, LIGHT = 0, 16
SETUP_SPEED = 8.0
W = 0x57
CONTROLLER = """
import sys, gymnasium, soulsgym
from soulsgym.game.engine import GameEngine
GameEngine.__init__.__kwdefaults__["setup_speed"] = 8.0
env = gymnasium.make("SoulsGymIudex-v0", pid=int(sys.argv[1]), game_speed=0.5)
env.reset()
print("fighting", flush=True)
while True:
    env.step(0)
"""


@pytest.fixture
def make(start_standin, monkeypatch):
    """Makes an environment on a stand-in of its own; both go in the end. Fights are set up faster than usual."""
    if sys.platform != "win32":
        monkeypatch.setitem(GameEngine.__init__.__kwdefaults__, "setup_speed", SETUP_SPEED)
    made = []

    def maker(name, *switches, room=0, **keywords):
        boss = "vordt" if name == VORDT else "iudex"
        standin = start_standin("--start", "arena", "--boss", boss, *switches, room=room)
        env = gymnasium.make(name, pid=standin.pid, disable_env_checker=True, **{"game_speed": np.inf, **keywords})
        made.append(env)
        return env, standin

    yield maker
    for env in made:
        env.close()


@pytest.mark.parametrize(
    ("name", "keywords"),
    [
        (IUDEX, {"phase": 2, "random_player_pose": True, "skip_steps": True}),
        (SCREEN, {"resolution": (90, 160)}),
        (VORDT, {}),
    ],
)
def test_gymnasiums_checker_has_nothing_to_say(make, name, keywords):
    env, _ = make(name, **keywords)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Whatever is drawn on the screen or done by the boss differs from run to run: the game has no seed.
        warnings.filterwarnings("ignore", message=".*deterministic.*")
        # Its check of close() makes a second environment beside this one, and a game has one master: see below.
        check_env(env.unwrapped, skip_render_check=True, skip_close_check=True)
    env.close()
    env.close()
    again = env.spec.make(disable_env_checker=True)
    again.reset()
    again.close()


def test_observations_keep_to_their_space_and_info_tells_the_rest(make):
    env, standin = make(IUDEX)
    observation, info = env.reset(seed=1)
    assert set(observation) == set(OBSERVATION_KEYS)
    assert (info["player_hp"], info["boss_hp"]) == (454.0, 1037.0)
    for _ in range(40):
        before = standin.ticks
        observation, _, terminated, truncated, info = env.step(int(np.flatnonzero(info["action_mask"])[0]))
        assert observation in env.observation_space
        assert info["ticks"] == standin.ticks - before == 6
        assert info["stepping"] == "ticks"
        assert info["allowed_actions"] == np.flatnonzero(info["action_mask"]).tolist()
        if terminated or truncated:
            break
    assert env.unwrapped.game.player_max_hp == 454


def test_soulsgyms_names_and_a_reward_of_ones_own(make, monkeypatch):
    def counted(game_state, next_game_state):
        return 1000.0 + game_state.boss_hp - next_game_state.boss_hp

    env, _ = make(IUDEX)
    observation, _ = env.reset(seed=1)
    unwrapped = env.unwrapped
    assert (type(unwrapped), unwrapped.ENV_ID, unwrapped.phase) == (IudexEnv, "iudex", 1)
    state = unwrapped.game_state()
    assert (state.player_hp, state.boss_hp, state.player_animation, state.lock_on) == (454, 1037, "Idle", True)
    assert state.player_pose.tolist() == observation["player_pose"].tolist() == unwrapped.obs["player_pose"].tolist()
    assert unwrapped.game.data.bonfires[unwrapped.BONFIRE] == 4002951
    for _ in range(10):
        before = unwrapped.game_state()
        _, reward, terminated, _, info = env.step(FORWARD)
        assert reward == pytest.approx(IudexEnv.compute_reward(before, unwrapped.game_state()), abs=1e-6)
    monkeypatch.setattr(IudexEnv, "compute_reward", staticmethod(counted))
    assert not terminated
    before = unwrapped.game_state()
    _, reward, _, _, info = env.step(NOTHING)
    assert reward == counted(before, unwrapped.game_state()) == info["reward_terms"]["compute_reward"]


def test_the_running_game_by_soulsgyms_name(start_standin):
    standin = start_standin("--start", "arena")
    game = games.DarkSoulsIII(pid=standin.pid)
    try:
        assert (game.player_hp, game.player_max_hp, game.is_ingame) == (454, 454, True)
        game.pause()
        assert game.game_speed == 0.0
    finally:
        game.close()


def test_the_game_of_an_environment_can_be_read_beside_it(make):
    env, standin = make(IUDEX)
    env.reset()
    game = games.DarkSoulsIII(pid=standin.pid)
    assert game.iudex_max_hp == env.unwrapped.game.iudex_max_hp == 1037
    game.close()
    assert not env.step(FORWARD)[3]


def test_a_game_and_a_speed_that_were_taken_before_an_environment_go_on_beside_it(start_standin, monkeypatch):
    standin = start_standin("--start", "arena")
    monkeypatch.setattr(
        utils, "find_processes", lambda name: [one for one in find_processes(name) if one.pid == standin.pid]
    )
    monkeypatch.setitem(GameEngine.__init__.__kwdefaults__, "setup_speed", SETUP_SPEED)
    speed = SpeedHackConnector()
    speed.set_game_speed(2.0)
    game = games.DarkSoulsIII(pid=standin.pid)
    game.game_speed = 3.0
    env = gymnasium.make(IUDEX, pid=standin.pid, game_speed=np.inf)
    env.reset()
    assert not env.step(FORWARD)[3]
    assert (game.player_max_hp, game.game_speed) == (454, 0.0)
    env.close()
    game.game_speed = 2.0
    assert game.game_speed == 2.0
    speed.set_game_speed(1.5)
    assert (game.game_speed, game.player_hp) == (1.5, 454)
    game.close()


def test_vordt_has_frost(make):
    env, _ = make(VORDT)
    observation, _ = env.reset()
    assert set(observation) == {*OBSERVATION_KEYS, "frost_resistance", "frost_effect"}
    assert observation["frost_resistance"].tolist() == [1.0]
    assert observation in env.observation_space


def test_a_frame_has_the_asked_size(make):
    env, _ = make(SCREEN, resolution=(113, 201))
    frame, info = env.reset()
    assert frame.shape == (113, 201, 3)
    assert frame.dtype == np.uint8
    assert info["boss_hp"] == 1037.0
    assert frame.std() > 1.0


def test_frames_are_from_the_right_tick(make):
    env, standin = make(SCREEN, resolution=(450, 800))
    frame, info = env.reset()
    assert date_of(frame) == standin.ticks
    for number in range(60):
        action = FORWARD if number % 2 else NOTHING
        frame, _, terminated, _, info = env.step(action)
        assert date_of(frame) == standin.ticks
        assert {"player_hp", "boss_hp"} <= set(info)
        if terminated:
            frame, _ = env.reset()


def test_the_picture_of_the_game_can_be_rendered(make):
    env, _ = make(IUDEX, render_mode="rgb_array")
    env.reset()
    env.step(NOTHING)
    picture = env.render()
    assert picture.shape == (450, 800, 3)
    assert date_of(picture) is not None


def test_the_demo_ends_with_a_real_death(make):
    env, standin = make(DEMO)
    env.reset()
    deaths = standin.look().player_deaths
    for _ in range(1500):
        _, reward, terminated, truncated, info = env.step(FORWARD)
        if terminated or truncated:
            break
    assert terminated
    assert not truncated
    assert info["won"] is False
    assert info["killed_by"] != ""
    assert reward < 0.0
    standin.wait_for(lambda block: block.player_deaths == deaths + 1)
    with pytest.raises(ResetNeeded):
        env.step(NOTHING)
    _, info = env.reset()
    assert info["player_hp"] == 454.0


def test_training_fights_are_tracked_here_and_restored_in_the_game(make):
    env, standin = make(IUDEX)
    env.reset()
    deaths, least = standin.look().player_deaths, 454.0
    for _ in range(1500):
        _, _, terminated, truncated, info = env.step(FORWARD)
        least = min(least, info["player_hp"])
        if terminated or truncated:
            break
    assert terminated
    assert info["player_hp"] == least == 0.0
    assert standin.fields.get("PlayerHP") == 454
    assert standin.look().player_deaths == deaths


def test_a_won_training_fight(make):
    env, standin = make(IUDEX)
    env.reset(options={"start": {"boss_hp": 20}})
    standin.fields.set("IudexHP", 1037 - 30)
    _, reward, terminated, _, info = env.step(NOTHING)
    assert terminated
    assert info["won"] is True
    assert reward > 0.0


@pytest.mark.parametrize("name", [IUDEX, SCREEN])
def test_a_crash_cuts_the_fight_off(make, name):
    env, standin = make(name)
    env.reset()
    standin.mail(crash=1)
    for _ in range(20):
        observation, reward, terminated, truncated, info = env.step(NOTHING)
        if terminated or truncated:
            break
    assert (terminated, truncated) == (False, True)
    assert reward == pytest.approx(0.0, abs=0.05)
    assert observation in env.observation_space
    assert info["failure"]
    assert info["won"] is False


@pytest.mark.skipif(sys.platform == "win32", reason="the command is one of Linux")
def test_a_crashed_game_is_started_again(make, standin_exe):
    env, standin = make(IUDEX, launch=["wine", str(standin_exe), "--start", "title"])
    env.reset()
    standin.mail(crash=1)
    truncated = False
    while not truncated:
        _, _, _, truncated, _ = env.step(NOTHING)
    _, info = env.reset()
    another = env.unwrapped.game.memory.process.pid
    try:
        assert another != standin.pid
        assert info["restarts"] == 1
        assert info["player_hp"] == 454.0
        _, _, terminated, truncated, info = env.step(NOTHING)
        assert (terminated, truncated, info["ticks"]) == (False, False, 6)
    finally:
        env.close()
        os.kill(another, signal.SIGKILL)


def test_two_environments_at_once(make):
    one, first = make(IUDEX)
    other, second = make(IUDEX, room=1)
    for env in (one, other):
        env.reset()
    tried = first.look().light_attacks, second.look().light_attacks  # by the resets, with which the sword is tried
    for _ in range(20):
        before = first.ticks, second.ticks
        one.step(FORWARD)
        other.step(LIGHT)
        assert (first.ticks - before[0], second.ticks - before[1]) == (6, 6)
    assert first.look().light_attacks == tried[0]
    assert second.look().light_attacks > tried[1]


def test_without_a_game():
    with pytest.raises(GameNotFound, match=r"process 999999 is not DarkSoulsIII\.exe"):
        gymnasium.make(IUDEX, pid=999999)


@pytest.mark.parametrize(
    ("name", "keywords", "text"),
    [
        (IUDEX, {"phase": 3}, "phase 3 is not there"),
        (IUDEX, {"game_speed": 0}, "game_speed 0 is not possible"),
        (IUDEX, {"stepping": "hop"}, "stepping 'hop' is not known"),
        (IUDEX, {"render_mode": "ansi"}, "render_mode 'ansi' is not known"),
        (SCREEN, {"resolution": (0, 5)}, r"resolution \(0, 5\) is not possible"),
    ],
)
def test_wrong_keywords(name, keywords, text):
    with pytest.raises(MisuseError, match=text):
        gymnasium.make(name, pid=1, disable_env_checker=True, **keywords)


def controller(standin):
    process = subprocess.Popen(
        [sys.executable, "-c", CONTROLLER, str(standin.pid)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout.readline().strip() == b"fighting"
    standin.wait_for(lambda block: block.held[0][W] or block.held[3][W] or block.held[2][W])
    return process


def runs_at_its_own_speed(standin):
    return rate_of(lambda: standin.ticks, 60.0) == pytest.approx(60.0, rel=0.15)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent as on Linux")
def test_ctrl_c_leaves_the_game_as_it_was(start_standin):
    standin = start_standin("--start", "arena")
    process = controller(standin)
    process.send_signal(signal.SIGINT)
    process.wait(60)
    standin.nothing_held()
    assert runs_at_its_own_speed(standin)
    assert standin.fields.get("LockOnBonusRange") == 0.0


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent as on Linux")
def test_kill_9_of_the_controller_leaves_the_game_at_speed_1(start_standin):
    standin = start_standin("--start", "arena")
    process = controller(standin)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(60)
    assert runs_at_its_own_speed(standin)
    # The next one takes the game over, and finds no key held.
    env = gymnasium.make(IUDEX, pid=standin.pid, disable_env_checker=True, game_speed=np.inf)
    env.reset()
    standin.wait_for(lambda block: not any(held[W] for held in block.held))
    env.close()
    assert runs_at_its_own_speed(standin)
    # Nor does it take for the game's own what the one before has left behind.
    assert standin.fields.get("LockOnBonusRange") == 0.0
    assert [standin.fields.get(flag) for flag in ("AllNoDeath", "AllNoHit", "AllNoMove", "PlayerNoDeath")] == [0] * 4
