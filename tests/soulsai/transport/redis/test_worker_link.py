"""The worker's end against a real Redis: waiting, dropping, outages, and being told to stop."""

import threading
import time
from dataclasses import replace

import pytest
from redis_kit import FRAME_BYTES, WORKER, book, check_books, look, parcel, sequences, states, until

from soulsai.errors import TransportError
from soulsai.transport.frames import LARGEST_FRAME
from soulsai.transport.links import Message, Progress
from soulsai.transport.redis import worker as workers
from soulsai.transport.redis.access import revoke
from soulsai.transport.redis.connection import Refused
from soulsai.transport.redis.entries import HEAD, read_entry
from soulsai.transport.redis.learner import RedisLearnerLink
from soulsai.transport.redis.report import stop_workers
from soulsai.transport.redis.worker import WAITING_CHUNKS, RedisWorkerLink, fetch_welcome
from soulsgym.errors import MisuseError


def test_chunks_arrive_in_order_with_their_account(alice, admin, keys, make_link):
    link = make_link(alice)
    assert (link.run, link.worker, link.stopping, link.ended) == (alice.run, WORKER, False, "")
    for number in range(1, 41):
        assert link.send(parcel(number))
    until(lambda: admin.llen(keys.experience("alice")) == 40)
    assert sequences(admin, keys) == list(range(1, 41))
    assert admin.lindex(keys.experience("alice"), 0)[HEAD.size :][:28] == parcel(1).frame[:28]
    assert book(admin, keys).closes
    assert book(admin, keys).account.sent == 400


def test_no_more_than_one_thread_and_one_connection(alice, admin, keys, make_link):
    threads = threading.active_count()
    link = make_link(alice)
    for number in range(1, 20):
        link.send(parcel(number))
        time.sleep(0.02)
    assert threading.active_count() - threads <= 1
    assert len([client for client in admin.client_list() if client["user"] == "alice"]) <= 1


def test_a_link_that_was_not_started_says_so(alice):
    link = RedisWorkerLink(alice, WORKER, max_chunks=5, buffer_bytes=1000, waits=True)
    with pytest.raises(MisuseError, match=r"start\(\)"):
        link.send(parcel(1))
    link.close()


def test_one_that_may_not_be_ahead_waits_until_its_chunk_is_in_redis(alice, admin, keys, make_link):
    link = make_link(alice, ahead=0)
    for number in range(1, 6):
        assert link.send(parcel(number))
        assert admin.llen(keys.experience("alice")) == number


def test_a_closed_gate_makes_it_wait(alice, admin, keys, make_link):
    admin.set(keys.gate, b"closed")
    link = make_link(alice)
    sent = []

    def play():
        for number in range(1, WAITING_CHUNKS + 17):
            link.send(parcel(number))
            sent.append(number)

    thread = threading.Thread(target=play, daemon=True)
    thread.start()
    until(lambda: states(admin, keys) == ["waiting"])
    until(lambda: len(sent) == WAITING_CHUNKS)
    time.sleep(0.3)
    assert admin.llen(keys.experience("alice")) == 0
    assert len(sent) == WAITING_CHUNKS
    admin.set(keys.gate, b"open")
    thread.join(60)
    until(lambda: sequences(admin, keys) == list(range(1, WAITING_CHUNKS + 17)))


def test_without_a_learner_the_gate_is_closed(alice, admin, keys, make_link):
    admin.delete(keys.gate)
    make_link(alice).send(parcel(1))
    time.sleep(0.3)
    assert admin.llen(keys.experience("alice")) == 0


def test_a_game_goes_on_with_a_closed_gate(alice, admin, keys, make_link):
    admin.set(keys.gate, b"closed")
    link = make_link(alice, waits=False)
    link.send(parcel(1))
    until(lambda: admin.llen(keys.experience("alice")) == 1)


def test_a_full_stream_makes_it_wait(alice, admin, keys, make_link):
    link = make_link(alice, max_chunks=5)
    thread = threading.Thread(target=lambda: [link.send(parcel(number)) for number in range(1, 31)], daemon=True)
    thread.start()
    until(lambda: admin.llen(keys.experience("alice")) == 5)
    time.sleep(0.3)
    assert admin.llen(keys.experience("alice")) == 5
    assert thread.is_alive()
    seen = []
    while len(seen) < 30:
        if admin.llen(keys.experience("alice")):
            seen.append(read_entry("alice", admin.lpop(keys.experience("alice"))).sequence)
        assert admin.llen(keys.experience("alice")) <= 5
        time.sleep(0.01)
    thread.join(60)
    assert seen == list(range(1, 31))


def test_a_full_stream_makes_a_game_drop_its_oldest(alice, admin, keys, make_link):
    link = make_link(alice, max_chunks=5, waits=False, buffer_bytes=10 * (FRAME_BYTES + 104))
    for number in range(1, 6):
        link.send(parcel(number))
    until(lambda: admin.llen(keys.experience("alice")) == 5)
    answers = []
    thread = threading.Thread(target=lambda: answers.extend(link.send(parcel(n)) for n in range(6, 31)), daemon=True)
    thread.start()
    thread.join(60)  # Nobody makes room: it would wait for ever.
    assert answers == [True] * 25
    until(lambda: book(admin, keys).account.dropped.get("buffer_full"))
    assert book(admin, keys).closes
    admin.delete(keys.experience("alice"))
    until(lambda: admin.llen(keys.experience("alice")) == 5)
    admin.delete(keys.experience("alice"))
    until(lambda: sequences(admin, keys)[-1:] == [30])
    until(lambda: link.account().sent == 300)
    until(lambda: book(admin, keys).account.dropped == {"buffer_full": 150})  # Ten chunks of a hundred bytes stay.


def test_told_to_stop_while_it_waits(alice, admin, keys, make_link):
    admin.set(keys.gate, b"closed")
    link = make_link(alice)
    answers = []
    chunks = range(1, WAITING_CHUNKS + 3)
    thread = threading.Thread(
        target=lambda: answers.extend(link.send(parcel(number)) for number in chunks), daemon=True
    )
    thread.start()
    until(lambda: states(admin, keys) == ["waiting"])
    stop_workers(admin, keys, WORKER)
    thread.join(60)
    assert answers[:WAITING_CHUNKS] == [True] * WAITING_CHUNKS
    assert answers[-1] is False
    assert link.stopping


def test_oversized_chunks_are_dropped_and_counted(alice, admin, keys, make_link):
    link = make_link(alice)
    link.send(Message(WORKER, 1, 7, bytes(LARGEST_FRAME + 1)))
    until(lambda: check_books(admin, keys) and book(admin, keys).account.dropped == {"oversized": 7})
    link.send(parcel(2))
    until(lambda: sequences(admin, keys) == [2])
    assert book(admin, keys).closes


def test_a_list_that_is_none_is_waited_for(alice, admin, keys, make_link):
    """The learner removes it; nothing is dropped meanwhile."""
    admin.hset(keys.experience("alice"), "a", "b")
    link = make_link(alice)
    link.send(parcel(1))
    until(lambda: link._asked_s > 0 and link.unsent() == 10)
    admin.delete(keys.experience("alice"))
    until(lambda: sequences(admin, keys) == [1])
    assert book(admin, keys).closes


@pytest.mark.parametrize("waits", [True, False])
def test_redis_without_memory(alice, admin, keys, make_link, waits):
    before = admin.config_get("maxmemory")["maxmemory"]
    link = make_link(alice, waits=waits, buffer_bytes=400)
    link.send(parcel(1))
    until(lambda: sequences(admin, keys) == [1])
    admin.config_set("maxmemory", 1)
    try:
        thread = threading.Thread(target=lambda: [link.send(parcel(number)) for number in range(2, 20)], daemon=True)
        thread.start()
        thread.join(0.5 if waits else 60)
        assert thread.is_alive() is waits
        assert not link.stopping
    finally:
        admin.config_set("maxmemory", before)
    thread.join(60)
    until(lambda: sequences(admin, keys)[-1] == 19)
    assert book(admin, keys).closes
    assert (sequences(admin, keys) == list(range(1, 20))) is waits
    until(lambda: bool(book(admin, keys).account.dropped) is not waits)  # The next heartbeat tells.


def test_only_the_newest_policy_and_only_once(alice, address, make_link):
    learner = RedisLearnerLink(address)
    for version in range(1, 6):
        learner.publish(version, b"policy %d" % version)
    link = make_link(alice)
    found = []
    until(lambda: found.append(link.newest()) or found[-1] is not None)
    assert found[-1] == b"policy 5"
    time.sleep(0.3)
    assert link.newest() is None
    learner.publish(6, b"policy 6")
    until(lambda: link.newest() == b"policy 6")
    learner.close()


def test_a_policy_does_not_wait_for_the_next_beat(alice, address, make_link):
    learner = RedisLearnerLink(address)
    link = make_link(alice, beat_s=600.0)
    for version in range(1, 6):
        learner.publish(version, bytes(400_000))
        until(lambda: link.newest() is not None)
    learner.close()


def test_a_policy_that_came_while_the_connection_was_lost(alice, address, admin, make_link):
    learner = RedisLearnerLink(address)
    learner.publish(1, b"one")
    link = make_link(alice)
    until(lambda: link.newest() == b"one")
    for version in range(2, 5):
        for client in admin.client_list():
            if client["user"] == "alice":
                admin.client_kill_filter(_id=client["id"])
        learner.publish(version, b"policy %d" % version)
        until(lambda wanted=b"policy %d" % version: link.newest() == wanted)
    learner.close()


@pytest.mark.parametrize(("who", "stops"), [(WORKER, True), ("alice", True), ("alice.1.ffffff", False), ("bob", False)])
def test_stop(alice, admin, keys, make_link, who, stops):
    stop_workers(admin, keys, "alice")  # Before its life: not for it.
    time.sleep(0.01)
    link = make_link(alice)
    until(lambda: look(admin, keys))
    time.sleep(0.25)
    assert not link.stopping
    stop_workers(admin, keys, who)
    until(lambda: link.stopping) if stops else time.sleep(0.4)
    assert link.stopping is stops
    assert link.ended == ("stopped by the operator" if stops else "")


def test_stopping_does_not_lose_what_was_sent(alice, admin, keys, make_link):
    link = make_link(alice)
    until(lambda: look(admin, keys))
    stop_workers(admin, keys, WORKER)
    until(lambda: link.stopping)
    assert link.send(parcel(1))
    link.close(60)
    assert sequences(admin, keys) == [1]


def test_revoked_is_out_within_seconds(alice, admin, keys, make_link):
    link = make_link(alice)
    link.send(parcel(1))
    until(lambda: sequences(admin, keys) == [1])
    revoke(admin, keys, "alice")
    until(lambda: link.stopping, 20)
    assert link.ended == "revoked"
    assert not link.send(parcel(2))
    began_s = time.monotonic()
    link.close(60)
    assert time.monotonic() - began_s < 30


def test_wrong_password(alice, make_link):
    link = make_link(replace(alice, password="wrong"))
    until(lambda: link.ended == "revoked")
    with pytest.raises(Refused, match="new invitation"):
        fetch_welcome(replace(alice, password="wrong"), 10.0)


def test_welcome(alice, admin, keys):
    with pytest.raises(TransportError, match="souls serve"):
        fetch_welcome(alice, patience_s=0.3)
    admin.set(keys.welcome, b"come in")
    frame, now_s = fetch_welcome(alice, 10.0)
    assert frame == b"come in"
    assert abs(now_s - time.time()) < 30


def test_closing_sends_what_is_left_and_says_goodbye(alice, admin, keys, make_link):
    admin.set(keys.gate, b"closed")  # One that leaves does not wait for it.
    link = make_link(alice)
    for number in range(1, 4):
        link.send(parcel(number))
    link.report(Progress(state="playing"))
    began_s = time.monotonic()
    link.close(60)
    assert time.monotonic() - began_s < 30
    assert sequences(admin, keys) == [1, 2, 3]
    row = look(admin, keys)[0]
    assert (row["state"], row["sent"]) == ("left", 30)
    assert not link.send(parcel(4))
    until(lambda: not [thread for thread in threading.enumerate() if thread.name.startswith(WORKER)])
    until(lambda: not [client for client in admin.client_list() if client["user"] == "alice"])


def test_closing_with_a_full_stream_counts_what_is_left(alice, admin, keys, make_link, monkeypatch):
    monkeypatch.setattr(workers, "SLACK_S", 30.0)
    link = make_link(alice, max_chunks=2)
    for number in range(1, 6):
        link.send(parcel(number))
    until(lambda: sequences(admin, keys) == [1, 2])
    link.close(0.3)
    assert sequences(admin, keys) == [1, 2]
    assert book(admin, keys).account.dropped == {"unsent": 30}
    assert book(admin, keys).closes


@pytest.mark.slow
def test_a_hundred_links_in_one_process(alice, address, keys, admin, make_link):
    learner = RedisLearnerLink(address)
    links = [make_link(alice, f"alice.{index}.{index:06x}", beat_s=2.0) for index in range(100)]
    until(lambda: learner.workers() == 100)
    for link in links:
        assert link.send(parcel(1, worker=link.worker))
    until(lambda: admin.llen(keys.experience("alice")) == 100)
    assert all(book.closes for book in check_books(admin, keys))
    threads = [threading.Thread(target=link.close) for link in links]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    learner.close()
