"""Scripts in the manner of SoulsGym's users on a running program with the game's memory."""

import runpy
import sys
from pathlib import Path

import pytest

from soulsgym.core import utils
from soulsgym.envs.darksouls3 import REHEARSE
from soulsgym.game import attach
from soulsgym.game.engine import GameEngine
from soulsgym.game.process import find_processes

pytestmark = [pytest.mark.wine, pytest.mark.usefixtures("no_lapse")]


@pytest.mark.parametrize("script", ["random_agent", "own_environment", "the_game_itself", "frames"])
def test_they_run_as_they_are(start_standin, monkeypatch, script):
    standin = start_standin("--start", "arena")
    monkeypatch.delenv(REHEARSE, raising=False)
    for module in (attach, utils):  # others may run too
        monkeypatch.setattr(
            module, "find_processes", lambda name: [one for one in find_processes(name) if one.pid == standin.pid]
        )
    monkeypatch.setitem(GameEngine.__init__.__kwdefaults__, "setup_speed", 8.0)
    monkeypatch.setattr(sys, "argv", [script, "SoulsGymIudex-v0"])
    runpy.run_path(str(Path(__file__).parent / "scripts" / f"{script}.py"), run_name="__main__")
