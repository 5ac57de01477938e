"""The ring of transitions, and the batch they are gathered into."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsai.replay.transitions import (
    Flags,
    Float32s,
    Int64s,
    Transitions,
    arrays_of,
    check_shape,
    copy_numbers,
    copy_rows,
    make_columns,
    record_of,
)
from soulsgym.compiling import njit
from soulsgym.errors import MisuseError


@njit(cache=True, nogil=True)
def _gather(o: Any, a: Any, r: Any, d: Any, o1: Any, m1: Any, size: int, slots: Any,
            to_slots: Any, to_o: Any, to_a: Any, to_r: Any, to_d: Any, to_o1: Any, to_m1: Any) -> int:  # fmt: skip
    """Copy rows; the position of the first slot that holds none, or -1.

    The arrays one by one, and a loop for each: with tuples of them, and all in one loop, it takes twice as long.
    """
    for i in range(len(slots)):
        if slots[i] < 0 or slots[i] >= size:
            return i
        to_slots[i] = slots[i]
    copy_rows(o, slots, to_o)
    copy_rows(o1, slots, to_o1)
    copy_rows(m1, slots, to_m1)
    copy_numbers(a, slots, to_a)
    copy_numbers(r, slots, to_r)
    copy_numbers(d, slots, to_d)
    return -1


class Batch:
    """Preallocated rows for one update: the transitions, the slots they came from and their weights."""

    def __init__(self, size: int, observation_size: int, num_actions: int) -> None:
        self.layout = (observation_size, num_actions)
        self.columns = make_columns(size, observation_size, num_actions)
        self.observations, self.actions, self.rewards = self.columns[:3]
        self.discounts, self.next_observations, self.next_masks = self.columns[3:]
        self.slots: Int64s = np.zeros(size, np.int64)
        self.weights: Float32s = np.ones(size, np.float32)

    def __len__(self) -> int:
        return len(self.slots)


class TransitionStore:
    """The newest `capacity` transitions. The row that was added as number k lies in slot k % capacity."""

    def __init__(self, capacity: int, observation_size: int, num_actions: int) -> None:
        if capacity < 1:
            raise MisuseError(f"a replay store with a capacity of {capacity} holds nothing; give it at least 1")
        self.capacity, self.layout, self.added = capacity, (observation_size, num_actions), 0
        self.columns = make_columns(capacity, observation_size, num_actions)
        self.observations, self.actions, self.rewards = self.columns[:3]
        self.discounts, self.next_observations, self.next_masks = self.columns[3:]

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    @staticmethod
    def bytes_needed(capacity: int, observation_size: int, num_actions: int) -> int:
        """Memory of a full store."""
        return capacity * record_of(observation_size, num_actions).itemsize

    def add(
        self,
        observations: Float32s,
        actions: Int64s,
        rewards: Float32s,
        discounts: Float32s,
        next_observations: Float32s,
        next_masks: Flags,
    ) -> Int64s:
        """Add rows in the place of the oldest ones; gives the slots they went to."""
        rows = Transitions(observations, actions, rewards, discounts, next_observations, next_masks)
        count, first = len(actions), self.added
        for name, column in zip(Transitions._fields, arrays_of(self.columns), strict=True):
            check_shape(name, getattr(rows, name), (count, *column.shape[1:]))
        self.place(first, rows)
        self.added = first + count
        return np.arange(first, first + count) % self.capacity

    def add_pooled(
        self,
        pool: Float32s,
        first: npt.NDArray[np.integer[Any]],
        following: npt.NDArray[np.integer[Any]],
        actions: Int64s,
        rewards: Float32s,
        discounts: Float32s,
        next_masks: Flags,
    ) -> Int64s:
        """The same with observations that are rows of a pool, which `first` and `following` point at."""
        count, begin = len(actions), self.added
        check_shape("pool", pool, (len(pool), self.layout[0]))
        plain = ((self.actions, actions), (self.rewards, rewards), (self.discounts, discounts))
        for part, slots in self.spans(begin, count):
            # Straight to their places; without the mode they would be gathered somewhere else before.
            np.take(pool, first[part], axis=0, out=self.observations[slots], mode="clip")
            np.take(pool, following[part], axis=0, out=self.next_observations[slots], mode="clip")
            for column, new in (*plain, (self.next_masks, next_masks)):
                column[slots] = new[part]
        self.added = begin + count
        return np.arange(begin, begin + count) % self.capacity

    def place(self, first: int, rows: Transitions) -> None:
        """Write rows under the numbers from `first` on, without counting them as added."""
        for part, slots in self.spans(first, len(rows.actions)):
            for column, new in zip(arrays_of(self.columns), arrays_of(rows), strict=True):
                column[slots] = new[part]

    def spans(self, first: int, count: int) -> Iterator[tuple[slice, slice]]:
        """The rows from number `first` on, cut where the ring begins again: positions among them, and slots."""
        done = 0
        while done < count:
            slot = (first + done) % self.capacity
            length = min(count - done, self.capacity - slot)
            yield slice(done, done + length), slice(slot, slot + length)
            done += length

    def gather(self, slots: npt.NDArray[np.int64], batch: Batch) -> None:
        """Copy the rows of `slots` into the batch."""
        if batch.layout != self.layout:
            raise MisuseError(f"a batch for (observation size, actions) {batch.layout} cannot hold {self.layout}")
        check_shape("slots", slots, batch.slots.shape)
        wrong = _gather(*self.columns, len(self), slots, batch.slots, *batch.columns)
        if wrong >= 0:
            raise MisuseError(f"slot {slots[wrong]} holds no row; the store has {len(self)}, from slot 0 on")
