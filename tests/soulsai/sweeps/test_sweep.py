"""Sweeps as users run them, in processes of their own, with a stand-in for the training so that they take seconds."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from soulsai.sweeps.results import results_of
from soulsai.sweeps.study import DONE, PRUNED, open_about

SWEEPER = Path(__file__).with_name("sweeper.py")
LIMIT_S = 300.0
SPACE = """
[sweep]
trials = {trials}
startup = 2
warmup = 0.1
best = 2
fights = 30
[sweep.fixed]
run.steps = 1000
run.evaluate_every_steps = 100
fight.number = 8
ppo.minibatch = 32
[ppo]
learning_rate = {{low = 1e-5, high = 1e-1, log = true}}
"""


@pytest.fixture
def place(tmp_path):
    """A folder with a space file."""
    (tmp_path / "space.toml").write_text(SPACE.format(trials=6))
    return tmp_path


def started(place, *arguments, pace_s=0.02, **environment):
    words = ["sweep", "smoke", "--space", "space.toml", "--name", "mine", "--plain", *arguments]
    return subprocess.Popen(
        [sys.executable, str(SWEEPER), *words],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"TRAINER_S": str(pace_s)} | environment,
    )


def swept(place, *arguments, code=0, **options):
    process = started(place, *arguments, **options)
    out, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == code, out
    return out


def found(place):
    folder = place / "sweeps" / "mine"
    return results_of(*open_about(folder, "mine"), folder)


def begun(place):
    file = place / "sweeps" / "mine" / "begun.txt"
    return [line.split() for line in file.read_text().splitlines()] if file.exists() else []


def wait_for(condition, limit_s=LIMIT_S):
    deadline_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline_s, "it did not happen in time"
        time.sleep(0.05)


def test_a_sweep_from_start_to_report(place):
    out = swept(place, "--processes", "2")
    results = found(place)
    assert results.count(DONE) + results.count(PRUNED) == 6
    assert results.count(DONE) >= 2
    assert results.trials[0].is_preset
    assert results.trials[0].settings["ppo.learning_rate"] == 2e-3
    again = [each for each in results.ranked if each.confirmed]
    assert [each.number for each in again][:2] == [each.number for each in results.ranked[:2]]
    assert results.trials[0].confirmed  # the preset itself is always measured again
    assert all(results.measured[each.number]["fights"] == 30 for each in again)
    assert results.best is max(again, key=lambda each: each.confirmed[0])
    assert f"Trial {results.best.number}" in out
    assert "souls train smoke --set run.steps=1000" in out.replace("\n", "")
    page = (place / "sweeps" / "mine" / "report.html").read_text()
    assert "Honest figures" in page
    assert "http://" not in re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL).replace("http://www.w3.org", "")
    # A second time there is nothing left to do, and nothing is done.
    before = begun(place)
    swept(place)
    assert begun(place) == before
    # More trials may be asked for.
    swept(place, "--trials", "7")
    assert len(begun(place)) == len(before) + 1


@pytest.mark.slow
def test_bad_trials_are_pruned_and_their_checkpoints_removed(place):
    (place / "space.toml").write_text(SPACE.format(trials=7).replace("low = 1e-5", "low = 1e-3"))
    swept(place, pace_s=0.0, TRAINER_NOTICED="1")
    results = found(place)
    pruned = [each for each in results.trials if each.state == PRUNED]
    assert pruned
    best = results.ranked[0]
    for each in pruned:
        assert max(each.curve) < 1000
        assert max(each.curve.values()) < best.curve[max(each.curve)]
        folder = place / "sweeps" / "mine" / each.folder
        assert not (folder / "checkpoints").exists()
        assert (folder / "metrics.jsonl").exists()


@pytest.mark.faults
def test_an_interrupted_sweep_goes_on_where_it_was(place):
    process = started(place, pace_s=LIMIT_S)
    wait_for(lambda: len(begun(place)) == 1 and (place / "sweeps/mine/trial-0000/status.json").exists())
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130, out
    assert "stopped and saved; continue with: souls sweep smoke --space space.toml --name mine --plain" in out
    assert (place / "sweeps" / "mine" / "report.html").exists()
    swept(place, "--trials", "2")
    lines = begun(place)
    assert [line[:2] for line in lines[:2]] == [["trial-0000", "begun"], ["trial-0000", "resumed"]]
    assert int(lines[1][2]) > 0  # from its checkpoint
    assert lines[0][3] == lines[1][3]  # with its settings
    results = found(place)
    assert len(results.trials) == 2
    assert results.trials[0].is_preset


@pytest.mark.slow
@pytest.mark.faults
def test_two_processes_share_a_sweep_and_one_is_killed(place):
    first = started(place, pace_s=LIMIT_S)  # it is in its first trial when it is killed
    wait_for(lambda: len(begun(place)) == 1)
    second = started(place)
    wait_for(lambda: len(begun(place)) >= 2)
    first.kill()
    first.communicate(timeout=LIMIT_S)
    out, _ = second.communicate(timeout=LIMIT_S)
    assert second.returncode == 0, out
    results = found(place)
    assert results.count(DONE) + results.count(PRUNED) == 6
    lines = begun(place)
    # Nobody trained the same folder twice from the start, and the dead one's trial went on from its checkpoint.
    assert max(Counter(line[0] for line in lines if line[1] == "begun").values()) == 1
    assert "its process has died; its settings are tried again" in out
    assert sum(line[1] == "resumed" for line in lines) == 1, lines
    assert len({line[3] for line in lines}) == len({line[0] for line in lines})  # no settings were tried twice
    journal = (place / "sweeps" / "mine" / "study.journal").read_text()
    assert all(json.loads(line) for line in journal.splitlines())


@pytest.mark.slow
def test_a_database_is_shared_as_well(place):
    url = f"sqlite:///{place / 'study.db'}"
    out = swept(place, "--storage", url, "--trials", "2")
    assert not (place / "sweeps" / "mine" / "study.journal").exists()
    assert "Trial" in out
    folder = place / "sweeps" / "mine"
    assert len(results_of(*open_about(folder, "mine", url), folder).trials) == 2


def test_trials_that_fail_end_the_sweep_with_their_words(place):
    out = swept(place, "--set", "ppo.epochs=99", code=2)
    assert "3 trials in a row have failed; the last: souls train ended with 1: the trainer was told to fail" in out
    assert [each.state for each in found(place).trials] == ["failed"] * 3
