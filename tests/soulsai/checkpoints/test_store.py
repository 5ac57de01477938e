"""The checkpoint store: whole checkpoints, damage, full disks, leftovers."""

import errno
import json
import os
import platform
import shutil

import numpy as np
import pytest
import torch

from soulsai.checkpoints import CheckpointStore
from soulsai.checkpoints import store as module
from soulsai.errors import RunError
from soulsgym.errors import MisuseError

DEAD_PID = 2**22 + 1
"""Above the highest process id there can be."""


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "checkpoints"


@pytest.fixture
def store(folder):
    return CheckpointStore(folder)


def save(store, number):
    parts = {"network": {"w": torch.full((3,), float(number))}, "world": {"ticks": np.array(number, np.uint64)}}
    return store.save(number, parts, {"step": number})


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def flip(file, at=-1):
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)


def test_round_trip(store):
    state = {"step": 2**200 + 1, "rate": 0.1 + 0.2, "none": None, "list": [1, 2.5, "x"], "deep": {"a": {"b": True}}}
    path = store.save(7, {"network": {"w": torch.tensor([1.0, 2.0])}, "empty": {}}, state)
    checkpoint = store.load()
    assert (checkpoint.number, checkpoint.path, checkpoint.state) == (7, path, state)
    assert path.name == "000000000007"
    assert checkpoint.parts["network"]["w"].tolist() == [1.0, 2.0]
    assert checkpoint.parts["empty"] == {}


def test_floats_that_json_has_no_word_for(store):
    store.save(1, {}, {"x": float("inf"), "y": float("nan"), "z": 5e-324})
    state = store.load().state
    assert state["x"] == float("inf")
    assert state["y"] != state["y"]
    assert state["z"] == 5e-324


def test_random_state_of_numpy_survives(store):
    generator = np.random.default_rng(3)
    generator.random(5)
    store.save(1, {}, {"random": generator.bit_generator.state})
    other = np.random.default_rng(0)
    other.bit_generator.state = store.load().state["random"]
    assert other.random() == generator.random()


def test_arrays_restore_dtypes(store):
    store.save(1, {"world": {"a": np.array([2**64 - 1], np.uint64), "b": np.array(True)}}, {})
    arrays = store.load().arrays("world")
    assert (arrays["a"].dtype, arrays["a"].tolist()) == (np.uint64, [2**64 - 1])
    assert (arrays["b"].dtype, arrays["b"].shape) == (np.bool_, ())
    arrays["a"][0] = 0  # its own memory, and writable


def test_nothing_there(store):
    assert store.load() is None
    assert store.numbers() == []


def test_older_ones_are_removed(store, folder):
    for number in (1, 2, 3, 10):
        save(store, number)
    assert names(folder) == ["000000000003", "000000000010"]


def test_later_ones_of_a_line_given_up_are_removed(store):
    for number in (10, 20):
        save(store, number)
    save(store, 15)
    assert store.numbers() == [10, 15]


def test_saving_the_same_number_again(store, folder):
    save(store, 1)
    store.save(1, {}, {"again": True})
    assert store.load().state == {"again": True}
    assert names(folder) == ["000000000001"]


def test_manifest_tells_versions_time_and_files(store):
    manifest = json.loads((save(store, 5) / "manifest.json").read_text())
    assert (manifest["format"], manifest["number"]) == (1, 5)
    assert manifest["time"].endswith("Z")
    assert manifest["versions"]["torch"] == torch.__version__
    assert set(manifest["files"]) == {"state.json", "network.safetensors", "world.safetensors"}


@pytest.mark.parametrize("file", ["state.json", "network.safetensors", "world.safetensors", "manifest.json"])
@pytest.mark.parametrize("how", ["flipped", "shortened", "emptied", "removed"])
def test_a_damaged_one_is_named_and_the_previous_one_used(store, file, how):
    save(store, 1)
    damaged = save(store, 2) / file
    if how == "flipped":
        flip(damaged, 0 if file == "manifest.json" else -1)
    elif how == "removed":
        damaged.unlink()
    else:
        damaged.write_bytes(damaged.read_bytes()[:-3] if how == "shortened" else b"")
    warnings = []
    assert store.load(warn=warnings.append).state == {"step": 1}
    assert len(warnings) == 1
    assert "checkpoint 2 is damaged" in warnings[0]
    assert str(damaged) in warnings[0]


def test_a_folder_renamed_to_another_number_is_damaged(store, folder):
    save(store, 1)
    shutil.copytree(folder / "000000000001", folder / "000000000009")
    assert store.load(warn=lambda _: None).number == 1


def test_all_damaged(store):
    for number in (1, 2):
        flip(save(store, number) / "state.json")
    with pytest.raises(RunError, match=r"no checkpoint is intact .*does not match its checksum.*start a new run"):
        store.load(warn=lambda _: None)


@pytest.mark.parametrize("version", ["0.1.0", "9.1.0"])
def test_another_version_of_the_package_with_the_same_format_is_read(store, version):
    file = save(store, 1) / "manifest.json"
    manifest = json.loads(file.read_text())
    file.write_text(json.dumps(manifest | {"versions": {"soulsgym": version}}))
    assert store.load().number == 1


def test_newer_format_is_not_passed_over(store):
    save(store, 1)
    file = save(store, 2) / "manifest.json"
    manifest = json.loads(file.read_text())
    file.write_text(json.dumps(manifest | {"format": 2, "versions": {"soulsgym": "9.1"}}))
    with pytest.raises(RunError, match=r"format 2, made by soulsgym 9\.1.* up to 1: update soulsgym"):
        store.load()


def test_by_number(store):
    for number in (1, 2):
        save(store, number)
    assert store.load(1).state == {"step": 1}
    assert store.load_state(2) == {"step": 2}
    with pytest.raises(RunError, match=r"no checkpoint 3 \(there: 1, 2\)"):
        store.load(3)
    flip(store.load(1).path / "state.json")
    with pytest.raises(RunError, match="checkpoint 1 is damaged"):
        store.load(1)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EIO])
@pytest.mark.parametrize("call", ["write_durably", "sync_folder"])
def test_failing_writes_leave_the_old_ones(store, folder, monkeypatch, code, call):
    save(store, 1)
    real = getattr(module, call)

    def fail(path, *rest):
        if ".new@" in str(path):
            real(path, *rest)
            raise OSError(code, os.strerror(code))
        real(path, *rest)

    monkeypatch.setattr(module, call, fail)
    with pytest.raises(RunError, match=r"000000000002: cannot be written"):
        save(store, 2)
    assert names(folder) == ["000000000001"]
    assert store.load().number == 1


def test_full_disk_says_what_to_do(store, monkeypatch):
    monkeypatch.setattr(module, "write_durably", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    with pytest.raises(RunError, match="the disk is full: free some space"):
        save(store, 1)


def test_failing_replacement_of_the_same_number_keeps_the_old(store, folder, monkeypatch):
    save(store, 1)
    real = os.replace

    def fail(source, target):
        if ".new@" in str(source):
            raise OSError(errno.EIO, "io")
        real(source, target)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(RunError):
        store.save(1, {}, {"again": True})
    assert names(folder) == ["000000000001"]
    assert store.load().state == {"step": 1}


def test_folder_that_is_a_file(tmp_path):
    (tmp_path / "checkpoints").write_text("")
    with pytest.raises(RunError, match="cannot be written"):
        save(CheckpointStore(tmp_path / "checkpoints"), 1)


def leftover(folder, kind, number, pid):
    path = folder / f".{kind}@{number:012d}@{pid}@{platform.node()}"
    path.mkdir()
    (path / "state.json").write_text("{")
    return path


def test_leftovers_of_the_dead_are_cleaned_by_load_and_those_of_the_living_are_not(store, folder):
    save(store, 1)
    dead, living = leftover(folder, "new", 2, DEAD_PID), leftover(folder, "new", 2, os.getpid())
    store.load()
    assert (dead.exists(), living.exists()) == (False, True)


def test_leftovers_are_cleaned_by_save(store, folder):
    save(store, 1)
    for kind in ("new", "gone", "old"):
        leftover(folder, kind, 1, DEAD_PID)
    save(store, 2)
    assert names(folder) == ["000000000001", "000000000002"]


def test_one_that_stepped_aside_comes_back(store, folder):
    """Killed between the two renames of a second save of the same number."""
    path = save(store, 1)
    path.rename(folder / f".old@{path.name}@{DEAD_PID}@{platform.node()}")
    assert store.load().state == {"step": 1}


def test_one_pruned_while_being_read_is_no_damage(store, monkeypatch):
    save(store, 1)
    stale = [1]
    real = store.numbers
    monkeypatch.setattr(store, "numbers", lambda: [stale.pop() + 98] if stale else real())
    assert store.load(warn=pytest.fail).number == 1


@pytest.mark.parametrize("number", [-1, 10**12])
def test_number_out_of_range(store, number):
    with pytest.raises(MisuseError, match=str(number)):
        store.save(number, {}, {})


@pytest.mark.parametrize("part", ["", "../x", "a/b", ".x"])
def test_part_name_that_is_no_file_name(store, part):
    with pytest.raises(MisuseError, match="part name"):
        store.save(1, {part: {}}, {})
