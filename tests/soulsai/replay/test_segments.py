import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest

from soulsai.errors import RunError
from soulsai.experience import Schema
from soulsai.replay import ReplaySegments, ReplayStore
from soulsai.replay.n_step import TRANSITION
from soulsai.replay.segments import alive


def empty(capacity):
    return ReplayStore(capacity, Schema(TRANSITION, 3, 5, 1))


def assert_same(store, other):
    assert store.added == other.added
    assert store.columns.keys() == other.columns.keys()
    for name, column in store.columns.items():
        assert column.tobytes() == other.columns[name].tobytes()


def saved_in_turns(folder, store, rows, counts):
    """Add so many rows at a time and save after each; all infos."""
    segments, infos = ReplaySegments(folder), []
    for count in counts:
        since = store.added
        store.add(rows(since, count))
        infos += segments.save(store, since)
    return infos


@pytest.mark.parametrize(
    "counts",
    [
        [4],  # not full
        [10],  # full to the last slot
        [7, 7],  # around the end
        [3, 3, 3, 3, 3],  # capacity no multiple of a segment
        [3, 25, 2],  # a segment larger than the store
        [6, 6, 6, 6, 6, 1],
    ],
)
def test_rows_return_to_their_slots_bit_for_bit(tmp_path, rows, counts):
    store, restored = empty(10), empty(10)
    infos = saved_in_turns(tmp_path, store, rows, counts)
    ReplaySegments(tmp_path).load(restored, json.loads(json.dumps(infos)))
    assert_same(restored, store)


def test_a_restored_store_goes_on_like_one_never_stopped(tmp_path, rows):
    store, restored = empty(10), empty(10)
    infos = saved_in_turns(tmp_path, store, rows, [8, 9])
    ReplaySegments(tmp_path).load(restored, infos)
    for each in (store, restored):
        each.add(rows(17, 6))
    assert_same(restored, store)


def test_large_segments_are_written_in_parts(tmp_path, rows):
    store, restored = empty(9000), empty(9000)
    infos = saved_in_turns(tmp_path, store, rows, [5000, 8500])
    ReplaySegments(tmp_path).load(restored, infos)
    assert_same(restored, store)


def test_a_segment_is_a_plain_numpy_file_of_the_rows_since(tmp_path, filled):
    (info,) = ReplaySegments(tmp_path).save(filled(10, 17), since=15)
    assert (info["first"], info["rows"]) == (15, 2)
    records = np.load(tmp_path / info["name"], allow_pickle=False)
    assert records["actions"].tolist() == [15, 16]
    assert records["observations"][1].tolist() == [16.0, 16.25, 16.5]
    assert os.listdir(tmp_path) == [info["name"]]


def test_rows_already_overwritten_are_not_saved(tmp_path, filled):
    (info,) = ReplaySegments(tmp_path).save(filled(10, 37), since=5)
    assert (info["first"], info["rows"]) == (27, 10)


def test_nothing_new_makes_no_segment(tmp_path, filled):
    assert ReplaySegments(tmp_path / "replay").save(filled(10, 8), since=8) == []
    assert ReplaySegments(tmp_path / "replay").save(filled(10, 0), since=0) == []


def test_other_rows_of_the_same_numbers_do_not_replace_a_segment(tmp_path, filled):
    segments, store = ReplaySegments(tmp_path), filled(10, 8)
    (first,) = segments.save(store, 0)
    store.columns["rewards"][3] = -1
    (second,) = segments.save(store, 0)
    assert first["name"] != second["name"]
    restored = empty(10)
    segments.load(restored, [first])
    assert restored.columns["rewards"][3] == 6


def test_no_segments_make_an_empty_store(tmp_path):
    store = empty(10)
    ReplaySegments(tmp_path).load(store, [])
    assert store.added == 0


def test_only_segments_with_live_rows_are_needed(tmp_path, rows):
    store, restored = empty(10), empty(10)
    infos = saved_in_turns(tmp_path, store, rows, [4, 4, 4, 4, 4])
    live = alive(infos, store.added, store.capacity)
    assert [info["first"] for info in live] == [8, 12, 16]
    ReplaySegments(tmp_path).prune({info["name"] for info in live})
    assert len(os.listdir(tmp_path)) == 3
    ReplaySegments(tmp_path).load(restored, infos)
    assert_same(restored, store)


def test_prune_removes_what_a_killed_run_left_and_nothing_else(tmp_path, filled):
    (info,) = ReplaySegments(tmp_path).save(filled(10, 8), 0)
    (tmp_path / "rows-000000000008.part").write_bytes(b"half")
    (tmp_path / "notes.txt").write_text("mine")
    ReplaySegments(tmp_path).prune({info["name"]})
    assert sorted(os.listdir(tmp_path)) == ["notes.txt", info["name"]]
    ReplaySegments(tmp_path / "nowhere").prune(set())


@pytest.mark.faults
@pytest.mark.parametrize("at", [0, 20, 150, -1])
def test_a_changed_byte_is_noticed(tmp_path, rows, at):
    infos = saved_in_turns(tmp_path, empty(10), rows, [4, 4])
    path = tmp_path / infos[1]["name"]
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.raises(RunError, match=f"{infos[1]['name']} is damaged"):
        ReplaySegments(tmp_path).load(empty(10), infos)


@pytest.mark.faults
@pytest.mark.parametrize("left", [0, 50, -1])
def test_a_cut_file_is_noticed(tmp_path, rows, left):
    infos = saved_in_turns(tmp_path, empty(10), rows, [4, 4])
    path = tmp_path / infos[0]["name"]
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(RunError, match=f"{infos[0]['name']} is damaged"):
        ReplaySegments(tmp_path).load(empty(10), infos)


@pytest.mark.faults
def test_a_missing_file_is_named(tmp_path, rows):
    infos = saved_in_turns(tmp_path, empty(10), rows, [4, 4])
    (tmp_path / infos[0]["name"]).unlink()
    with pytest.raises(RunError, match=f"{infos[0]['name']} is missing"):
        ReplaySegments(tmp_path).load(empty(10), infos)


@pytest.mark.faults
def test_a_store_is_left_alone_if_any_segment_is_damaged(tmp_path, rows):
    infos = saved_in_turns(tmp_path, empty(10), rows, [4, 4])
    (tmp_path / infos[1]["name"]).unlink()
    store = empty(10)
    with pytest.raises(RunError):
        ReplaySegments(tmp_path).load(store, infos)
    assert_same(store, empty(10))


@pytest.mark.parametrize(("left_out", "missing"), [(0, 2), (1, 4)])
def test_a_gap_between_segments_is_named(tmp_path, rows, left_out, missing):
    infos = saved_in_turns(tmp_path, empty(10), rows, [4, 4, 4])
    del infos[left_out]
    with pytest.raises(RunError, match=f"no segment holds the replay row number {missing}"):
        ReplaySegments(tmp_path).load(empty(10), infos)


def test_rows_of_another_layout_are_refused(tmp_path, rows):
    infos = saved_in_turns(tmp_path, empty(10), rows, [4])
    with pytest.raises(RunError, match="another size"):
        ReplaySegments(tmp_path).load(ReplayStore(10, Schema(TRANSITION, 4, 5, 1)), infos)


class FullDisk:
    """A file that takes so many bytes and no more."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    def write(self, data):
        self.file.write(data[: self.room])
        if len(data) > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.room -= len(data)

    def __getattr__(self, name):
        return getattr(self.file, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()


@pytest.mark.faults
@pytest.mark.parametrize("room", [0, 300, 500])
def test_a_full_disk_is_said_and_leaves_no_half_file(tmp_path, monkeypatch, filled, room):
    segments, store, folder = ReplaySegments(tmp_path / "replay"), filled(10, 12), tmp_path / "replay"
    kept = segments.save(store, 8)
    before = os.listdir(folder)
    really_open = Path.open
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", lambda path, *mode: FullDisk(really_open(path, *mode), room))
        with pytest.raises(RunError, match=rf"{folder}: cannot be written, the disk is full"):
            segments.save(store, 0)
    assert os.listdir(folder) == before == [kept[0]["name"]]
    assert segments.save(store, 0)


@pytest.mark.faults
def test_a_disk_that_fills_up_when_the_file_is_made_to_last(tmp_path, monkeypatch, filled):
    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match="is full"):
        ReplaySegments(tmp_path).save(filled(10, 12), 0)
    assert os.listdir(tmp_path) == []


@pytest.mark.faults
def test_a_folder_that_cannot_be_made_is_named(tmp_path, filled):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RunError, match=r"file/replay: cannot be written: not a directory"):
        ReplaySegments(tmp_path / "file" / "replay").save(filled(10, 12), 0)
