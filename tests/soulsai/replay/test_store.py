import numpy as np
import pytest

from soulsai.replay import Batch, TransitionStore
from soulsgym.errors import MisuseError


def test_rows_fill_the_ring_and_then_replace_the_oldest(filled, rows):
    store = filled(10, 8)
    assert (len(store), store.added) == (8, 8)
    slots = store.add(*rows(8, 4))
    assert slots.tolist() == [8, 9, 0, 1]
    assert (len(store), store.added) == (10, 12)
    assert store.actions.tolist() == [10, 11, 2, 3, 4, 5, 6, 7, 8, 9]


def test_more_rows_at_once_than_there_is_room_leave_the_newest(filled, rows):
    store = filled(4, 1)
    slots = store.add(*rows(1, 10))
    assert slots.tolist() == [1, 2, 3, 0, 1, 2, 3, 0, 1, 2]
    assert store.actions.tolist() == [8, 9, 10, 7]


def test_nothing_to_add_is_fine(filled, rows):
    store = filled(4, 3)
    assert len(store.add(*rows(0, 0))) == 0
    assert store.added == 3


def test_gather_copies_every_field_of_the_rows(filled, rows):
    store, batch = filled(10, 23), Batch(4, 3, 5)
    store.gather(np.array([3, 9, 0, 3]), batch)
    numbers = [13, 19, 20, 13]  # of rows 13 to 22, which are left
    for field in ("observations", "actions", "rewards", "discounts", "next_observations", "next_masks"):
        expected = np.concatenate([getattr(rows(number, 1), field) for number in numbers])
        np.testing.assert_array_equal(getattr(batch, field), expected)
        assert getattr(batch, field).dtype == expected.dtype
    assert batch.slots.tolist() == [3, 9, 0, 3]


@pytest.mark.parametrize("slot", [-1, 6, 10])
def test_gather_refuses_a_slot_without_a_row_and_leaves_the_batch_alone(filled, slot):
    store, batch = filled(10, 6), Batch(2, 3, 5)
    with pytest.raises(MisuseError, match=f"slot {slot} holds no row; the store has 6"):
        store.gather(np.array([0, slot]), batch)
    assert not batch.actions.any()


def test_gather_refuses_a_batch_of_another_size(filled):
    store = filled(10, 6)
    with pytest.raises(MisuseError, match=r"\(4, 5\) cannot hold \(3, 5\)"):
        store.gather(np.array([0, 1]), Batch(2, 4, 5))
    with pytest.raises(MisuseError, match=r"slots have the shape \(3,\)"):
        store.gather(np.array([0, 1, 2]), Batch(2, 3, 5))


def test_add_refuses_what_numpy_would_repeat(filled, rows):
    store = filled(10, 6)
    wrong = rows(0, 4)._replace(rewards=np.zeros(1, np.float32))
    with pytest.raises(MisuseError, match=r"rewards have the shape \(1,\); give an array of shape \(4,\)"):
        store.add(*wrong)
    assert store.added == 6


def test_bytes_needed_is_what_the_arrays_take(filled):
    store = filled(10, 0)
    assert TransitionStore.bytes_needed(10, 3, 5) == sum(column.nbytes for column in store.columns)
    assert TransitionStore.bytes_needed(2, 100, 20) == 2 * (800 + 16 + 20)


def test_a_store_without_room_is_refused():
    with pytest.raises(MisuseError, match="capacity of 0"):
        TransitionStore(0, 3, 5)
