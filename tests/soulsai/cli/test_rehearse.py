"""`--rehearse` through every command that takes it: nothing but the process of the rehearsal opens the file."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import soulsai
from soulsai.cli.main import app
from soulsgym.spec.draw import write_overlay

TELLS_WHO_OPENS = """
import os
import sys

def tell(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes)) and os.fsdecode(arguments[0]).endswith("hidden.toml"):
        log = os.open(os.environ["OPENED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(log, (" ".join(sys.orig_argv) + "\\n").encode())
        os.close(log)

sys.addaudithook(tell)
"""
SMALL = ("run.threads=1", "run.final_fights=1", "fight.number=32", "ppo.minibatch=512")


@pytest.fixture
def souls(tmp_path):
    """Runs a command; who has opened the file since."""
    write_overlay(tmp_path / "hidden.toml", "iudex", 7)
    (tmp_path / "sitecustomize.py").write_text(TELLS_WHO_OPENS)
    log = tmp_path / "opened.txt"
    paths = os.pathsep.join([str(tmp_path), str(Path(soulsai.__file__).parents[1])])

    def run(*arguments):
        log.unlink(missing_ok=True)
        command = [sys.executable, "-m", "soulsai", *map(str, arguments), "--rehearse", "hidden.toml"]
        environment = os.environ | {"PYTHONPATH": paths, "OPENED": str(log)}
        subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, timeout=300)
        return log.read_text().splitlines()

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("record", "player:duellist", "--fights", 1),
        ("eval", "zoo:iudex", "--fights", 1),
        ("train", "iudex-game", "--run", "mine", "--accept-all", "--set", "run.steps=40"),
        ("adapt", "zoo:iudex", "--out", "mine", "--minutes", 2.5, "--fights", 1, "--train-steps", 1024,
         *(f"--set={setting}" for setting in SMALL)),
    ],
    ids=lambda command: command[0],
)  # fmt: skip
def test_nothing_else_opens_the_file(souls, command):
    opened = souls(*command)
    assert opened
    assert [who for who in opened if " -m soulsgym.rehearsal.target " not in who] == []


def test_an_evaluation_says_that_it_was_rehearsed(tmp_path):
    write_overlay(tmp_path / "hidden.toml", "iudex", 7)
    told = CliRunner().invoke(
        app, ["eval", "player:idle", "--fights", "1", "--rehearse", str(tmp_path / "hidden.toml")]
    )
    assert told.exit_code == 0, told.output
    assert "in a rehearsal" in told.stdout
    assert "in the game" not in told.stdout
    rows = [line.split("│") for line in told.stdout.split("\n") if "│" in line and "%" in line]
    assert [cells[2].strip() for cells in rows if cells[2].strip() == "0"] == []  # how often an attack was seen
