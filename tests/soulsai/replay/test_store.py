import numpy as np
import pytest

from soulsai.experience import Schema
from soulsai.replay import Batch, ReplayStore
from soulsai.replay.n_step import TRANSITION
from soulsgym.errors import MisuseError


def test_rows_fill_the_ring_and_then_replace_the_oldest(filled, rows):
    store = filled(10, 8)
    assert (len(store), store.added) == (8, 8)
    slots = store.add(rows(8, 4))
    assert slots.tolist() == [8, 9, 0, 1]
    assert (len(store), store.added) == (10, 12)
    assert store.columns["actions"].tolist() == [10, 11, 2, 3, 4, 5, 6, 7, 8, 9]


def test_more_rows_at_once_than_there_is_room_leave_the_newest(filled, rows):
    store = filled(4, 1)
    slots = store.add(rows(1, 10))
    assert slots.tolist() == [1, 2, 3, 0, 1, 2, 3, 0, 1, 2]
    assert store.columns["actions"].tolist() == [8, 9, 10, 7]


def test_nothing_to_add_is_fine(filled, rows):
    store = filled(4, 3)
    assert len(store.add(rows(0, 0))) == 0
    assert store.added == 3


def batch_of(slots, schema):
    batch = Batch(len(slots), schema)
    batch.slots[:] = slots
    return batch


def test_gather_copies_every_column_of_the_rows(filled, rows, schema):
    store, batch = filled(10, 23), batch_of([3, 9, 0, 3], schema)
    store.gather(batch)
    numbers = [13, 19, 20, 13]  # of rows 13 to 22, which are left
    assert set(batch.columns) == set(TRANSITION)
    for name, found in batch.columns.items():
        expected = np.concatenate([rows(number, 1)[name] for number in numbers])
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
    assert batch.slots.tolist() == [3, 9, 0, 3]


@pytest.mark.parametrize("slot", [-1, 6, 10])
def test_gather_refuses_a_slot_without_a_row_and_leaves_the_batch_alone(filled, schema, slot):
    store, batch = filled(10, 6), batch_of([2, slot], schema)
    with pytest.raises(MisuseError, match=rf"slots {min(2, slot)} to {max(2, slot)} hold no rows; there are 6"):
        store.gather(batch)
    assert not batch.columns["actions"].any()


@pytest.mark.parametrize("other", [Schema(TRANSITION, 4, 5, 1), Schema({"actions": TRANSITION["actions"]}, 3, 5, 1)])
def test_gather_refuses_a_batch_of_another_schema(filled, other):
    with pytest.raises(MisuseError, match="another schema"):
        filled(10, 6).gather(Batch(2, other))


def test_add_refuses_what_numpy_would_repeat(filled, rows):
    store = filled(10, 6)
    wrong = rows(0, 4) | {"rewards": np.zeros(1, np.float32)}
    with pytest.raises(MisuseError, match=r"rewards have the shape \(1,\); give an array of shape \(4,\)"):
        store.add(wrong)
    assert store.added == 6


def test_bytes_needed_is_what_the_arrays_take(filled, schema):
    store = filled(10, 0)
    assert ReplayStore.bytes_needed(10, schema) == sum(column.nbytes for column in store.columns.values())
    assert ReplayStore.bytes_needed(2, Schema(TRANSITION, 100, 20, 1)) == 2 * (800 + 16 + 20)


def test_a_store_without_room_is_refused(schema):
    with pytest.raises(MisuseError, match="capacity of 0"):
        ReplayStore(0, schema)
