"""Dark Souls III's interface on a real Windows program under Wine that has the game's memory."""

import math
import sys
import time

import numpy as np
import pytest
import standin_kit

from soulsgym.errors import GameVersionError, ReadFailed
from soulsgym.game.keyboard import Keyboard, load_bindings, open_keys
from soulsgym.game.memory import ProcessMemory
from soulsgym.game.process import find_processes, open_process
from soulsgym.game.titles import DarkSoulsIII
from soulsgym.game.titles.values import Property
from soulsgym.game.window import open_window

pytestmark = pytest.mark.wine


@pytest.fixture
def game(standin):
    return opened(standin)


def opened(standin):
    return DarkSoulsIII(ProcessMemory(open_process(standin.pid)))


@pytest.fixture(scope="module")
def _kept():
    return []


@pytest.fixture
def lasting(wine, standin_exe, _kept):
    """One stand-in for all tests that leave it as it was; another one if a test needed its room."""
    if not _kept or not _kept[-1].is_running():
        _kept.append(wine.start("--start", "arena", executable=standin_exe))
    return _kept[-1]


def wait_until(happens, limit_s=60.0):
    limit = time.monotonic() + limit_s
    while not happens():
        assert time.monotonic() < limit, "did not happen in time"
        time.sleep(0.005)


@pytest.mark.skipif(sys.platform == "win32", reason="only Linux tells the environment of another program")
def test_a_program_under_wine_is_found_with_its_display_and_prefix(standin):
    (found,) = [one for one in find_processes("DarkSoulsIII.exe") if one.pid == standin.pid]
    assert found.environment["DISPLAY"] == standin.environment["DISPLAY"]
    assert found.environment["WINEPREFIX"] == standin.environment["WINEPREFIX"]


def test_every_property_can_be_read_and_is_plausible(game, standin):
    game.allow_attacks = game.allow_moves = False
    standin.wait_ticks(120)  # what the boss had begun is over, so that nothing moves between two reads
    for name in dir(DarkSoulsIII):
        if isinstance(getattr(DarkSoulsIII, name), Property):
            if name.startswith("vordt_"):
                continue  # he is not on this map
            assert getattr(game, name) is not None, name
    assert game.is_ingame
    assert 0 < game.player_hp <= game.player_max_hp
    assert 0 < game.iudex_hp <= game.iudex_max_hp
    assert game.player_animation
    assert game.last_bonfire == "Cemetery of Ash"
    assert game.window_resolution == (800, 450)
    assert game.screen_mode == "window"
    block = standin.look()
    np.testing.assert_allclose(game.player_pose[:3], block.player[:3], atol=0.5)
    np.testing.assert_allclose(game.iudex_pose[:3], block.boss[:3], atol=0.5)
    assert math.hypot(*game.camera_pose[3:]) == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("allow_player_death", False), ("allow_deaths", False), ("allow_hits", False), ("allow_attacks", False),
        ("allow_moves", False), ("allow_weapon_durability_dmg", False), ("gravity", False), ("iudex_attacks", False),
        ("lock_on_bonus_range", 20.0), ("los_lock_on_deactivate_time", 50.0), ("iudex_hp", 500), ("player_hp", 300),
        ("last_bonfire", "Firelink Shrine"), ("player_stats", (9, 12, 10, 11, 15, 13, 12, 9, 9, 7)),
    ],
)  # fmt: skip
def test_what_is_written_is_seen_again_some_ticks_later(lasting, name, value):
    game = opened(lasting)
    game.allow_attacks = game.allow_moves = False
    saved = getattr(game, name)
    setattr(game, name, value)
    lasting.wait_ticks(5)
    assert getattr(game, name) == value
    setattr(game, name, saved)
    lasting.wait_ticks(2)
    assert getattr(game, name) == saved


def test_flags_of_the_story_are_written_and_seen_again(lasting):
    game = opened(lasting)
    for ready in (True, False, True):
        game.iudex_flags = ready
        lasting.wait_ticks(3)
        assert game.iudex_flags is ready


def test_the_play_time_goes_on_from_where_it_is_set(lasting):
    game = opened(lasting)
    game.time = (1 << 31) + 1000
    lasting.wait_ticks(6)
    assert 1000 < game.time - (1 << 31) < 60_000
    start = game.time
    game.sleep(0.3)
    assert 0.3 <= (game.time - start) / 1000 < 10.0


def test_the_player_is_put_somewhere_and_stays_there(game, standin):
    game.allow_attacks = game.allow_moves = False
    pose = game.player_pose
    wanted = (pose[0] + 2.0, pose[1] + 2.0, pose[2], 1.0)
    game.player_pose = wanted
    standin.wait_ticks(5)
    np.testing.assert_allclose(game.player_pose[:2], wanted[:2], atol=0.2)
    np.testing.assert_allclose(standin.look().player[:2], wanted[:2], atol=0.2)
    assert game.gravity is True
    assert game.allow_player_death is True


def test_the_boss_is_put_somewhere(game, standin):
    game.allow_attacks = game.allow_moves = False
    standin.wait_ticks(120)
    pose = game.iudex_pose
    game.iudex_pose = (pose[0] + 1.5, pose[1] - 1.5, pose[2], pose[3])
    standin.wait_ticks(3)
    np.testing.assert_allclose(standin.look().boss[:2], (pose[0] + 1.5, pose[1] - 1.5), atol=0.5)


def test_looks_at_a_running_game_are_consistent_and_cost_one_call(game):
    game.look("iudex")
    before, count = game.memory.process.calls, 400
    times = [game.look("iudex").time_ms for _ in range(count)]
    assert times == sorted(times)
    assert game.memory.process.calls - before <= 2 * count
    sight = game.look("iudex")
    assert sight.player_max_hp == game.player_max_hp
    assert sight.boss_max_hp == game.iudex_max_hp


def test_a_look_while_pointers_are_null_says_not_in_game_and_recovers(game, standin):
    game.look("iudex")
    standin.mail(null_chains_ticks=600)
    wait_until(lambda: not game.is_ingame)
    with pytest.raises(ReadFailed, match="not in game"):
        game.look("iudex")
    standin.mail(null_chains_ticks=1)
    wait_until(lambda: game.is_ingame)
    assert game.look("iudex").player_max_hp > 0


def test_a_reload_kills_and_brings_back_and_restores_flags(game, standin):
    game.allow_hits = False
    deaths, loads = standin.look().player_deaths, standin.look().loads
    game.reload()
    assert standin.look().player_deaths == deaths + 1
    assert game.player_animation == "Idle"
    assert game.player_hp == game.player_max_hp
    assert game.allow_hits is False
    assert standin.look().loads == loads + 1


def test_what_was_remembered_is_put_back(game):
    saved = game.remember()
    game.allow_deaths, game.lock_on_bonus_range, game.gravity = False, 33.0, False
    game.put_back(saved)
    assert game.remember() == saved


def test_vordt_is_read_on_his_own_map(start_standin):
    standin = start_standin("--start", "arena", "--boss", "vordt")
    game = opened(standin)
    sight = game.look("vordt")
    assert 0 < sight.boss_hp <= sight.boss_max_hp
    assert game.vordt_flags in (True, False)
    assert game.vordt_animation_max_time >= 0.0
    game.vordt_hp = 200
    standin.wait_ticks(3)
    assert game.vordt_hp == 200
    np.testing.assert_allclose(game.vordt_pose[:3], standin.look().boss[:3], atol=0.5)


def test_two_games_at_once_never_mix(start_standin):
    standins, games = [], []
    for room in (0, 1):
        standins.append(start_standin("--start", "arena", room=room))
        games.append(opened(standins[-1]))
        games[-1].allow_attacks = False  # at once: the other one may take longer to start than the player lives
    games[0].player_hp, games[1].player_hp = 111, 222
    for standin in standins:
        standin.wait_ticks(3)
    assert [game.player_hp for game in games] == [111, 222]


def test_another_version_is_refused(start_standin, tmp_path):
    standin = start_standin(executable=standin_kit.other_version(tmp_path))
    with pytest.raises(GameVersionError, match=r"1\.15\.2\.0"):
        opened(standin)


def test_the_camera_is_turned_by_real_keys(standin):
    (found,) = [one for one in find_processes("DarkSoulsIII.exe") if one.pid == standin.pid]
    window, keyboard = open_window(found, "DARK SOULS III"), Keyboard(open_keys(found), load_bindings("darksouls3"))
    try:
        window.activate()
        game = DarkSoulsIII(ProcessMemory(open_process(standin.pid)), keyboard=keyboard, window=window)
        game.allow_attacks = game.allow_moves = False
        wait_until(lambda: not game.lock_on)
        bearing = math.atan2(game.camera_pose[3], game.camera_pose[4]) + 2.0
        game.camera_pose = (math.sin(bearing), math.cos(bearing), 0.1)
        seen = game.camera_pose[3:]
        assert abs(math.remainder(math.atan2(seen[0], seen[1]) - bearing, math.tau)) < 0.1
        assert abs(seen[2] - 0.1) < 0.1
        assert keyboard.held == frozenset()
        assert game.img.shape == (90, 160, 3)
        assert game.img.max() > 0
    finally:
        keyboard.close()
        window.close()
