"""sent = stored + dropped by reason + in flight, at every moment."""

import random
import threading
import time
from dataclasses import replace

import pytest

from soulsai.transport.links import Parcel
from soulsai.transport.redis.access import invite
from soulsai.transport.redis.books import LOST, Books, Life, Sent, read_books, read_label, read_sent, sent_field
from soulsai.transport.redis.connection import connect
from soulsai.transport.redis.keys import GROUP
from soulsai.transport.redis.learner import RedisLearnerLink
from soulsai.transport.redis.ledger import check_books
from soulsai.transport.redis.outbox import Outbox
from soulsai.transport.redis.settling import Settling
from soulsai.transport.redis.worker import RedisWorkerLink


def as_bytes(fields):
    return {key.encode(): value.encode() for key, value in fields.items()}


def test_life_counts_each_chunk_once_in_any_order():
    for seed in range(50):
        chance = random.Random(seed)
        life, counted = Life(), 0
        chunks = [number for number in range(1, 40) if chance.random() < 0.8]
        waiting = []
        for number in chunks:
            assert life.hold(number)
            waiting.append(number)
            assert not life.hold(number)  # A copy beside the one that is held.
            while waiting and chance.random() < 0.5:
                done = waiting.pop(chance.randrange(len(waiting)))
                life.settle(done, 10, None if chance.random() < 0.7 else "stale")
                counted += 10
                assert life.is_settled(done)
                assert not life.hold(done)
            assert not any(life.is_settled(other) for other in waiting)
        assert life.stored + life.dropped.get("stale", 0) == counted


def test_books_are_the_same_after_redis_and_after_a_new_learner():
    books = Books()
    life = books.life("alice.1.abcdef")
    for number in (1, 2, 3, 5, 6, 7, 9):
        life.hold(number)
    life.settle(6, 10, None)
    life.settle(2, 5, "stale")
    life.orphaned = {3: 12}
    books.malformed["alice"] = 4
    again = read_books(as_bytes(books.fields()))
    found = again.lives["alice.1.abcdef"]
    assert (found.stored, found.dropped, found.highest, found.gaps) == (10, {"stale": 5}, 6, {1, 3, 5})
    assert found.orphaned == {3: 12}
    assert again.malformed == {"alice": 4}
    assert [number for number in range(1, 10) if found.hold(number)] == [1, 3, 5, 7, 8, 9]


def test_account_is_not_set_back_by_what_arrives_late():
    lines = dict([sent_field(2, Sent(700, {"buffer_full": 20})), sent_field(10, Sent(900)), sent_field(9, Sent(800))])
    assert read_sent({line.encode(): value for line, value in lines.items()}) == Sent(900)


@pytest.mark.parametrize(
    "account",
    [
        {},
        {b"1": b"no json"},
        {b"1": b'{"sent": -5}'},
        {b"1": b'{"sent": 1e300}'},
        {b"x": b"1"},
        {b"9" * 400: b"{}"},
        {b"1": b'{"sent": 5, "dropped": {"\\u001b[2J": 1}}'},
        {b"1": b'{"sent": 99999999999999999999999}'},
    ],
)
def test_account_that_no_worker_wrote_counts_nothing(account):
    assert read_sent(account) == Sent()


@pytest.mark.parametrize(
    "label",
    [
        (b"bob.1.abcdef", b"1", b"10"),
        (b"alice.1.abcdef", b"0", b"10"),
        (b"alice.1.abcdef", b"1", b"0"),
        (b"alice.1.abcdef", b"-1", b"10"),
        (b"alice.1.abcdef", b"1", b"99999999999"),
        (b"alice.1.abcdef", b"1" * 500, b"10"),
        (b"alice.1.abcdef", None, b"10"),
        (b"alice|1|stored", b"1", b"10"),
        (b"alice.1.abcdef\n", b"1", b"10"),
        (b"\xff", b"1", b"10"),
    ],
)
def test_label_that_no_worker_writes(label):
    assert read_label("alice", *label) is None


def test_label():
    assert read_label("alice", b"alice.1.abcdef", b"7", b"2048") == ("alice.1.abcdef", 7, 2048)


def test_missing_rows_leave_out_what_is_known_to_be_lost():
    life = Life(stored=50, dropped={"stale": 5, LOST: 20})
    assert life.missing(Sent(100, {"buffer_full": 10}), 15) == 20


# The whole of it at full speed


class Turmoil:
    """Two workers, one of which drops, a learner that settles in any order, and someone who sends copies."""

    def __init__(self, address, admin, keys):
        self.admin, self.keys = admin, keys
        people = {name: replace(address, user=name, password=invite(admin, keys, name)) for name in ("alice", "bob")}
        self.learner = RedisLearnerLink(address)
        self.links = [
            RedisWorkerLink(people["alice"], "alice.1.aaaaaa", max_chunks=40, buffer_bytes=1 << 20, waits=True),
            RedisWorkerLink(people["alice"], "alice.2.aaaaab", max_chunks=40, buffer_bytes=1 << 20, waits=True),
            RedisWorkerLink(people["bob"], "bob.1.bbbbbb", max_chunks=10, buffer_bytes=8_000, waits=False),
        ]
        self.done = threading.Event()
        self.errors = []
        self.threads = [self._thread(self._play, link) for link in self.links]
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
            link.send(Parcel(link.worker, sequence, chance.randrange(1, 500), bytes(chance.randrange(3_000))))
            if chance.random() < 0.05:
                time.sleep(0.005)

    def _copy(self, address):
        """As a try of which its worker never heard, and which arrives late: the account is that of before."""
        chance = random.Random(3)
        with connect(address) as client:
            while not self.done.wait(0.003):
                key = self.keys.experience(chance.choice(["alice", "bob"]))
                found = client.xrange(key, count=50)
                if found:
                    client.xadd(key, chance.choice(found)[1])

    def _learn(self):
        chance = random.Random(9)
        held, seen = [], set()
        while self.is_learning or held or self._is_something_left():
            stored, dropped, repeated = [], [], []
            for delivery in self.learner.receive(0.01):
                chunk = delivery.parcel.worker, delivery.parcel.sequence
                if chunk in seen:
                    repeated.append(delivery)
                else:
                    seen.add(chunk)
                    held.append(delivery)
            chance.shuffle(held)
            keep = chance.randrange(60) if self.is_learning else 0
            while len(held) > keep:
                if chance.random() < 0.8:
                    stored.append(held.pop())
                else:
                    dropped.append((held.pop(), chance.choice(["stale", "malformed"])))
            self.learner.settle(stored, dropped, repeated)

    def _is_something_left(self):
        return any(self.admin.xlen(self.keys.experience(name)) for name in ("alice", "bob"))

    def rage(self, is_enough):
        """Until it is, after so many checks and with such books; how many checks, and books that did not close."""
        for thread in (*self.threads, self.learning):
            thread.start()
        checks, books, open_books = 0, [], []
        deadline_s = time.monotonic() + 60.0
        while not (open_books or is_enough(checks, books)) and time.monotonic() < deadline_s:
            books = check_books(self.admin, self.keys)
            open_books = [book for book in books if not book.closes]
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
    assert books["bob.1.bbbbbb"].account.dropped["buffer_full"] > 0
    assert not any(admin.xlen(keys.experience(name)) for name in ("alice", "bob"))
    assert not any(admin.xpending(keys.experience(name), GROUP)["pending"] for name in ("alice", "bob"))


def forget_accounts(monkeypatch):
    monkeypatch.setattr(Settling, "change", lambda self, workers: None)


def forget_drops(monkeypatch):
    monkeypatch.setattr(Outbox, "_count_dropped", lambda self, parcel, reason: None)


def count_copies(monkeypatch):
    monkeypatch.setattr(Life, "hold", lambda self, sequence: self.held.setdefault(sequence) is None)


def settle_in_order_only(monkeypatch):
    monkeypatch.setattr(Life, "is_settled", lambda self, sequence: sequence <= self.highest)


def forget_what_is_settled(monkeypatch):
    monkeypatch.setattr(Life, "is_settled", lambda self, sequence: False)


@pytest.mark.parametrize(
    "sabotage", [forget_accounts, forget_drops, count_copies, settle_in_order_only, forget_what_is_settled]
)
def test_a_mistake_in_the_books_is_seen(sabotage, monkeypatch, turmoil):
    sabotage(monkeypatch)
    _, open_books = turmoil.rage(lambda checks, books: False)
    turmoil.end()
    assert open_books
