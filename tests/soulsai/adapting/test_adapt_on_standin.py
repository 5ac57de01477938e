"""An agent of the simulator on its way into the game, for which the stand-in stands: adapt, and calibrate by hand."""

import json
import sys

import pytest
from typer.testing import CliRunner

from soulsai.cli.main import app
from soulsgym.game.engine import GameEngine
from soulsgym.recordings.recording import read_recording
from soulsgym.spec import load_fight

pytestmark = [pytest.mark.wine, pytest.mark.usefixtures("no_lapse")]

SETUP_SPEED = 8.0
SMALL = ["run.threads=1", "fight.number=8", "run.final_fights=4", "run.evaluation_fights=2"]


def souls(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def test_an_agent_adapts_to_the_game_and_its_recordings_calibrate(start_standin, trained, tmp_path, monkeypatch):
    if sys.platform != "win32":
        monkeypatch.setitem(GameEngine.__init__.__kwdefaults__, "setup_speed", SETUP_SPEED)
    standin, folder = start_standin("--start", "arena"), tmp_path / "adapted"
    settings = [part for setting in SMALL for part in ("--set", setting)]
    told = json.loads(
        souls(
            "adapt", trained, "--game", "--pid", standin.pid, "--game-speed", "inf", "--minutes", 1.5, "--fights", 1,
            "--train-steps", 600, "--out", folder, "--json", *settings,
        )
    )  # fmt: skip
    assert told["minutes"] == pytest.approx(1.5)
    assert told["before"]["fights"] == told["after"]["fights"] == 1
    recordings = sorted((folder / "recordings").glob("*.npz"))
    assert [file.name for file in recordings] == ["1-agent.npz", "1-prober-1.npz", "1-prober-2.npz"]
    assert all((read_recording(file).fights["dodged"] == -1).all() for file in recordings)
    assert load_fight(str(folder / "boss-1.toml")).boss.known
    text = souls("calibrate", *recordings, "--out", tmp_path / "mine.toml")
    assert "numbers measured in" in text
    assert (
        load_fight("iudex", str(tmp_path / "mine.toml")).boss.moves
        == load_fight(str(folder / "boss-1.toml")).boss.moves
    )
