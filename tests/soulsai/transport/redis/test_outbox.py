"""Chunks in a worker's memory: their order, and the count of every row."""

import threading
import time

from soulsai.transport.links import Parcel
from soulsai.transport.redis.outbox import Outbox

WORKER = "alice.1.abcdef"


def parcel(sequence, rows=10, size=100):
    return Parcel(WORKER, sequence, rows, bytes(size))


def numbers(batch):
    return [parcel.sequence for parcel in batch]


def fill(outbox, *sequences):
    for sequence in sequences:
        assert outbox.put(parcel(sequence), lambda: False)


def test_what_is_put_back_keeps_its_order_in_front_of_the_others():
    outbox = Outbox(10_000, waits=False)
    fill(outbox, 1, 2, 3, 4)
    assert numbers(outbox.take(3)) == [1, 2, 3]
    fill(outbox, 5)
    outbox.put_back()
    assert outbox.in_hand == ()
    assert numbers(outbox.take(10)) == [1, 2, 3, 4, 5]


def test_what_is_in_hand_is_not_dropped_and_what_is_put_back_can_be():
    outbox = Outbox(300, waits=False)
    fill(outbox, 1, 2)
    outbox.take(2)
    fill(outbox, 3, 4, 5)
    assert outbox.account(with_hand=True).dropped == {"buffer_full": 20}
    outbox.put_back()
    assert outbox.account(with_hand=False).dropped == {"buffer_full": 20}
    fill(outbox, 6)
    assert outbox.account(with_hand=False).dropped == {"buffer_full": 30}
    assert numbers(outbox.take(10)) == [2, 5, 6]


def test_sent_counts_what_was_taken_or_dropped_but_not_what_waits():
    outbox = Outbox(10_000, waits=False)
    fill(outbox, 1, 2, 3)
    outbox.take(1)
    assert (outbox.account(with_hand=True).sent, outbox.account(with_hand=False).sent) == (10, 0)
    outbox.done()
    assert outbox.account(with_hand=False).sent == 10
    batch = outbox.take(1)
    outbox.done(batch, "oversized")
    assert outbox.give_up("unsent") == 10
    account = outbox.account(with_hand=False)
    assert (account.sent, account.dropped) == (30, {"oversized": 10, "unsent": 10})


def test_one_that_may_not_be_ahead_waits_until_its_chunk_has_left():
    outbox = Outbox(1 << 20, waits=True, ahead=0)
    left = []

    def send():
        while not outbox.wait(1.0):
            pass
        outbox.take(10)
        time.sleep(0.05)
        left.append(len(outbox.in_hand))
        outbox.done()

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    assert outbox.put(Parcel("alice.1.000000", 1, 10, b"frame"), lambda: False)
    assert left == [1]
    thread.join()


def test_one_that_may_not_be_ahead_stops_waiting_when_told():
    outbox = Outbox(1 << 20, waits=True, ahead=0)
    assert not outbox.put(Parcel("alice.1.000000", 1, 10, b"frame"), lambda: True)
    assert outbox.unsent == 10
