"""Checkpoints beside the loop: one at a time, from a copy, and failures are seen."""

import threading
import time

import numpy as np
import pytest
import torch

from soulsai.algorithms.algorithm import algorithm_of
from soulsai.checkpoints.store import CheckpointStore
from soulsai.config import load_preset
from soulsai.errors import RunError
from soulsai.experience import Sizes
from soulsai.learning.saving import CheckpointWriter, State, copy_parts
from soulsai.replay import ReplayStore

LIMIT_S = 60.0


@pytest.fixture
def writer(tmp_path):
    return CheckpointWriter(tmp_path / "checkpoints", 2, tmp_path / "replay")


def state(number, **given):
    return State(number, {"network": {"a": torch.full((3,), float(number))}}, {"n": number}, **given, capacity=4)


def schema():
    config = load_preset("cartpole-dqn")
    return algorithm_of(config).schema(config, Sizes(observation_size=4, num_actions=2, terms=1, number=1))


def add(store, count):
    rows = store.schema.empty(count)
    rows["actions"][:] = np.arange(store.added, store.added + count)
    store.add(rows)


def test_parts_are_copied():
    tensor, array = torch.zeros(2), np.zeros(2)
    copied = copy_parts({"one": {"tensor": tensor, "array": array, "number": np.int64(3)}})
    tensor += 1
    array += 1
    assert copied["one"]["tensor"].tolist() == copied["one"]["array"].tolist() == [0.0, 0.0]
    assert int(copied["one"]["number"]) == 3


def test_nothing_to_wait_for(writer):
    assert not writer.finish(0.0)
    assert not writer.is_busy


def test_written_beside_and_seen_when_it_is_done(writer, tmp_path, monkeypatch):
    go, written = threading.Event(), CheckpointStore.save

    def slowly(self, *given):
        assert go.wait(LIMIT_S)
        return written(self, *given)

    monkeypatch.setattr(CheckpointStore, "save", slowly)
    writer.begin(state(5, rows=None))
    assert writer.is_busy
    assert writer.store.numbers() == []
    with pytest.raises(RunError, match=r"the checkpoint of step 5 is not written after 0 s: look what the disk"):
        writer.finish(0.01)
    go.set()
    assert writer.finish(LIMIT_S)
    assert not writer.is_busy
    saved = writer.store.load()
    assert (saved.number, saved.state) == (5, {"n": 5, "segments": []})
    assert saved.parts["network"]["a"].tolist() == [5.0] * 3


@pytest.mark.faults
def test_what_hindered_it_is_raised_once(writer, monkeypatch):
    def full(self, *given):
        raise RunError("the disk is full")

    monkeypatch.setattr(CheckpointStore, "save", full)
    writer.begin(state(5, rows=None))
    with pytest.raises(RunError, match="the disk is full"):
        writer.finish(LIMIT_S)
    monkeypatch.undo()
    writer.begin(state(6, rows=None))
    assert writer.finish(LIMIT_S)
    assert writer.store.numbers() == [6]


def test_every_row_of_the_replay_is_written_once(writer):
    store = ReplayStore(4, schema())
    for number, count in ((1, 3), (2, 0), (3, 2), (4, 9)):
        add(store, count)
        copy = store.copy_since(writer.rows_listed)
        writer.begin(state(number, rows=copy))
        assert writer.finish(LIMIT_S)
        assert writer.rows_listed == store.added
        other = ReplayStore(4, schema())
        writer.segments.load(other, writer.store.load().state["segments"])
        assert other.added == store.added
        slots = np.arange(len(store))
        assert other.columns["actions"][slots].tolist() == store.columns["actions"][slots].tolist()


@pytest.mark.parametrize(
    ("added", "since", "numbers"), [(3, 0, [0, 1, 2]), (6, 4, [4, 5]), (6, 0, [2, 3, 4, 5]), (6, 6, [])]
)
def test_rows_copied_from_a_store(added, since, numbers):
    store = ReplayStore(4, schema())
    for _ in range(added):
        add(store, 1)
    copy = store.copy_since(since)
    store.columns["actions"][:] = 99
    assert copy.added == added
    found = [int(copy.columns["actions"][number % copy.capacity]) for number in numbers]
    assert found == numbers


def test_a_thread_ends_with_its_checkpoint(writer):
    before = threading.active_count()
    writer.begin(state(1, rows=None))
    writer.finish(LIMIT_S)
    deadline_s = time.monotonic() + LIMIT_S
    while threading.active_count() > before and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert threading.active_count() == before
