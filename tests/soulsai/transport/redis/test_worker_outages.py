"""The worker's end and a Redis that goes away: nothing that was not sent is lost, and nothing is counted twice."""

import os
import signal
import socket
import threading
import time
from contextlib import suppress
from dataclasses import replace

import pytest
from redis_kit import FRAME_BYTES, book, parcel, sequences, take, until

from soulsai.runtime.redis_server import OwnServer
from soulsai.transport.redis.access import invite
from soulsai.transport.redis.connection import connect
from soulsai.transport.redis.keys import Keys
from soulsai.transport.redis.learner import RedisLearnerLink


class Cutter:
    """A proxy that forwards what workers send and, when told to, cuts the line before the answer is through."""

    def __init__(self, port):
        self.target = port
        self.cut_after, self.is_push = 0, False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._sockets = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.target))
            self._sockets += [client, server]
            threading.Thread(target=self._pump, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self._pump, args=(server, client, True), daemon=True).start()

    def _pump(self, source, target, is_answer):
        try:
            while data := source.recv(1 << 16):
                if is_answer and self.cut_after and self.is_push:
                    self.cut_after, self.is_push = self.cut_after - 1, False
                    break
                self.is_push = self.is_push or b"RPUSH" in data
                target.sendall(data)
        except OSError:
            pass
        _shut(source)
        _shut(target)

    def close(self):
        for end in (self._listener, *self._sockets):
            _shut(end)
            end.close()


def _shut(end):
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


def test_a_chunk_of_which_it_never_heard_is_sent_again_and_counted_once(alice, address, admin, keys, make_link):
    cutter = Cutter(address.port)
    learner = RedisLearnerLink(address)
    link = make_link(replace(alice, port=cutter.port))
    link.send(parcel(1))
    until(lambda: sequences(admin, keys) == [1])
    cutter.is_push, cutter.cut_after = False, 3
    for number in range(2, 6):
        link.send(parcel(number))
    until(lambda: len(set(sequences(admin, keys))) == 5 and len(sequences(admin, keys)) > 5)
    assert book(admin, keys).closes
    assert book(admin, keys).account.sent == 50
    seen = set()
    while not seen >= set(range(1, 6)) or admin.llen(keys.experience("alice")):
        for delivery in learner.receive(0.1):
            if delivery.sequence in seen:
                learner.settle([delivery])
            else:
                learner.settle([delivery])
            seen.add(delivery.sequence)
            assert book(admin, keys).closes
    assert book(admin, keys).account.stored == 50
    learner.close()
    cutter.close()


def test_an_old_try_that_arrives_late_is_a_repeat(alice, address, admin, keys, make_link, make_learner):
    link = make_link(alice)
    link.send(parcel(1))
    until(lambda: sequences(admin, keys) == [1])
    late = admin.lindex(keys.experience("alice"), 0)
    for number in (2, 3):
        link.send(parcel(number))
    until(lambda: sequences(admin, keys) == [1, 2, 3])
    admin.rpush(keys.experience("alice"), late)
    assert (book(admin, keys).account.sent, book(admin, keys).measured) == (30, 30)
    learner = make_learner(address)
    learner.settle(take(learner, 3))
    until(lambda: not learner.receive(0.05) and not sequences(admin, keys))
    assert book(admin, keys).account.stored == 30


@pytest.fixture
def own(tmp_path, run):
    """A server of this test's own, which it may kill."""
    with OwnServer.start(tmp_path / "redis", run=run, memory_mb=256) as server:
        yield server


@pytest.mark.faults
@pytest.mark.parametrize("waits", [True, False])
def test_what_is_not_sent_survives_a_killed_redis(own, make_link, waits):
    keys = Keys(own.address.run)
    with connect(own.address) as admin:
        alice = replace(own.address, user="alice", password=invite(admin, keys, "alice"))
        admin.set(keys.gate, b"open")
    link = make_link(alice, waits=waits, max_chunks=100_000, buffer_bytes=1 << 24)
    done = threading.Event()
    sent = []

    def play():
        while not done.is_set():
            sent.append(len(sent) + 1)
            link.send(parcel(sent[-1]))
            time.sleep(0.002)

    def play_on():
        before = len(sent)
        until(lambda: len(sent) > before + 30)

    thread = threading.Thread(target=play, daemon=True)
    thread.start()
    for _ in range(2):
        play_on()
        os.kill(own.pid, signal.SIGKILL)
        time.sleep(0.4)
        until(lambda: not own.alive())
        own.revive()
    play_on()
    done.set()
    thread.join(60)
    link.close(60)
    with connect(own.address) as admin:
        seen = sequences(admin, keys)
        assert sorted(set(seen)) == sent
        assert book(admin, keys).closes
        assert book(admin, keys).account.sent == 10 * len(sent)
        assert not book(admin, keys).account.dropped


@pytest.mark.faults
def test_a_long_outage_costs_a_game_its_oldest_chunks_only(own, make_link):
    keys = Keys(own.address.run)
    with connect(own.address) as admin:
        alice = replace(own.address, user="alice", password=invite(admin, keys, "alice"))
        admin.set(keys.gate, b"open")
    link = make_link(alice, waits=False, buffer_bytes=20 * (FRAME_BYTES + 104))
    link.send(parcel(1))
    until(lambda: _length(own, keys) == 1)
    os.kill(own.pid, signal.SIGKILL)
    until(lambda: not own.alive())
    for number in range(2, 102):
        assert link.send(parcel(number))
        time.sleep(0.005)
    own.revive()
    until(lambda: _length(own, keys) >= 20)
    link.close(60)
    with connect(own.address) as admin:
        seen = sequences(admin, keys)
        assert seen[-1] == 101
        assert set(range(90, 102)) <= set(seen)  # Those that were in hand stay too.
        account = book(admin, keys).account
        assert account.sent == 1010
        assert account.dropped["buffer_full"] == 1010 - 10 * len(set(seen))
        assert book(admin, keys).closes


def _length(server, keys):
    with connect(server.address) as admin:
        return admin.llen(keys.experience("alice"))


@pytest.mark.faults
def test_patience_ends(own, make_link):
    keys = Keys(own.address.run)
    with connect(own.address) as admin:
        alice = replace(own.address, user="alice", password=invite(admin, keys, "alice"))
        admin.set(keys.gate, b"open")
    link = make_link(alice, patience_s=0.5)
    link.send(parcel(1))
    until(lambda: _length(own, keys) == 1)
    os.kill(own.pid, signal.SIGKILL)
    until(lambda: link.stopping)
    assert "does not answer" in link.ended
    began_s = time.monotonic()
    link.close(60)
    assert time.monotonic() - began_s < 30


@pytest.mark.faults
def test_closing_without_redis_ends_in_time(own, make_link):
    keys = Keys(own.address.run)
    with connect(own.address) as admin:
        alice = replace(own.address, user="alice", password=invite(admin, keys, "alice"))
        admin.set(keys.gate, b"open")
    link = make_link(alice)
    until(lambda: link.newest() is None)
    os.kill(own.pid, signal.SIGKILL)
    link.send(parcel(1))
    began_s = time.monotonic()
    link.close(1.0)
    assert time.monotonic() - began_s < 30
