"""The runs of a folder: what counts as one, and what does not."""

import os
import shutil
import time

import pytest

from soulsai.dashboard import library as library_module
from soulsai.dashboard.library import Library, creation_time, run_folders
from soulsai.runs.lock import hold_lock
from soulsai.runs.run import Run
from soulsai.runs.status import SILENT_S


@pytest.fixture
def library(root, monkeypatch):
    monkeypatch.setattr(library_module, "LOOK_EVERY_S", 0.0)
    return Library(root)


def test_the_newest_comes_first(library):
    assert [entry["id"] for entry in library.entries()] == ["two", "one"]


def test_an_entry(library, root):
    entry = library.entries()[1]
    assert entry == {
        "id": "one",
        "preset": "iudex",
        "state": "finished",
        "live": False,
        "step": 100,
        "steps": 1000,
        "win_rate": 0.5,
        "win_rate_low": 0.4,
        "win_rate_high": 0.6,
        "updated": "2026-11-16T06:00:00.000Z",
        "problem": "",
        "world": "fight",
        "algorithm": "ppo",
        "engine": "sim",
        "served": False,
        "elapsed_s": 99.0,
        "row_at": 1_790_000_099.5,
        "speed": None,
        "verdict": "",
        "return": None,
        "folder": str(root / "one"),
        "command": f"souls train --resume {root / 'one'} --set run.steps=200",
        "fights": 0,
        "rows": 100,
    }


def test_a_run_that_is_trained_now(library, root, kit):
    kit.folder(root / "three", state="running")
    assert {entry["id"]: entry["state"] for entry in library.entries()}["three"] == "killed"
    with hold_lock(root / "three" / "lock"), hold_lock(root / "three" / "fleet.lock"):
        entry = next(entry for entry in library.entries() if entry["id"] == "three")
    assert (entry["state"], entry["live"], entry["served"]) == ("running", True, True)


def test_while_it_is_trained_the_newest_row_tells_how_far_it_is(library, root, kit):
    kit.append(root / "one", **kit.row(77_777))
    assert library.entries()[1]["step"] == 100
    (root / "one" / "status.json").unlink()
    with hold_lock(root / "one" / "lock"):
        entry = next(entry for entry in library.entries() if entry["id"] == "one")
    assert (entry["state"], entry["step"], entry["steps"]) == ("running", 777_770, 1000)


def test_the_win_rate_is_that_of_the_newest_evaluation(library, root, kit):
    """The status has it since the last checkpoint only, and then of the policy that is kept."""
    rates = {"win_rate/evaluation": 0.25, "win_rate/evaluation_low": 0.1, "win_rate/evaluation_high": 0.4}
    kit.append(root / "one", **kit.row(101, **rates, **{"return/evaluation": 7.0}))
    kit.append(root / "one", **kit.row(102))

    def rates_of():
        entry = next(entry for entry in library.entries() if entry["id"] == "one")
        return [entry[name] for name in ("win_rate", "win_rate_low", "win_rate_high", "return")]

    assert rates_of() == [0.5, 0.4, 0.6, 7.0]  # finished: of its final evaluation
    (root / "one" / "status.json").unlink()
    assert rates_of() == [0.25, 0.1, 0.4, 7.0]
    with hold_lock(root / "one" / "lock"):
        assert rates_of() == [0.25, 0.1, 0.4, 7.0]


def test_a_broken_run_says_why(library, root):
    (root / "one" / "config.toml").write_text("= 3")
    entry = next(entry for entry in library.entries() if entry["id"] == "one")
    assert entry["state"] == "broken"
    assert "config.toml" in entry["problem"]
    (root / "two" / "config.toml").unlink()
    entry = next(entry for entry in library.entries() if entry["id"] == "two")
    assert "config.toml: is missing" in entry["problem"]
    assert (entry["step"], entry["command"]) == (40, "")  # nothing continues it as it is


def test_other_folders_are_no_runs(root):
    (root / "notes").mkdir()
    (root / ".hidden").mkdir()
    (root / ".hidden" / "config.toml").write_text("")
    (root / "file").write_text("")
    assert set(run_folders(root)) == {"one", "two"}


def test_one_run_alone(root):
    library = Library(root / "one")
    assert [entry["id"] for entry in library.entries()] == ["one"]
    assert library.find("one").folder == root / "one"
    assert library.find("two") is None


def test_links_out_of_the_folder_are_no_runs(root, tmp_path, kit):
    kit.folder(tmp_path / "secret")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "inner").symlink_to(root / "one")
    assert set(run_folders(root)) == {"one", "two", "inner"}
    assert Library(root).find("link") is None


@pytest.mark.parametrize("id", ["..", ".", "", "/etc", "one/../two", "../runs/one", "one\0", "ONE"])
def test_ids_are_looked_up_and_never_become_paths(root, id):
    assert Library(root).find(id) is None


def test_a_run_that_goes_and_one_that_comes(library, root, kit):
    assert library.find("one") is not None
    shutil.rmtree(root / "one")
    kit.folder(root / "three")
    assert library.find("one") is None
    assert library.find("three") is not None
    assert {entry["id"] for entry in library.entries()} == {"two", "three"}


def test_a_folder_that_is_gone_has_no_runs(tmp_path):
    assert Library(tmp_path / "nothing").entries() == []


def test_many_viewers_share_one_look(root, kit):
    now_s = [0.0]
    library = Library(root, clock=lambda: now_s[0])
    assert len(library.entries()) == 2
    kit.folder(root / "three")
    assert len(library.entries()) == 2
    now_s[0] = 1.0
    assert len(library.entries()) == 3


def test_files_that_lead_elsewhere_are_not_read(root, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("step hush\n")
    details = Library(root).find("one")
    for name in ("config.toml", "versions.json", "log.txt", "metrics.jsonl", "metrics.sqlite"):
        (root / "one" / name).unlink()
        (root / "one" / name).symlink_to(secret)
    (root / "one" / "recordings" / "a.npz").symlink_to(secret)
    (root / "one" / "evaluations" / "a.json").symlink_to(secret)
    assert details.log() == []
    assert details.recordings() == []
    assert details.evaluations() == {}
    entry = details.entry()
    assert entry["rows"] == 0
    assert "hush" not in str(entry)
    with pytest.raises(library_module.RunError, match="is not in the folder of the run"):
        details.text("config.toml")


def test_recordings_are_counted_without_those_being_written(library, root):
    folder = root / "one" / "recordings"
    for name in ("a.npz", "b.npz", ".c.npz.1.tmp", ".d.npz", "e.txt"):
        (folder / name).write_bytes(b"x")
    (folder / "empty.npz").touch()
    os.utime(folder / "a.npz", (2e9, 2e9))
    assert library.entries()[1]["fights"] == 2
    assert [file.name for file in library.find("one").recordings()] == ["a.npz", "b.npz"]


def entry_of(library, id):
    return next(entry for entry in library.entries() if entry["id"] == id)


def test_a_run_that_is_resumed_is_running_whatever_its_last_end_was(library, root):
    with hold_lock(root / "one" / "lock"):
        assert entry_of(library, "one")["state"] == "running"
    assert entry_of(library, "one")["state"] == "finished"


def test_a_hung_training_is_not_running(library, root, kit):
    folder = kit.folder(root / "hung", [kit.row(7)], state="running")
    with hold_lock(folder / "lock"):
        assert entry_of(library, "hung")["state"] == "running"
        long_ago_s = time.time() - SILENT_S - 1.0
        for name in ("lock", "log.txt", "metrics.jsonl", "status.json"):
            os.utime(folder / name, (long_ago_s, long_ago_s))
        assert entry_of(library, "hung")["state"] == "stalled"
        Run(folder).beat()
        assert entry_of(library, "hung")["state"] == "running"


def test_a_killed_run_stays_where_its_last_row_was(library, root, kit):
    kit.folder(root / "killed", [kit.row(70)], state="running", step=0)
    entry = entry_of(library, "killed")
    assert (entry["state"], entry["step"]) == ("killed", 700)


@pytest.mark.parametrize("content", ["{", "[]", '{"state": 1}'])
def test_a_damaged_status_is_told_as_such(library, root, kit, content):
    folder = kit.folder(root / "damaged", [kit.row(70)])
    (folder / "status.json").write_text(content)
    entry = entry_of(library, "damaged")
    assert (entry["state"], entry["step"]) == ("unknown", 700)
    assert "status.json: is damaged" in entry["problem"]
    (folder / "status.json").write_text("")  # after a power cut
    assert entry_of(library, "damaged")["state"] == "killed"


def test_the_command_that_continues_a_run_can_be_pasted(root, kit):
    place = root / "my runs"
    kit.folder(place / "one", state="stopped")
    assert Library(place).entries()[0]["command"] == f"souls train --resume '{place / 'one'}'"
    (place / "one" / "fleet.json").write_text("{}")
    assert Library(place).entries()[0]["command"] == f"souls serve --resume '{place / 'one'}'"
    (place / "one" / "fleet.json").unlink()
    (place / "one" / "config.toml").write_text('world = "fight"\n[fight]\nengine = "game"\n')
    assert Library(place).entries()[0]["command"] == f"souls train --game --resume '{place / 'one'}'"


def test_files_are_ordered_by_when_they_were_made_not_copied(tmp_path):
    named, told, other = (tmp_path / name for name in ("20261115-231500-final.json", "judged.json", "old.npz"))
    for file in (named, told, other):
        file.write_text("x")
        os.utime(file, (1_000_000_000, 1_000_000_000))
    assert creation_time(named) == "20261115231500999"
    assert creation_time(told, "2026-11-15T23:15:00.250Z") == "20261115231500250"
    assert creation_time(other) == "20010909014640000"
    assert creation_time(other) < creation_time(told, "2026-11-15T23:15:00.250Z") < creation_time(named)
