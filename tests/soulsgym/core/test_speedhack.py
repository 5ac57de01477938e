"""The clock of a running game by SoulsGym's names; on a real process it is tested with the clock itself."""

from types import SimpleNamespace

import numpy as np
import pytest

from soulsgym.core import utils
from soulsgym.core.speedhack import SpeedHackConnector, inject_dll
from soulsgym.errors import GameNotFound, SpeedControlError
from soulsgym.exception import InjectionFailure
from soulsgym.game import attach


@pytest.fixture
def game(monkeypatch):
    """A game that runs, and what is done with it."""
    done = []
    clock = SimpleNamespace(set_speed=lambda value: done.append(value), close=lambda: done.append("clock"))
    process = SimpleNamespace(close=lambda: done.append("process"))
    monkeypatch.setattr(utils, "find_processes", lambda name: [SimpleNamespace(pid=7)])
    monkeypatch.setattr(attach, "open_process", lambda pid: process)
    monkeypatch.setattr(attach, "load_speed_control", lambda found, memory: done.append("taken") or clock)
    monkeypatch.setattr(attach, "_CLOCKS", {})
    return done


def test_the_speed_is_set_and_let_go(game):
    connector = SpeedHackConnector("DarkSoulsIII.exe")
    connector.set_game_speed(2.0)
    connector.close()
    assert game == ["taken", 2.0, "clock", "process"]


def test_several_of_one_program_share_the_clock(game):
    first, second = SpeedHackConnector(), SpeedHackConnector()
    first.set_game_speed(2.0)
    second.set_game_speed(3.0)
    first.close()
    second.set_game_speed(1.0)
    assert game == ["taken", 2.0, 3.0, "clock", "process", "taken", 1.0]


def test_the_clock_of_an_environment_is_shared_and_left_to_it(game, monkeypatch):
    speeds = []
    clock = SimpleNamespace(set_speed=speeds.append, close=lambda: speeds.append("closed"))
    connector = SpeedHackConnector()
    monkeypatch.setitem(attach._HELD, 7, SimpleNamespace(clock=clock))
    attach.release_clock(7)  # as an environment does that is made now
    connector.set_game_speed(0.0)
    connector.close()
    assert (speeds, game) == ([0.0], ["taken", "clock", "process"])


def test_their_library_is_not_looked_at(game):
    inject_dll("DarkSoulsIII.exe", "C:/nowhere/SpeedHackDLL.dll")
    assert game == ["taken"]


def test_a_game_that_refuses_the_library_is_let_go(game, monkeypatch):
    def refuse(found, memory):
        raise SpeedControlError("it refuses")

    monkeypatch.setattr(attach, "load_speed_control", refuse)
    with pytest.raises(InjectionFailure, match="it refuses"):
        SpeedHackConnector()
    assert game == ["process"]


def test_what_does_not_run_is_named(monkeypatch):
    monkeypatch.setattr(utils, "find_processes", lambda name: [])
    with pytest.raises(GameNotFound, match=r"DarkSoulsIII\.exe is not running"):
        utils.get_pid("DarkSoulsIII.exe")
    with pytest.raises(RuntimeError):  # as SoulsGym's users expect it
        utils.get_pid("DarkSoulsIII.exe")
    with pytest.raises(GameNotFound):
        SpeedHackConnector()


def test_angles_are_wrapped_alone_and_in_arrays():
    assert utils.wrap_to_pi(4.0) == pytest.approx(4.0 - 2 * np.pi)
    assert utils.wrap_to_pi(np.array([0.0, -4.0])) == pytest.approx([0.0, 2 * np.pi - 4.0])
