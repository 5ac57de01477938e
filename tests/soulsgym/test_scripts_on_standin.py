"""Scripts in the manner of SoulsGym's users on a running program with the game's memory."""

import runpy
import sys
from pathlib import Path

import pytest

from soulsgym.envs.darksouls3 import REHEARSE
from soulsgym.game import attach
from soulsgym.game.engine import GameEngine

pytestmark = [pytest.mark.wine, pytest.mark.usefixtures("no_lapse")]


@pytest.mark.parametrize("script", ["random_agent", "own_environment"])
def test_they_run_as_they_are(start_standin, monkeypatch, script):
    standin = start_standin("--start", "arena")
    find_game = attach.find_game
    monkeypatch.delenv(REHEARSE, raising=False)
    monkeypatch.setattr(attach, "find_game", lambda name, pid=None: find_game(name, standin.pid))  # others may run too
    monkeypatch.setitem(GameEngine.__init__.__kwdefaults__, "setup_speed", 8.0)
    monkeypatch.setattr(sys, "argv", [script, "SoulsGymIudex-v0"])
    runpy.run_path(str(Path(__file__).parent / "scripts" / f"{script}.py"), run_name="__main__")
