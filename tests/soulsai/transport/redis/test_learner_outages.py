"""The learner's end and a Redis that goes away, and comes back with less than it had."""

import os
import shutil
import signal
import socket
import threading
import time
from dataclasses import replace

import pytest
from redis_kit import WORKER, append, books, check_books, parcel, take, until

from soulsai.errors import TransportError
from soulsai.runtime.redis_server import OwnServer
from soulsai.transport.links import Progress
from soulsai.transport.redis.access import invite
from soulsai.transport.redis.connection import connect
from soulsai.transport.redis.entries import write_beat
from soulsai.transport.redis.keys import Keys


class Fleet:
    """A learner and workers under way, with everything that comes stored after a while."""

    def __init__(self, address, learner, links):
        self.address, self.learner, self.links = address, learner, links
        self.done = threading.Event()
        self.sent = dict.fromkeys((link.worker for link in links), 0)
        self.got = {link.worker: set() for link in links}
        self.held = []
        self.errors = []
        self.threads = [threading.Thread(target=self._play, args=(link,), daemon=True) for link in links]
        self.learning = threading.Thread(target=self._learn, daemon=True)
        self.is_learning = True
        for thread in (*self.threads, self.learning):
            thread.start()

    def _play(self, link):
        while not self.done.is_set():
            self.sent[link.worker] += 1
            link.send(parcel(self.sent[link.worker], worker=link.worker))
            link.report(Progress(state="playing", steps=self.sent[link.worker]))
            time.sleep(0.004)

    def _learn(self):
        try:
            while self.is_learning or self.held:
                for delivery in self.learner.receive(0.05):
                    seen = self.got[delivery.worker]
                    if delivery.sequence in seen:
                        self.learner.settle([delivery])
                    else:
                        seen.add(delivery.sequence)
                        self.held.append(delivery)
                if len(self.held) > 30 or not self.is_learning:
                    now, self.held = self.held[:20], self.held[20:]
                    self.learner.settle(now)
        except Exception as error:
            self.errors.append(error)

    def play_on(self):
        """Until some chunks more have come from everyone."""
        before = {worker: len(seen) for worker, seen in self.got.items()}
        until(lambda: all(len(seen) >= before[worker] + 40 for worker, seen in self.got.items()))

    def end(self):
        self.done.set()
        for thread in self.threads:
            thread.join(60)
        for link in self.links:
            link.close(60)
        with connect(self.address) as admin:
            until(lambda: self._on_their_way(admin) == 10 * len(self.held))
        self.is_learning = False
        self.learning.join(60)
        assert not self.learning.is_alive()
        assert not self.errors, self.errors

    def _on_their_way(self, admin):
        return sum(book.measured for book in check_books(admin, Keys(self.address.run)))


def people(address, admin, keys):
    return {name: replace(address, user=name, password=invite(admin, keys, name)) for name in ("alice", "bob")}


@pytest.fixture
def own(tmp_path, run):
    """A server of this test's own, which it may kill."""
    with OwnServer.start(tmp_path / "redis", run=run, memory_mb=256) as server:
        yield server


def make_fleet(server, make_learner, make_worker, said):
    keys = Keys(server.address.run)
    with connect(server.address) as admin:
        invited = people(server.address, admin, keys)
    learner = make_learner(server.address, say=said.append)
    learner.welcome(b"come in")
    learner.publish(1, b"one")
    links = [
        make_worker(invited["alice"]),
        make_worker(invited["bob"], "bob.1.bbbbbb", waits=False, buffer_bytes=1 << 24),
    ]
    return keys, learner, Fleet(server.address, learner, links)


@pytest.mark.faults
def test_a_killed_redis_costs_nothing(own, make_learner, make_worker):
    said = []
    keys, learner, fleet = make_fleet(own, make_learner, make_worker, said)
    for _ in range(2):
        fleet.play_on()
        os.kill(own.pid, signal.SIGKILL)
        until(lambda: not own.alive())
        time.sleep(0.3)
        learner.publish(2, b"two")
        own.revive()
    fleet.play_on()
    fleet.end()
    with connect(own.address) as admin:
        assert admin.get(keys.policy) == b"two"
        for worker, book in books(admin, keys).items():
            assert book.account.stored == book.account.sent == 10 * fleet.sent[worker]
            assert book.measured == 0
            assert fleet.got[worker] == set(range(1, fleet.sent[worker] + 1))
    assert any("answers again" in text for text in said)


def data_files(folder):
    return [file for file in folder.rglob("appendonly*") if file.is_file()]


def copy_data(source, target):
    for file in data_files(source):
        copy = target / file.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)


def remove_data(folder):
    for file in data_files(folder):
        file.unlink()


@pytest.mark.faults
@pytest.mark.parametrize("how", ["flushed", "restarted without its files"])
def test_redis_comes_back_empty(own, make_learner, make_worker, how):
    said = []
    keys, learner, fleet = make_fleet(own, make_learner, make_worker, said)
    learner.gate(is_open=True)
    fleet.play_on()
    if how == "flushed":
        with connect(own.address) as admin:
            admin.flushall()
    else:
        os.kill(own.pid, signal.SIGKILL)
        until(lambda: not own.alive())
        remove_data(own.folder)
        own.revive()
    until(lambda: any("restarted empty" in text for text in said))
    fleet.play_on()
    with connect(own.address) as admin:
        published = [b"come in", b"one", b"open"]
        until(lambda: admin.mget(keys.welcome, keys.policy, keys.gate) == published)
    fleet.end()
    learner.accounts()  # It looks what workers have told.
    with connect(own.address) as admin:
        assert admin.smembers(keys.names) == {b"alice", b"bob"}
        for worker, book in books(admin, keys).items():
            assert book.account.sent == 10 * fleet.sent[worker]
            assert book.measured == 0
            assert book.account.stored == 10 * len(fleet.got[worker])
            assert set(book.account.dropped) <= {"lost_by_redis"}


@pytest.mark.faults
@pytest.mark.parametrize("is_new_learner", [False, True])
def test_redis_comes_back_as_it_was_a_while_ago(own, make_learner, make_worker, tmp_path, is_new_learner):
    """As after a power cut, when the last seconds were not yet on the disk."""
    said = []
    keys, learner, fleet = make_fleet(own, make_learner, make_worker, said)
    fleet.play_on()
    os.kill(own.pid, signal.SIGSTOP)
    copy_data(own.folder, tmp_path / "then")
    os.kill(own.pid, signal.SIGCONT)
    fleet.play_on()
    os.kill(own.pid, signal.SIGKILL)
    until(lambda: not own.alive())
    remove_data(own.folder)
    copy_data(tmp_path / "then", own.folder)
    if is_new_learner:
        learner = fleet.learner = new_life_of(fleet, own, make_learner, said)
    else:
        own.revive()
    fleet.play_on()
    fleet.end()
    learner.accounts()
    with connect(own.address) as admin:
        for worker, book in books(admin, keys).items():
            assert book.account.sent == 10 * fleet.sent[worker]
            assert book.measured == 0
            assert set(book.account.dropped) <= {"lost_by_redis"}
            if not is_new_learner:
                assert book.account.stored == 10 * len(fleet.got[worker])


def new_life_of(fleet, own, make_learner, said):
    """The learner ends while Redis is away; of what it had not settled it knows nothing afterwards."""
    fleet.is_learning = False
    fleet.held = []
    fleet.learner.close()
    fleet.learning.join(60)
    assert not fleet.learning.is_alive()
    own.revive()
    learner = fleet.learner = make_learner(own.address, say=said.append)
    fleet.held, fleet.errors, fleet.is_learning = [], [], True
    fleet.learning = threading.Thread(target=fleet._learn, daemon=True)
    fleet.learning.start()
    return learner


def test_rows_on_their_way_when_redis_is_emptied(alice, address, admin, keys, make_learner):
    """Held by the learner: still stored. Not yet received: lost, and counted. Of a worker that is gone: kept."""
    said = []
    learner = make_learner(address, say=said.append)
    learner.welcome(b"come in")
    append(admin, keys, 1, 2, 3)
    append(admin, keys, 1, worker="alice.9.999999")
    found = take(learner, 4)
    learner.settle([found[0], found[3]])
    append(admin, keys, 4, 5)
    admin.flushall()
    until(lambda: not learner.receive(0.05) and any("restarted empty" in text for text in said))
    seen = books(admin, keys)
    assert (seen[WORKER].account.stored, seen["alice.9.999999"].account.stored) == (10, 10)
    learner.settle(found[1:3])
    assert books(admin, keys)[WORKER].account.stored == 30
    admin.hset("test", WORKER, 50)
    append(admin, keys, 6)
    learner.settle(take(learner, 1))
    account = books(admin, keys)[WORKER].account
    assert (account.sent, account.stored, account.dropped) == (60, 40, {"lost_by_redis": 20})


def test_a_worker_that_tells_of_its_loss_later(alice, address, admin, keys, make_learner):
    learner = make_learner(address)
    learner.welcome(b"come in")
    append(admin, keys, 1)
    learner.settle(take(learner, 1))
    learner.accounts()
    append(admin, keys, 2, 3)  # The learner never hears of these.
    admin.flushall()
    until(lambda: not learner.receive(0.05) and admin.exists(keys.welcome))
    assert books(admin, keys)[WORKER].account.sent == 10
    admin.hset("test", WORKER, 30)
    append(admin, keys, 4)
    learner.settle(take(learner, 1))
    until(lambda: not learner.receive(0.05) and "lost_by_redis" in learner.accounts()[0].dropped)
    account = books(admin, keys)[WORKER].account
    assert (account.sent, account.stored, account.dropped) == (40, 20, {"lost_by_redis": 20})


def test_what_redis_and_the_learner_lost_together(alice, address, admin, keys, make_learner):
    learner = make_learner(address)
    append(admin, keys, 1, 2)
    learner.settle(take(learner, 2)[:1])
    admin.delete(keys.experience("alice"))
    assert learner.receive(0.1) == []
    learner.close()
    second = make_learner(address)
    append(admin, keys, 3)
    second.settle(take(second, 1))
    account = books(admin, keys)[WORKER].account
    assert (account.sent, account.stored, account.dropped) == (30, 20, {"lost_by_redis": 10})


def test_rows_that_no_later_chunk_tells_of(alice, address, admin, keys, make_learner):
    """A worker says at its end what it had sent: that is lost where Redis was emptied, and open where it was not."""
    learner = make_learner(address)
    learner.settle([], [])
    assert learner.receive(0.05) == []
    last = write_beat(Progress(), "left", 0.0, {}, time_s=time.time(), pushed=70)
    admin.hset(keys.beats("alice"), WORKER, last)
    (book,) = check_books(admin, keys)
    assert (book.closes, book.missing, book.measured) == (False, 70, 0)
    admin.flushall()
    until(lambda: not learner.receive(0.05) and admin.smembers(keys.names))
    admin.hset(keys.beats("alice"), WORKER, last)
    (book,) = check_books(admin, keys)
    assert (book.closes, book.account.dropped) == (True, {"lost_by_redis": 70})


@pytest.mark.faults
def test_patience_ends(own, make_learner):
    learner = make_learner(own.address, patience_s=0.4)
    os.kill(own.pid, signal.SIGKILL)
    until(lambda: not own.alive())

    def receive_for_ever():
        while True:
            learner.receive(0.1)

    with pytest.raises(TransportError, match="cannot receive experience"):
        receive_for_ever()


@pytest.mark.faults
def test_without_redis_nothing_hangs(own, make_learner):
    learner = make_learner(own.address)
    os.kill(own.pid, signal.SIGKILL)
    until(lambda: not own.alive())
    began_s = time.monotonic()
    assert learner.receive(0.2) == []
    learner.publish(1, b"one")
    learner.gate(is_open=False)
    assert (learner.workers(), learner.accounts()) == (0, [])
    assert time.monotonic() - began_s < 30.0


def test_a_policy_that_could_not_be_published_is_published_later(address, admin, keys, make_learner, monkeypatch):
    """Redis is the same as before: only the connection was lost."""
    learner = make_learner(address)
    learner.publish(1, b"one")
    for name in ("eval", "pipeline", "execute_command"):
        monkeypatch.setattr(learner._client, name, _lose_connection)
    learner.publish(2, b"two")
    monkeypatch.undo()
    assert admin.get(keys.policy) == b"one"
    until(lambda: not learner.receive(0.05) and admin.get(keys.policy) == b"two")


def _lose_connection(*_, **__):
    raise ConnectionResetError


def test_why_redis_does_not_answer_is_said_once(address, make_learner):
    said = []
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    learner = make_learner(replace(address, port=port), say=said.append)
    for _ in range(3):
        assert learner.receive(0.01) == []
    (line,) = said
    assert f"127.0.0.1:{port} does not answer" in line
    assert "Connection refused" in line
