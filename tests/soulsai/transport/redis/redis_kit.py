"""What the tests of both ends over Redis share."""

from __future__ import annotations

import time

from soulsai.transport.links import Parcel
from soulsai.transport.redis.ledger import check_books, look

WORKER = "alice.1.abcdef"


def until(condition, limit_s=60.0):
    deadline_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline_s, "it did not happen"
        time.sleep(0.005)


def append(admin, keys, *numbers, worker=WORKER, rows=10):
    """As its worker does."""
    sent = int(admin.hget("test", worker) or 0)
    for number in numbers:
        sent += rows
        pipe = admin.pipeline(transaction=True)
        fields = {"w": worker, "q": number, "r": rows, "f": b"frame %d" % number}
        pipe.xadd(keys.experience(keys.name_of(worker)), fields)
        pipe.hset(keys.account(worker), "1", b'{"sent": %d}' % sent)
        pipe.execute()
    admin.hset("test", worker, sent)


def numbers(deliveries):
    return [delivery.parcel.sequence for delivery in deliveries]


def take(learner, count):
    found = []
    until(lambda: found.extend(learner.receive(0.05)) or len(found) >= count)
    return found


def books(admin, keys):
    found = check_books(admin, keys)
    assert all(book.closes for book in found), found
    return {book.account.worker: book for book in found}


def parcel(sequence, rows=10, size=100, worker=WORKER):
    return Parcel(worker, sequence, rows, sequence.to_bytes(4, "little") + bytes(size - 4))


def states(admin, keys):
    """Of all workers, as the operator sees them."""
    return [row.state for row in look(admin, keys).workers]


def sequences(admin, keys, name="alice"):
    return [int(fields[b"q"]) for _, fields in admin.xrange(keys.experience(name))]


def book(admin, keys, worker=WORKER):
    return next(book for book in check_books(admin, keys) if book.account.worker == worker)
