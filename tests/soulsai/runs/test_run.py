"""The folder of a run: made once, opened with care, never overwritten."""

import errno
import json
import os
import re
import subprocess
import sys
from math import isnan
from pathlib import Path

import pytest

from soulsai.errors import RunError
from soulsai.runs import Run, Status, default_folder
from soulsai.runs.metrics import MetricsWriter
from soulsgym.errors import MisuseError

CONFIG = 'world = "fight"\n\n[run]\nseed = 7\n'


@pytest.fixture
def run(tmp_path):
    return Run.create(tmp_path / "iudex-1", CONFIG, preset="iudex", command=["souls", "train"])


def test_create_writes_config_and_versions(run):
    assert run.config_toml == CONFIG
    versions = run.versions
    assert (versions["preset"], versions["command"], versions["seed"]) == ("iudex", ["souls", "train"], 7)
    assert {"python", "soulsgym", "torch", "numpy", "numba", "gymnasium", "platform", "cpu_count", "commit"} <= set(
        versions
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", versions["started"])


def test_open_gives_the_same(run):
    opened = Run.open(run.folder)
    assert (opened.config_toml, opened.preset, opened.name) == (CONFIG, "iudex", "iudex-1")
    assert opened.checkpoints.is_dir()
    assert opened.replay.is_dir()


def test_an_existing_run_is_never_made_anew(run):
    (run.folder / "config.toml").write_text("mine = 1")
    with pytest.raises(
        RunError, match=r"iudex-1 exists; continue it with --resume .*iudex-1, or choose another folder"
    ):
        Run.create(run.folder, CONFIG, preset="iudex", command=[])
    assert run.config_toml == "mine = 1"


def test_a_file_in_the_way(tmp_path):
    (tmp_path / "x").write_text("mine")
    with pytest.raises(RunError, match="x exists and is not the folder of a run; choose another folder"):
        Run.create(tmp_path / "x", CONFIG, preset="iudex", command=[])
    with pytest.raises(RunError, match="cannot be written"):
        Run.create(tmp_path / "x" / "y", CONFIG, preset="iudex", command=[])


def test_a_run_that_cannot_be_written_leaves_no_folder(tmp_path, monkeypatch):
    def full(file, text):
        raise RunError("the disk is full")

    monkeypatch.setattr("soulsai.runs.run.write_atomically", full)
    with pytest.raises(RunError, match="the disk is full"):
        Run.create(tmp_path / "x", CONFIG, preset="iudex", command=[])
    assert not (tmp_path / "x").exists()


def test_a_run_of_which_not_all_folders_can_be_made_leaves_none(tmp_path, monkeypatch):
    make = Path.mkdir

    def full(folder, *arguments, **keywords):
        if folder.name == "replay":
            raise OSError(errno.ENOSPC, "No space left on device")
        make(folder, *arguments, **keywords)

    monkeypatch.setattr(Path, "mkdir", full)
    with pytest.raises(RunError, match="cannot be written"):
        Run.create(tmp_path / "x", CONFIG, preset="iudex", command=[])
    assert not (tmp_path / "x").exists()


def test_an_empty_folder_may_become_a_run(tmp_path):
    (tmp_path / "x").mkdir()
    assert Run.create(tmp_path / "x", CONFIG, preset="iudex", command=[]).config_toml == CONFIG


def test_opening_what_is_not_there_suggests(run, tmp_path):
    with pytest.raises(RunError, match=r"iudx-1: there is no such run; did you mean .*iudex-1\?"):
        Run.open(tmp_path / "iudx-1")
    with pytest.raises(RunError, match="there is no such run; list runs with `souls runs`"):
        Run.open(tmp_path / "zzzz")
    with pytest.raises(RunError, match="there is no such run; list runs with `souls runs`"):
        Run.open(tmp_path / "no" / "where")


def test_opening_what_is_no_run(tmp_path):
    with pytest.raises(RunError, match=r"is not the folder of a run \(it has no config\.toml\)"):
        Run.open(tmp_path)


@pytest.mark.parametrize(
    ("file", "data"),
    [
        ("config.toml", b""),
        ("config.toml", b"a = = 1"),
        ("config.toml", b"\xff\xfe"),
        ("versions.json", b"{"),
        ("versions.json", b"[1]"),
        ("versions.json", b""),
    ],
)
def test_damaged_files_are_named(run, file, data):
    (run.folder / file).write_bytes(data)
    with pytest.raises(RunError, match=rf"{re.escape(file)}: is damaged"):
        Run.open(run.folder)


def test_missing_versions(run):
    (run.folder / "versions.json").unlink()
    with pytest.raises(RunError, match=r"versions\.json: is missing"):
        Run.open(run.folder)


def test_evaluations_are_never_overwritten(run, monkeypatch):
    monkeypatch.setattr("soulsai.runs.run.file_stamp", lambda: "20261115-231500")
    files = [run.add_evaluation("final", json.dumps({"n": n})) for n in range(3)]
    assert [file.name for file in files] == [f"20261115-231500-final{end}.json" for end in ("", "-2", "-3")]
    assert [json.loads(text)["n"] for _, text in run.evaluations()] == [0, 1, 2]
    assert run.evaluations()[0][0] == "20261115-231500-final"


def test_evaluations_of_one_second_in_the_order_they_were_made(run, monkeypatch):
    monkeypatch.setattr("soulsai.runs.run.file_stamp", lambda: "20261115-231500")
    for at_s, name in enumerate(("final", "eval", "best")):
        os.utime(run.add_evaluation(name, "{}"), (at_s, at_s))
    assert [name.split("-")[2] for name, _ in run.evaluations()] == ["final", "eval", "best"]


def test_evaluations_in_order_of_time_without_reserved_ones(run, monkeypatch):
    for stamp, name in (("20261116-000000", "a"), ("20261115-000000", "z")):
        monkeypatch.setattr("soulsai.runs.run.file_stamp", lambda stamp=stamp: stamp)
        run.add_evaluation(name, "{}")
    (run.evaluations_folder / "20261117-000000-x.json").touch()
    assert [name for name, _ in run.evaluations()] == ["20261115-000000-z", "20261116-000000-a"]


def test_evaluation_names_are_file_names(run):
    with pytest.raises(MisuseError, match=r"\.\./x"):
        run.add_evaluation("../x", "{}")


def test_metrics(run):
    assert run.metrics() == []
    writer = MetricsWriter(run.folder)
    writer.write(1, 0.5, {"loss/q": 0.5})
    writer.write(2, 1.0, {"loss/q": float("inf")})
    rows = run.metrics()
    assert (rows[0].pop("time")[-1], rows[0]) == ("Z", {"step": 1, "elapsed_s": 0.5, "loss/q": 0.5})
    assert isnan(rows[1]["loss/q"])
    assert len(rows) == 2
    writer.close()


def test_status(run):
    with run.lock():
        assert run.status().state == "running"
        run.write_status(Status("running", step=5, steps=10, win_rate=0.5, win_rate_low=float("nan")))
        status = run.status()
        assert (status.state, status.step, status.steps, status.win_rate, status.win_rate_low) == (
            "running",
            5,
            10,
            0.5,
            None,
        )
        assert status.updated.endswith("Z")
    assert run.status().state == "killed"
    run.write_status(Status("finished", step=10, steps=10))
    assert run.status().state == "finished"


def test_damaged_status_is_unknown_not_a_crash(run):
    run.status_file.write_text("{")
    assert run.status().state == "unknown"


def test_unknown_state(run):
    with pytest.raises(MisuseError, match="'asleep' is none of running"):
        run.write_status(Status("asleep"))


def test_lock_excludes_and_names_the_process(run):
    with run.lock():
        assert run.is_locked()
        with pytest.raises(RunError, match=rf"process {os.getpid()} is training"), run.lock():
            pass
        assert run.is_locked()
    assert not run.is_locked()
    with run.lock():
        pass


def test_lock_is_released_by_an_error(run):
    with pytest.raises(KeyError), run.lock():
        raise KeyError
    assert not run.is_locked()


HOLDER = """
import sys, time
from pathlib import Path
from soulsai.runs.lock import hold_lock
with hold_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.mark.faults
def test_lock_of_a_killed_process_is_taken_over(run):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(run.lock_file)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(RunError, match=rf"process {holder.pid} "), run.lock():
            pass
    finally:
        holder.kill()
        holder.communicate()
    assert not run.is_locked()
    with run.lock():
        assert run.lock_file.read_text() == str(os.getpid())


def test_default_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("soulsai.runs.run.file_stamp", lambda: "20261115-231500")
    first = default_folder("iudex", tmp_path)
    assert first == tmp_path / "iudex-20261115-231500"
    first.mkdir()
    assert default_folder("iudex", tmp_path).name == "iudex-20261115-231500-2"
    assert default_folder("some/where/my.toml", tmp_path).name == "my-20261115-231500"


def test_a_full_disk_is_a_sentence_when_the_lock_is_taken(run, monkeypatch):
    opened = Path.open

    class Full:
        def __init__(self, stream):
            self.fileno, self.close, self.truncate = stream.fileno, stream.close, stream.truncate

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.close()

        def write(self, data):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "open", lambda self, *a, **k: Full(opened(self, *a, **k)))
    with pytest.raises(RunError, match="lock: cannot be written, the disk is full"), run.lock():
        pass
