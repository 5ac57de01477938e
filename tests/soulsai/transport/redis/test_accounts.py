"""sent = stored + dropped by reason + in flight, at every moment."""

import random
import threading
import time
from dataclasses import replace

import pytest
from redis_kit import check_books, parcel

from soulsai.transport.links import MOST_MARKS, Marks
from soulsai.transport.redis import accounts
from soulsai.transport.redis.access import invite
from soulsai.transport.redis.accounts import LOST, Accounts, Counts, account_of
from soulsai.transport.redis.connection import connect
from soulsai.transport.redis.entries import Beat, Entry
from soulsai.transport.redis.learner import RedisLearnerLink
from soulsai.transport.redis.worker import RedisWorkerLink

WORKER = "alice.1.abcdef"


def entry(sequence, pushed=None, rows=10):
    return Entry(WORKER, sequence, rows, 0.0, sequence * rows if pushed is None else pushed)


def as_bytes(fields):
    return {key.encode(): value for key, value in fields.items()}


def test_chunks_are_counted_once_in_any_order():
    for seed in range(50):
        chance, found, counted = random.Random(seed), Accounts(), 0
        chunks = [number for number in range(1, 40) if chance.random() < 0.8]
        waiting = []
        for number in chunks:
            assert found.take(entry(number, 0))
            assert not found.take(entry(number, 0))
            waiting.append(number)
            while waiting and chance.random() < 0.5:
                done = waiting.pop(chance.randrange(len(waiting)))
                reason = None if chance.random() < 0.7 else "stale"
                for _ in range(2):
                    found.settle(WORKER, done, reason)
            counts = found.counts[WORKER]
            counted = sum(10 for other in chunks if other <= counts.settled)
            assert counts.received() == counted
            assert counts.settled < min(waiting, default=100)
        for number in waiting:
            found.settle(WORKER, number, None)
        assert found.counts[WORKER].received() == 10 * len(chunks)


def test_accounts_are_the_same_for_a_new_learner():
    first = Accounts()
    for number in (1, 2, 3):
        first.take(entry(number))
    first.settle(WORKER, 1, "stale")
    first.settle(WORKER, 3, None)
    first.settle(WORKER, 2, None)
    first.count_unreadable("alice")
    second = Accounts()
    second.load(as_bytes(first.fields()))
    assert second.counts == {
        WORKER: Counts(settled=3, stored=20, pushed=30, dropped={"stale": 10}, largest=10),
        "alice.0.000000": Counts(unreadable=1),
    }
    assert [number for number in range(1, 6) if second.take(entry(number))] == [4, 5]


def test_rows_that_are_missing_before_a_chunk_are_lost():
    counts = Counts()
    counts.add(entry(1, 10), None)
    counts.add(entry(4, 40), "stale")
    assert (counts.stored, counts.dropped, counts.received()) == (10, {LOST: 20, "stale": 10}, 40)
    counts.add(entry(5, 3), None)  # Whoever claims less than was received is not believed.
    assert counts.received() == 50


@pytest.mark.parametrize(
    ("told", "in_flight", "is_lost", "sent", "dropped", "left"),
    [
        (0, 0, False, 30, {"stale": 10}, 0),  # Never written: what was received counts.
        (50, 20, False, 50, {"stale": 10}, 20),
        (50, 0, False, 30, {"stale": 10}, 0),  # What nobody has received is not counted, whatever is said of it.
        (10**14, 0, False, 30, {"stale": 10}, 0),
        (50, 0, True, 50, {"stale": 10, LOST: 20}, 0),
        (10**14, 0, True, 30 + 100_000, {"stale": 10, LOST: 100_000}, 0),
        (0, 20, True, 50, {"stale": 10}, 20),
    ],
)
def test_both_sides_of_an_account(told, in_flight, is_lost, sent, dropped, left):
    counts = Counts(settled=3, stored=20, pushed=30, dropped={"stale": 10})
    found = account_of(WORKER, counts, Beat(pushed=told), in_flight, is_lost=is_lost)
    assert (found.sent, found.stored, found.dropped, found.in_flight) == (sent, 20, dropped, left)


def test_the_mark_not_moved_for_longest_is_forgotten_first():
    marks = Marks()
    assert marks.move("bob.1.bbbbbb", 7)
    for number in range(MOST_MARKS):
        assert marks.move(f"w.{number}", 1)
    assert marks.move("w.0", 2)  # It lives longest, and is heard of.
    assert marks.move("w.new", 1)
    assert (marks.get("w.0"), marks.get("w.1"), len(marks.as_dict())) == (2, 0, MOST_MARKS + 1)
    assert not marks.move("w.0", 1)
    assert marks.get("bob.1.bbbbbb") == 7  # However many lives another name invents.


def test_what_a_claim_can_count_is_what_its_sequence_left_out():
    counts = Counts()
    counts.add(entry(1, 10), None)
    counts.add(entry(2, 10**14), None)
    assert (counts.received(), counts.dropped) == (20, {})
    counts.add(entry(4, 10**15), None)
    assert counts.dropped == {LOST: 10}


def test_what_workers_say_they_dropped_is_believed_within_reason():
    counts = Counts(stored=10)
    beat = Beat(dropped={"buffer_full": 10**14, "unsent": 7, "my-own-metric": 5})
    assert counts.own_drops(beat) == {"buffer_full": 101_000, "unsent": 7}


# The whole of it at full speed


class Turmoil:
    """Workers, one of which drops, a learner that settles in any order, and someone who sends copies."""

    def __init__(self, address, admin, keys):
        self.admin, self.keys = admin, keys
        people = {name: replace(address, user=name, password=invite(admin, keys, name)) for name in ("alice", "bob")}
        self.learner = RedisLearnerLink(address)
        self.links = [
            RedisWorkerLink(
                people["alice"], "alice.1.aaaaaa", max_chunks=40, buffer_bytes=1 << 20, waits=True, beat_s=0.2
            ),
            RedisWorkerLink(
                people["alice"], "alice.2.aaaaab", max_chunks=40, buffer_bytes=1 << 20, waits=True, beat_s=0.2
            ),
            RedisWorkerLink(people["bob"], "bob.1.bbbbbb", max_chunks=10, buffer_bytes=8_000, waits=False, beat_s=0.2),
        ]
        self.done = threading.Event()
        self.errors = []
        self.threads = [self._thread(self._play, link.start()) for link in self.links]
        self.threads += [self._thread(self._copy, address)]
        self.learning = self._thread(self._learn)
        self.is_learning = True

    def _thread(self, work, *arguments):
        return threading.Thread(target=self._guard, args=(work, *arguments), daemon=True)

    def _guard(self, work, *arguments):
        try:
            work(*arguments)
        except Exception as error:
            self.errors.append(error)

    def _play(self, link):
        chance = random.Random(link.worker)
        sequence = 0
        while not self.done.is_set():
            sequence += 1
            link.send(parcel(sequence, chance.randrange(1, 500), chance.randrange(3_000), link.worker))
            if chance.random() < 0.05:
                time.sleep(0.005)

    def _copy(self, address):
        """As a try of which its worker never heard, and which arrives late."""
        chance = random.Random(3)
        with connect(address) as client:
            while not self.done.wait(0.003):
                key = self.keys.experience(chance.choice(["alice", "bob"]))
                if found := client.lrange(key, 0, 50):
                    client.rpush(key, chance.choice(found))

    def _learn(self):
        chance, held = random.Random(9), []
        while self.is_learning or held or self._is_something_left():
            stored, dropped = [], []
            held += self.learner.receive(0.01)
            chance.shuffle(held)
            keep = chance.randrange(60) if self.is_learning else 0
            while len(held) > keep:
                if chance.random() < 0.8:
                    stored.append(held.pop())
                else:
                    dropped.append((held.pop(), chance.choice(["stale", "malformed"])))
            self.learner.settle(stored, dropped)

    def _is_something_left(self):
        return any(self.admin.llen(self.keys.experience(name)) for name in ("alice", "bob"))

    def rage(self, is_enough):
        """Until it is, after so many checks and with such books; how many checks, and books that did not close."""
        for thread in (*self.threads, self.learning):
            thread.start()
        checks, books, open_books = 0, [], []
        deadline_s = time.monotonic() + 60.0
        while not (open_books or is_enough(checks, books)) and time.monotonic() < deadline_s:
            books = check_books(self.admin, self.keys)
            open_books = [book for book in books if not book.closes or LOST in book.account.dropped]
            checks += 1
        return checks, open_books

    def end(self):
        self.done.set()
        for thread in self.threads:
            thread.join(60)
        for link in self.links:
            link.close(60)
        self.is_learning = False
        self.learning.join(60)
        assert not self.learning.is_alive()
        self.learner.close()


@pytest.fixture
def turmoil(address, admin, keys):
    turmoil = Turmoil(address, admin, keys)
    yield turmoil
    if not turmoil.done.is_set():
        turmoil.end()


def test_books_close_at_every_moment(turmoil, admin, keys):
    until_s = time.monotonic() + 2.5

    def is_enough(checks, books):
        return (
            checks > 30
            and time.monotonic() > until_s
            and all(book.account.stored and book.account.dropped.get("stale") for book in books)
            and books[-1].account.dropped.get("buffer_full")
        )

    checks, open_books = turmoil.rage(is_enough)
    turmoil.end()
    assert not turmoil.errors
    assert not open_books
    assert checks > 30
    books = {book.account.worker: book for book in check_books(admin, keys)}
    assert len(books) == 3
    for book in books.values():
        assert book.closes
        assert book.measured == 0
        assert book.account.stored > 0
        assert book.account.dropped["stale"] > 0
        assert LOST not in book.account.dropped
    assert books["bob.1.bbbbbb"].account.dropped["buffer_full"] > 0


def forget_to_count(monkeypatch):
    monkeypatch.setattr(Counts, "add", lambda self, entry, *_: setattr(self, "settled", entry.sequence))


def count_too_early(monkeypatch):
    settle = Accounts.settle

    def settle_all(self, worker, sequence, reason, played=None):
        if worker in self._open:
            self.counts[worker].settled = max(self.counts[worker].settled, sequence)
        settle(self, worker, sequence, reason, played)

    monkeypatch.setattr(Accounts, "settle", settle_all)


def remove_too_early(monkeypatch):
    monkeypatch.setattr(Accounts, "is_settled", lambda self, entry: True)


@pytest.mark.parametrize("sabotage", [forget_to_count, count_too_early, remove_too_early])
def test_a_mistake_in_the_books_is_seen(sabotage, monkeypatch, turmoil):
    sabotage(monkeypatch)
    _, open_books = turmoil.rage(lambda checks, books: False)
    monkeypatch.undo()
    assert open_books
    turmoil.is_learning = False
    turmoil.done.set()
    turmoil.learner.close()


def test_lives_share_an_account_only_when_nothing_of_them_is_on_its_way(monkeypatch):
    monkeypatch.setattr(accounts, "MOST_LIVES", 2)
    found = Accounts()
    for life in range(5):
        assert found.take(Entry(f"alice.1.{life:06x}", 1, 10, 0.0, 10))
    assert len(found.counts) == 5
    for life in range(5):
        found.settle(f"alice.1.{life:06x}", 1, None)
    for life in range(5, 9):
        found.take(Entry(f"alice.1.{life:06x}", 1, 10, 0.0, 10))
    assert found.counts["alice.0.000000"].stored == 40
    assert found.fields()["alice.1.000000"] == b""
