"""The ring of rows that a learner remembers, and the batch they are gathered into. Its columns follow the schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil  # type: ignore[import-untyped]

from soulsai.experience import Array, Schema
from soulsgym.errors import MisuseError

Int64s = npt.NDArray[np.int64]
Float32s = npt.NDArray[np.float32]
BYTES_PER_GB = 1e9


class Batch:
    """Preallocated rows for one update: the columns, the slots they came from and their weights."""

    def __init__(self, size: int, schema: Schema) -> None:
        self.schema, self.columns = schema, schema.empty(size)
        self.slots: Int64s = np.zeros(size, np.int64)
        self.weights: Float32s = np.ones(size, np.float32)

    def __len__(self) -> int:
        return len(self.slots)


class ReplayStore:
    """The newest `capacity` rows. The row that was added as number k lies in slot k % capacity."""

    def __init__(self, capacity: int, schema: Schema) -> None:
        if capacity < 1:
            raise MisuseError(f"a replay store with a capacity of {capacity} holds nothing; give it at least 1")
        self.capacity, self.schema, self.added = capacity, schema, 0
        self.columns = schema.empty(capacity)

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    @staticmethod
    def bytes_needed(capacity: int, schema: Schema) -> int:
        """Memory of a full store."""
        return capacity * schema.record().itemsize

    def add(self, rows: Mapping[str, Array]) -> Int64s:
        """Add rows in the place of the oldest ones; gives the slots they went to."""
        count, first = len(rows["actions"]), self.added
        for name in self.columns:
            check_shape(name, rows[name], self.schema.shape(name, count))
        self.place(first, rows)
        self.added = first + count
        return np.arange(first, first + count) % self.capacity

    def place(self, first: int, rows: Mapping[str, Array]) -> None:
        """Write rows under the numbers from `first` on, without counting them as added."""
        for part, slots in self.spans(first, len(rows["actions"])):
            for name, column in self.columns.items():
                column[slots] = rows[name][part]

    def remove(self, gone: npt.NDArray[np.bool_]) -> Int64s:
        """Remove rows, told by flags from the oldest on; the others are numbered anew. Gives the slots these had."""
        slots: Int64s = np.arange(self.added - len(self), self.added) % self.capacity
        kept: Int64s = slots[~gone]
        for column in self.columns.values():
            column[: len(kept)] = column[kept]
        self.added = len(kept)
        return kept

    def spans(self, first: int, count: int) -> Iterator[tuple[slice, slice]]:
        """The rows from number `first` on, cut where the ring begins again: positions among them, and slots."""
        done = 0
        while done < count:
            slot = (first + done) % self.capacity
            length = min(count - done, self.capacity - slot)
            yield slice(done, done + length), slice(slot, slot + length)
            done += length

    def copy_since(self, number: int) -> ReplayStore:
        """A store of its own with the rows from a number on that are still there."""
        first = max(number, self.added - len(self))
        count = max(0, self.added - first)
        copy = ReplayStore(max(1, count), self.schema)
        for _, slots in self.spans(first, count):
            rows = {name: column[slots] for name, column in self.columns.items()}
            copy.place(first, rows)
            first += len(rows["actions"])
        copy.added = self.added
        return copy

    def gather(self, batch: Batch) -> None:
        """Copy the rows of the batch's slots into it."""
        if batch.schema != self.schema:
            raise MisuseError("a batch of another schema than the store's cannot hold its rows")
        if len(batch) and not (batch.slots.min() >= 0 and batch.slots.max() < len(self)):
            raise MisuseError(f"slots {batch.slots.min()} to {batch.slots.max()} hold no rows; there are {len(self)}")
        for name, column in self.columns.items():
            # Straight to their places; without the mode they would be gathered somewhere else before.
            np.take(column, batch.slots, axis=0, out=batch.columns[name], mode="clip")


def check_shape(name: str, array: npt.NDArray[Any], shape: tuple[int, ...]) -> None:
    """Refuse an array that a kernel would read beyond its end, or NumPy would silently repeat."""
    if array.shape != shape:
        raise MisuseError(f"{name} have the shape {array.shape}; give an array of shape {shape}")


def refuse_if_too_large(bytes_needed: int, what: str) -> None:
    """Refuse before a run starts what would end it, or the machine, much later."""
    available = psutil.virtual_memory().available
    if bytes_needed > available:
        raise MisuseError(
            f"{what} needs {bytes_needed / BYTES_PER_GB:.1f} GB of memory, but only {available / BYTES_PER_GB:.1f} GB "
            "are free; make it smaller or close other programs"
        )
