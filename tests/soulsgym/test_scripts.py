"""Scripts in the manner of SoulsGym's users run as they are: on the simulator, on a fake game, on a rehearsal."""

import math
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from soulsgym.envs.darksouls3 import REHEARSE
from soulsgym.envs.darksouls3.iudex import IudexEnv
from soulsgym.game.engine import GameEngine

sys.path.insert(0, str(Path(__file__).parent / "game"))

from fake_game import FakeTime, fake_game

SCRIPTS = Path(__file__).parent / "scripts"
SIM, GAME, DEMO = "SoulsGymIudexSim-v0", "SoulsGymIudex-v0", "SoulsGymIudexDemo-v0"
OF_AN_ID = [
    "random_agent", "flat_q_learning", "encoded_animations", "json_log", "wrapped", "two_policies", "states",
]  # fmt: skip
ON_THE_STANDIN = ["the_game_itself", "frames"]


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Runs a script here, with our classes as they are; further arguments are its own."""
    standard = IudexEnv.__dict__["compute_reward"]

    def run(script, *arguments):
        more = [str(tmp_path / "log.jsonl")] if script in ("json_log", "states") else []
        monkeypatch.setattr(sys, "argv", [script, *arguments, *more])
        runpy.run_path(str(SCRIPTS / f"{script}.py"), run_name="__main__")

    yield run
    IudexEnv.compute_reward = standard


@pytest.fixture
def game(monkeypatch):
    """A fake game runs."""

    def open_fake(plan, options, *, phase=1, changes=False):
        source = FakeTime()
        games = [fake_game(plan.boss, source=source)]
        return GameEngine(plan, games, phase=phase, changes=changes, game_speed=math.inf, source=source)

    monkeypatch.setattr("soulsgym.game.engine.open_engine", open_fake)


def test_every_script_is_run():
    found = {file.stem for file in SCRIPTS.glob("*.py")}
    assert found == {*OF_AN_ID, *ON_THE_STANDIN, "own_environment", "two_processes", "keys_and_speed", "sb3_dqn"}


@pytest.mark.parametrize("script", OF_AN_ID)
def test_on_the_simulator(run, script):
    run(script, SIM)


@pytest.mark.parametrize("name", [GAME, DEMO])
@pytest.mark.parametrize("script", OF_AN_ID)
def test_on_a_game(run, game, script, name):
    run(script, name)


@pytest.mark.slow
def test_another_learner(run, game):
    pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed; make setup does it")
    run("sb3_dqn", GAME)


def test_a_class_of_its_own_on_a_game(run, game):
    run("own_environment")


def test_without_any_game(run):
    run("keys_and_speed")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ("two_processes", [SIM]),
        ("two_processes", [GAME]),
        ("flat_q_learning", [GAME, "--hit", "20"]),
        ("own_environment", []),
    ],
    ids=["processes", "rehearsals", "rehearsal", "class"],
)
def test_as_a_program_of_its_own_with_a_simulator_in_place_of_the_game(script, arguments):
    done = subprocess.run(
        [sys.executable, SCRIPTS / f"{script}.py", *arguments],
        env={**os.environ, REHEARSE: "standard"}, capture_output=True, text=True, timeout=570, check=False,
    )  # fmt: skip
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert ("a simulator stands in for the game" in done.stderr) == (arguments != [SIM])
