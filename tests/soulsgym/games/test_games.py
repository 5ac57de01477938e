"""The running games by SoulsGym's names: made, they are attached to."""

from types import SimpleNamespace

import pytest

from soulsgym import games
from soulsgym.errors import GameNotFound, MisuseError
from soulsgym.game.addresses import load_addresses
from soulsgym.games import game as module


@pytest.fixture
def held(monkeypatch):
    """What attach() gives, without a process behind it."""
    asked = []

    def attach(folder, pid):
        closed = []
        asked.append((folder, pid, closed))
        return SimpleNamespace(
            memory=f"memory of {folder}", keyboard=None, window=None, clock=None, close=lambda: closed.append(1),
            is_open=True,
        )  # fmt: skip

    monkeypatch.setattr(module, "attach", attach)
    monkeypatch.setattr(module, "find_game", lambda folder, pid: SimpleNamespace(pid=pid or 5))
    monkeypatch.setattr("soulsgym.game.titles.title.Pointers", lambda memory, table: (memory, table.id))
    return asked


@pytest.mark.parametrize(("game_id", "folder"), [("DarkSoulsIII", "darksouls3"), ("EldenRing", "eldenring")])
def test_the_factory_attaches_to_the_game_of_an_id(held, game_id, folder):
    made = games.game_factory(game_id)
    assert type(made) is getattr(games, game_id)
    assert (made.game_id, made.process_name) == (game_id, load_addresses(folder).executable)
    assert made.pointers == (f"memory of {folder}", folder)
    assert made.data.keybindings["forward"] == "W"
    made.close()
    assert held == [(folder, 5, [1])]


def test_which_of_several_may_be_said(held):
    games.DarkSoulsIII(pid=77)
    assert held[0][:2] == ("darksouls3", 77)


def test_the_game_of_an_environment_is_shared_and_left_to_it(held, monkeypatch):
    closed = []
    of_env = SimpleNamespace(
        memory="its memory", keyboard=None, window=None, clock="its clock", close=closed.append, is_open=True
    )
    monkeypatch.setattr(module, "held_game", {5: of_env}.get)
    made = games.DarkSoulsIII()
    assert (made.memory, made.clock, held) == ("its memory", "its clock", [])
    made.close()
    assert closed == []


def test_an_environment_may_take_the_game_and_let_go_of_it(held, monkeypatch):
    games_held = {}
    monkeypatch.setattr(module, "held_game", games_held.get)
    made = games.DarkSoulsIII()
    made._held.is_open = False
    games_held[5] = of_env = SimpleNamespace(
        memory="its memory", keyboard=None, window=None, clock="its clock", is_open=True
    )
    assert (made.clock, made.pointers[0], len(held)) == ("its clock", "its memory", 1)
    of_env.is_open = False
    del games_held[5]
    assert (made.memory, len(held)) == ("memory of darksouls3", 2)
    made.close()
    assert held[1][2] == [1]


def test_a_game_that_is_not_known_is_named():
    with pytest.raises(MisuseError, match="game 'Sekiro' is not known; known are DarkSoulsIII, EldenRing"):
        games.game_factory("Sekiro")


def test_a_game_that_does_not_run_is_named(monkeypatch):
    monkeypatch.setattr("soulsgym.game.attach.find_processes", lambda executable: [])
    with pytest.raises(GameNotFound, match=r"eldenring\.exe is not running"):
        games.EldenRing()
