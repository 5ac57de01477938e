"""`souls save`, `pause`, `unpause` and `stop` for a run in a process of its own."""

import json
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from soulsai.cli import runs as control
from soulsai.cli.main import app
from soulsai.errors import RunError
from soulsai.runs.run import Run

LIMIT_S = 240.0
ENDLESS = ["smoke", "--accept-all", "--plain", "--set", "run.steps=1000000000", "--set", "run.threads=1",
           "--set", "fight.number=4", "--set", "ppo.minibatch=64",
           "--set", "run.evaluate_every_steps=0", "--set", "network.hidden=[8]",
           "--set", "run.checkpoint_every_s=1000"]  # fmt: skip


def souls(*arguments):
    return CliRunner().invoke(app, [str(word) for word in arguments])


@pytest.fixture
def going(tmp_path, monkeypatch):
    """A run that trains until it is stopped, under runs/ of the working folder."""
    monkeypatch.chdir(tmp_path)
    souls_train = [sys.executable, "-c", "from soulsai.cli.main import main; main()", "train"]
    with (tmp_path / "said.txt").open("w") as said:
        process = subprocess.Popen([*souls_train, *ENDLESS, "--run", "runs/mine"], stdout=said, stderr=said)
        deadline_s = time.monotonic() + LIMIT_S
        try:
            while not (tmp_path / "runs/mine/metrics.jsonl").exists():
                assert process.poll() is None, (tmp_path / "said.txt").read_text()
                assert time.monotonic() < deadline_s, (tmp_path / "said.txt").read_text()
                time.sleep(0.05)
            yield process
        finally:
            process.kill()
            process.wait()


@pytest.mark.slow
def test_a_run_is_saved_paused_resumed_and_stopped(going, tmp_path):
    saved = souls("save")
    assert saved.exit_code == 0, saved.exception
    step = max(int(path.name) for path in (tmp_path / "runs/mine/checkpoints").glob("[0-9]*"))
    assert saved.stdout == f"saved runs/mine/checkpoints/{step:012d}\n"

    paused = souls("pause", "mine")
    assert paused.stdout == "runs/mine is saved and paused; continue with: souls unpause runs/mine\n"
    before = json.loads((tmp_path / "runs/mine/status.json").read_text())
    assert (before["state"], before["step"] >= step) == ("paused", True)
    assert souls("unpause").stdout == "runs/mine continues\n"

    assert souls("stop", "runs/mine").stdout == "asked runs/mine to save and stop\nruns/mine has stopped\n"
    assert going.wait(LIMIT_S) == 0
    after = json.loads((tmp_path / "runs/mine/status.json").read_text())
    assert (after["state"], after["step"] > before["step"]) == ("stopped", True)
    assert "continue with: souls train --resume runs/mine" in (tmp_path / "said.txt").read_text()


def test_nothing_is_going_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for verb in ("save", "pause", "unpause", "stop"):
        error = souls(verb).exception
        assert isinstance(error, RunError)
        assert str(error) == "runs: no run is being trained here; name one"
    assert "there is no such run" in str(souls("stop", "no").exception)


def two_runs(tmp_path):
    return [Run.create(tmp_path / "runs" / name, "[run]\n", preset="test", command=[]) for name in ("one", "two")]


def test_several_are_going_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one, two = two_runs(tmp_path)
    with one.lock(), two.lock():
        error = souls("stop").exception
    assert str(error) in {
        f"runs: several runs are being trained; name one: {a}, {b}"
        for a, b in (("runs/one", "runs/two"), ("runs/two", "runs/one"))
    }


def test_a_run_that_does_not_do_what_it_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(control, "SAVE_S", 0.3)
    one, _ = two_runs(tmp_path)
    with one.lock():
        assert str(souls("save").exception) == "runs/one: no checkpoint within 0 s; its log.txt may say why"
    error = souls("pause", "runs/one").exception
    assert "is not being trained" in str(error)


def test_a_run_that_ends_meanwhile(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one, _ = two_runs(tmp_path)
    held = one.lock()
    held.__enter__()
    monkeypatch.setattr(control.time, "sleep", lambda _: held.__exit__(None, None, None))
    error = souls("save", "one").exception
    assert str(error) == "runs/one: no checkpoint: the run has ended; its log.txt may say why"
