"""The list of runs: every folder has a line, broken ones too."""

from pathlib import Path

import pytest

from soulsai.runs import Run, Status, list_runs
from soulsai.runs.summary import open_run


@pytest.fixture
def root(tmp_path):
    return tmp_path / "runs"


def make(root, name):
    return Run.create(root / name, "[run]\nseed = 1\n", preset="iudex", command=[])


def test_no_folder(root):
    assert list_runs(root) == []


def test_last_changed_first(root, monkeypatch):
    for day, name in enumerate(("b", "c", "a"), 1):
        monkeypatch.setattr("soulsai.runs.status.utc_stamp", lambda day=day: f"2026-11-0{day}T00:00:00.000Z")
        make(root, name).write_status(
            Status("finished", step=day, steps=9, win_rate=0.5, win_rate_low=0.4, win_rate_high=0.6)
        )
    runs = list_runs(root)
    assert [run.name for run in runs] == ["a", "c", "b"]
    assert (runs[0].preset, runs[0].state, runs[0].status.step, runs[0].status.steps) == ("iudex", "finished", 3, 9)
    assert (runs[0].status.win_rate_low, runs[0].status.win_rate_high) == (0.4, 0.6)


def test_running_and_killed(root):
    run = make(root, "a")
    run.write_status(Status("running", step=1, steps=2))
    with run.lock():
        assert list_runs(root)[0].state == "running"
    assert list_runs(root)[0].state == "killed"


def test_broken_ones_are_listed(root):
    make(root, "fine").write_status(Status("stopped"))
    make(root, "config").folder.joinpath("config.toml").write_text("= =")
    make(root, "versions").folder.joinpath("versions.json").unlink()
    (root / "stranger").mkdir()
    (root / ".hidden").mkdir()
    (root / "file.txt").touch()
    runs = {run.name: run for run in list_runs(root)}
    assert {name: run.state for name, run in runs.items()} == {
        "fine": "stopped", "config": "broken", "versions": "broken", "stranger": "broken",
    }  # fmt: skip
    assert "is damaged" in runs["config"].problem
    assert runs["stranger"].status.updated.endswith("Z")


def test_a_run_without_a_status_has_the_time_of_its_folder(root):
    make(root, "a")
    run = list_runs(root)[0]
    assert (run.state, run.preset) == ("killed", "iudex")
    assert run.status.updated.endswith("Z")


def test_a_run_is_named_by_folder_or_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = Run.create(Path("runs/mine"), "[run]\nseed = 1\n", preset="smoke", command=["souls"])
    assert open_run("mine").folder == open_run("runs/mine").folder == run.folder
    (summary,) = list_runs(run.folder)
    assert (summary.name, summary.has_checkpoint) == ("mine", False)
    (run.checkpoints / "000000000010").mkdir()
    assert summary.has_checkpoint
