"""GameInput holds, presses and lets go; the game is looked for when a key is pressed."""

import sys
from pathlib import Path

import pytest

from soulsgym.core import game_input
from soulsgym.core.game_input import GameInput
from soulsgym.errors import GameNotFound, MisuseError

sys.path.insert(0, str(Path(__file__).parents[1] / "game"))

from fake_window import FakeKeys


@pytest.fixture
def keys(monkeypatch):
    """Keys of a game that runs."""
    keys = FakeKeys()
    monkeypatch.setattr(game_input, "find_game", lambda folder: folder)
    monkeypatch.setattr(game_input, "open_keys", lambda found: keys)
    monkeypatch.setattr(game_input.time, "sleep", lambda seconds: None)
    return keys


def test_what_is_added_is_held_until_an_update_without_it(keys):
    pressed = GameInput("DarkSoulsIII")
    pressed.add_action("forward")
    assert keys.sent == []
    pressed.update_input()
    assert pressed.state["forward"]
    pressed.update_input()
    assert keys.sent == [("W", True), ("W", False)]
    assert not any(pressed.state.values())


def test_a_roll_is_pressed_for_a_moment_after_its_direction(keys):
    pressed = GameInput("DarkSoulsIII", game_speed=3.0)
    pressed.add_actions(["roll", "left"])
    pressed.update_input()
    assert keys.sent == [("A", True), ("Space", True), ("Space", False)]
    pressed.single_action("lock_on", 0.01)
    pressed.reset()
    assert keys.down == set()


def test_a_key_that_was_interrupted_is_let_go(keys, monkeypatch):
    def interrupted(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(game_input.time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        GameInput("DarkSoulsIII").single_action("interact")
    assert keys.down == set()


def test_the_lock_on_has_the_name_of_the_released_version_too(keys):
    pressed = GameInput("DarkSoulsIII")
    pressed.add_action("lockon")
    pressed.update_input()
    assert pressed.state["lock_on"]
    pressed.update_input()
    pressed.single_action("lockon")
    assert keys.sent == [("Q", True), ("Q", False)] * 2


def test_an_action_without_a_key_is_named(keys):
    with pytest.raises(MisuseError, match="action 'lock-on' has no key, did you mean 'lock_on'"):
        GameInput("DarkSoulsIII").add_action("lock-on")
    with pytest.raises(MisuseError, match="game_speed 0 is not possible"):
        GameInput("DarkSoulsIII", 0)


def test_without_a_game_only_pressing_fails(monkeypatch):
    def nothing_runs(folder):
        raise GameNotFound("DarkSoulsIII.exe is not running; start the game")

    monkeypatch.setattr(game_input, "find_game", nothing_runs)
    pressed = GameInput("DarkSoulsIII")
    pressed.add_action("forward")
    pressed.reset()
    with pytest.raises(GameNotFound, match="is not running"):
        pressed.single_action("interact")
