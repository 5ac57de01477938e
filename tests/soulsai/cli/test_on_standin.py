"""The commands on a running game, for which the stand-in stands: an agent's way from the simulator into the game."""

import os
import re
import subprocess
import sys
import threading
import time

import pytest
from standin_kit import NotThere
from typer.testing import CliRunner

from soulsai.cli.main import app
from soulsai.evaluation import Evaluation
from soulsgym.game.engine import GameEngine
from soulsgym.recordings.recording import read_recording
from soulsgym.state import Outcome

pytestmark = [pytest.mark.wine, pytest.mark.usefixtures("no_lapse")]

AGENT = ["run.steps=400_000", "run.evaluate_every_steps=0", "run.final_fights=0", "fight.number=128",
         "fight.variants=['standard']", "run.threads=1", "network.hidden=[64, 64]"]  # fmt: skip
LEARNER = ["run.steps=1000000", "run.evaluate_every_steps=0", "run.final_fights=0", "network.hidden=[8]",
           "fleet.chunk_rows=32", "fleet.chunk_s=0.2", "run.threads=1"]  # fmt: skip
LIMIT_S = 240.0


@pytest.fixture(autouse=True)
def _swift(monkeypatch):
    """Fights are set up faster than usual."""
    monkeypatch.setitem(GameEngine.__init__.__kwdefaults__, "setup_speed", 8.0)


def souls(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def sets(settings):
    return [part for setting in settings for part in ("--set", setting)]


def in_game(standin):
    return ["--pid", standin.pid, "--game-speed", "inf"]


def test_an_agent_from_the_simulator_fights_in_the_game_and_its_wins_are_counted(start_standin, tmp_path):
    """Of the second fight the stand-in decides that it is won; the others are what the agent makes of them."""
    folder = tmp_path / "agent"
    souls("train", "iudex", "--run", folder, "--plain", "--accept-all", *sets(AGENT))
    standin = start_standin("--start", "arena")
    over = threading.Event()

    def is_fought():
        try:
            return standin.fields.get("LockOn") and not standin.fields.get("AllNoMove") and standin.look().boss_active
        except NotThere:  # it loads
            return False

    def let_the_second_be_won():
        while not over.is_set() and standin.look().player_deaths < 2:  # the set-up, and the end of the first fight
            time.sleep(0.01)
        while not over.is_set() and not is_fought():
            time.sleep(0.01)
        standin.mail(kill_boss=1)

    referee = threading.Thread(target=let_the_second_be_won)
    referee.start()
    try:
        found = Evaluation.from_json(souls("eval", folder, "--game", *in_game(standin), "--fights", 3, "--json"))
    finally:
        over.set()
        referee.join()
    assert (found.fights, found.settings.engine) == (3, "game")
    assert found.wins == standin.look().boss_deaths >= 1
    assert found.died + found.fell + found.wins + found.time_outs == 3
    assert found.hits.attack  # by name of the boss's attack


def test_fights_in_the_game_are_recorded_like_any_other(start_standin, tmp_path):
    standin, file = start_standin("--start", "arena"), tmp_path / "fights.npz"
    text = souls("record", "player:idle", "--env", "SoulsGymIudex-v0", "--out", file, *in_game(standin), "--fights", 2)
    assert "2 fights" in text
    recording = read_recording(file)
    ends = [int(recording.fights["outcome"][high - 1]) for _, high in recording.bounds()]
    assert ends == [Outcome.DIED] * 2
    assert (recording.fights["player_hp"][[high - 1 for _, high in recording.bounds()], 0] == 0.0).all()
    result = CliRunner().invoke(app, ["fidelity", str(file)], env={"COLUMNS": "200"})
    assert "boss root motion" in result.stdout


def test_a_worker_plays_in_the_game_for_a_learner_elsewhere(start_standin, tmp_path):
    standin = start_standin("--start", "arena")
    command = [sys.executable, "-c", "from soulsai.cli.main import main; main()"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200", "SOULS_REDIS": ""}
    said = {name: tmp_path / f"{name}.txt" for name in ("serve", "join")}
    processes = []

    def start(name, *arguments):
        processes.append(
            subprocess.Popen(
                [*command, name, *map(str, arguments)], cwd=tmp_path, env=environment,
                stdout=said[name].open("w"), stderr=subprocess.STDOUT,
            )
        )  # fmt: skip

    def wait_for(name, pattern):
        deadline = time.monotonic() + LIMIT_S
        while not (found := re.search(pattern, said[name].read_text())):
            assert time.monotonic() < deadline, f"{name} did not say {pattern}:\n{said[name].read_text()}"
            time.sleep(0.2)
        return found

    try:
        start("serve", "smoke-q", "--run", tmp_path / "run", "--plain", "--accept-all", *sets(LEARNER))
        url = wait_for("serve", r"souls join (\S+)")[1]
        start("join", url, "--env-backend", "game", *in_game(standin))
        wait_for("join", r"\d+ steps, .* sent [1-9]")
        assert standin.look().rolls + standin.look().light_attacks > 0
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(LIMIT_S)
    deadline_s = time.monotonic() + LIMIT_S
    while any(standin.look().held[source][key] for source in range(4) for key in (0x57, 0x53, 0x41, 0x44, 0x20)):
        assert time.monotonic() < deadline_s, "keys are still held"
        time.sleep(0.05)
