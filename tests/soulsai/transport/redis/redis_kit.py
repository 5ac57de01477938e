"""What the tests of both ends over Redis share."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from soulsai.transport.frames import Kind, encode
from soulsai.transport.links import Account, Message
from soulsai.transport.redis.entries import read_entry, write_entry
from soulsai.transport.redis.report import look_at, snapshot

WORKER = "alice.1.abcdef"


def until(condition, limit_s=60.0):
    deadline_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline_s, "it did not happen"
        time.sleep(0.005)


def parcel(sequence, rows=10, size=100, worker=WORKER, run="any"):
    """A message whose frame has an array of so many bytes."""
    frame = encode(
        Kind.CHUNK, run=run, worker=worker, sequence=sequence, rows=rows,
        arrays={"pool": np.zeros(size, np.uint8)}, squeeze=False,
    )  # fmt: skip
    return Message(worker, sequence, rows, frame)


FRAME_BYTES = len(parcel(1, size=0).frame)


def append(admin, keys, *numbers, worker=WORKER, rows=10):
    """As its worker does."""
    pushed = admin.hincrby("test", worker, rows * len(numbers)) - rows * len(numbers)
    entries = [
        write_entry(parcel(number, rows, worker=worker), time.time(), pushed + rows * count)
        for count, number in enumerate(numbers, 1)
    ]
    admin.rpush(keys.experience(keys.name_of(worker)), *entries)


def numbers(messages):
    return [message.sequence for message in messages]


def take(learner, count):
    found = []
    until(lambda: found.extend(learner.receive(0.05)) or len(found) >= count)
    return found


@dataclass(frozen=True)
class Book:
    """The account of a worker life beside the rows that were found on their way at the same moment."""

    account: Account
    measured: int
    missing: int  # rows that by the word of the worker are on their way too

    @property
    def closes(self):
        return self.account.in_flight == self.measured and not self.missing


def check_books(admin, keys):
    seen = snapshot(admin, keys, entries=True)
    return [Book(seen.account(worker), seen.in_flight.get(worker, 0), seen.missing(worker)) for worker in seen.lives()]


def look(admin, keys, **limits):
    """All workers as the operator sees them."""
    return look_at(admin, keys, **limits)["workers"]


def books(admin, keys):
    found = check_books(admin, keys)
    assert all(book.closes for book in found), found
    return {book.account.worker: book for book in found}


def states(admin, keys):
    """Of all workers, as the operator sees them."""
    return [row["state"] for row in look(admin, keys)]


def sequences(admin, keys, name="alice"):
    return [read_entry(name, data).sequence for data in admin.lrange(keys.experience(name), 0, -1)]


def book(admin, keys, worker=WORKER):
    return next(book for book in check_books(admin, keys) if book.account.worker == worker)
