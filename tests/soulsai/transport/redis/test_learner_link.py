"""The learner's end against a real Redis: what is handed out, settled, redelivered, and lost by others."""

import logging
import threading
import time

import pytest
from redis_kit import WORKER, append, books, numbers, take, until

from soulsai.transport.links import Parcel
from soulsai.transport.redis.access import invite, revoke
from soulsai.transport.redis.keys import GROUP
from soulsai.transport.redis.learner import GATE_S
from soulsai.transport.redis.ledger import check_books


def test_what_was_sent_is_handed_out_once(alice, address, admin, keys, make_learner):
    learner = make_learner(address)
    append(admin, keys, *range(1, 31))
    began_s = time.time()
    found = take(learner, 30)
    assert numbers(found) == list(range(1, 31))
    assert found[0].parcel == Parcel(WORKER, 1, 10, b"frame 1")
    assert abs(found[0].sent_s - began_s) < 30
    assert learner.receive(0.05) == []
    learner.settle(found[:10], [(found[10], "stale")])
    account = learner.accounts()[0]
    assert (account.worker, account.sent, account.stored, account.dropped) == (WORKER, 300, 100, {"stale": 10})
    assert account.in_flight == 190
    assert admin.xlen(keys.experience("alice")) == 19
    assert admin.xpending(keys.experience("alice"), GROUP)["pending"] == 19
    assert books(admin, keys)[WORKER].measured == 190


def test_settling_twice_counts_once(alice, address, admin, keys, make_learner):
    learner = make_learner(address)
    append(admin, keys, 1)
    found = take(learner, 1)
    learner.settle(found, [(found[0], "stale")])
    learner.settle(found)
    assert learner.accounts()[0].stored == 10
    assert learner.accounts()[0].dropped == {}


def test_receiving_waits_for_the_first(alice, address, admin, keys, make_learner):
    learner = make_learner(address)
    began_s = time.monotonic()
    assert learner.receive(0.3) == []
    assert 0.25 < time.monotonic() - began_s < 30
    timer = threading.Timer(0.2, lambda: append(admin, keys, 1))
    timer.start()
    began_s = time.monotonic()
    assert numbers(learner.receive(60)) == [1]
    assert time.monotonic() - began_s < 30
    timer.join()


def test_a_new_learner_gets_what_was_not_settled_first_and_in_order(alice, address, admin, keys, make_learner):
    first = make_learner(address)
    append(admin, keys, *range(1, 41))
    found = take(first, 40)
    first.settle(found[::2])
    first.close()
    append(admin, keys, *range(41, 46))
    second = make_learner(address)
    again = take(second, 25)
    assert numbers(again) == [*range(2, 41, 2), *range(41, 46)]
    second.settle(again)
    assert second.accounts()[0].stored == 450
    assert books(admin, keys)[WORKER].measured == 0


def test_more_pending_than_one_page(alice, address, admin, keys, make_learner, monkeypatch):
    monkeypatch.setattr("soulsai.transport.redis.learner.PENDING_PAGE", 7)
    first = make_learner(address)
    append(admin, keys, *range(1, 51))
    take(first, 50)
    first.close()
    assert numbers(take(make_learner(address), 50)) == list(range(1, 51))


def kill_connections(admin, user="admin"):
    own = admin.client_id()
    for client in admin.client_list():
        if client["user"] == user and int(client["id"]) != own:
            admin.client_kill_filter(_id=client["id"])


def test_after_a_lost_connection_nothing_comes_twice(alice, address, admin, keys, make_learner):
    learner = make_learner(address)
    append(admin, keys, *range(1, 21))
    found = take(learner, 20)
    learner.settle(found[:5])
    kill_connections(admin)
    append(admin, keys, *range(21, 25))
    assert numbers(take(learner, 4)) == [21, 22, 23, 24]
    assert learner.receive(0.2) == []


def test_an_answer_that_was_lost_on_its_way(alice, address, admin, keys, make_learner, monkeypatch):
    learner = make_learner(address)
    append(admin, keys, 1, 2)
    found = take(learner, 2)
    append(admin, keys, 3, 4)
    ask = learner._client.execute_command

    def ask_and_hear_nothing(*command):
        ask(*command)
        raise ConnectionResetError

    monkeypatch.setattr(learner._client, "execute_command", ask_and_hear_nothing)
    assert learner.receive(0.01) == []  # Redis has handed them out, and nobody got them.
    monkeypatch.undo()
    append(admin, keys, 5)
    assert numbers(take(learner, 3)) == [3, 4, 5]
    learner.settle(found)
    assert books(admin, keys)[WORKER].account.stored == 20


def test_copies_are_counted_once(alice, address, admin, keys, make_learner):
    learner = make_learner(address)
    append(admin, keys, 1, 2)
    found = take(learner, 2)
    entry = admin.xrange(keys.experience("alice"))[0][1]
    admin.xadd(keys.experience("alice"), entry)
    copy = take(learner, 1)
    assert books(admin, keys)[WORKER].measured == 20
    learner.settle([found[0]], [], copy)
    admin.xadd(keys.experience("alice"), entry)
    assert books(admin, keys)[WORKER].measured == 10
    learner.settle(take(learner, 1))  # Even where it is called stored.
    learner.settle([found[1]])
    assert books(admin, keys)[WORKER].account.stored == 20


def test_repeated_after_a_crash_between_storing_and_settling(alice, address, admin, keys, make_learner):
    """The new learner has it already and calls it repeated, but the books have never heard of it."""
    first = make_learner(address)
    append(admin, keys, 1)
    take(first, 1)
    first.close()
    second = make_learner(address)
    second.settle([], [], take(second, 1))
    assert books(admin, keys)[WORKER].account.stored == 10


def test_names_that_are_invited_later(address, admin, keys, make_learner):
    learner = make_learner(address)
    assert learner.receive(0.1) == []
    invite(admin, keys, "bob")
    append(admin, keys, 1, worker="bob.1.bbbbbb")
    began_s = time.monotonic()
    assert numbers(take(learner, 1)) == [1]
    assert time.monotonic() - began_s < 30
    admin.sadd(keys.names, "carol")  # Without a group.
    append(admin, keys, 1, worker="carol.1.cccccc")
    assert numbers(take(learner, 1)) == [1]


def test_what_no_worker_writes_is_thrown_away(alice, address, admin, keys, make_learner, caplog):
    learner = make_learner(address)
    good = {"w": WORKER, "q": 1, "r": 10, "f": b"x"}
    bad = [
        {"hello": "world"},
        {**good, "w": "bob.1.bbbbbb"},
        {**good, "q": "0"},
        {**good, "r": "-5"},
        {**good, "r": 10**12},
        {key: value for key, value in good.items() if key != "f"},
        {**good, "w": b"\xff\x00"},
    ]
    with caplog.at_level(logging.WARNING):
        for fields in bad:
            admin.xadd(keys.experience("alice"), fields)
        append(admin, keys, 1)
        assert numbers(take(learner, 1)) == [1]
    assert len([record for record in caplog.records if "no worker writes" in record.message]) == 1
    assert admin.hget(keys.accounts, "alice|malformed") == b"7"
    assert admin.xlen(keys.experience("alice")) == 1
    assert admin.xpending(keys.experience("alice"), GROUP)["pending"] == 1


def test_a_spoiled_stream_does_not_hurt_others(alice, address, admin, keys, make_learner):
    invite(admin, keys, "bob")
    admin.delete(keys.experience("alice"))
    admin.hset(keys.experience("alice"), "a", "b")
    said = []
    learner = make_learner(address, say=said.append)
    append(admin, keys, 1, worker="bob.1.bbbbbb")
    assert numbers(take(learner, 1)) == [1]
    assert any("spoiled" in text for text in said)
    admin.delete(keys.experience("bob"))
    admin.hset(keys.experience("bob"), "a", "b")
    admin.delete(keys.experience("alice"))
    append(admin, keys, 2)
    assert numbers(take(learner, 1)) == [2]
    assert check_books(admin, keys)


def test_pending_entries_that_were_deleted(alice, address, admin, keys, make_learner):
    first = make_learner(address)
    append(admin, keys, 1, 2, 3)
    take(first, 3)
    first.close()
    admin.xdel(keys.experience("alice"), admin.xrange(keys.experience("alice"))[1][0])
    assert numbers(take(make_learner(address), 2)) == [1, 3]
    assert admin.xpending(keys.experience("alice"), GROUP)["pending"] == 2


@pytest.mark.parametrize("is_running", [True, False])
def test_leftovers_of_a_revoked_name(alice, address, admin, keys, make_learner, is_running):
    said = []
    learner = make_learner(address, say=said.append)
    append(admin, keys, *range(1, 6))
    held = take(learner, 5)
    append(admin, keys, *range(6, 31))
    if not is_running:
        learner.close()
    revoke(admin, keys, "alice")
    time.sleep(1.1)  # Until then what it has sent may still be taken.
    if not is_running:
        learner = make_learner(address, say=said.append)
    until(lambda: not learner.receive(0.05) and any("not invited" in text for text in said))
    expected = 250 if is_running else 300
    assert books(admin, keys)[WORKER].account.dropped == {"revoked": expected}
    if is_running:
        learner.settle(held)
    assert books(admin, keys)[WORKER].measured == 0
    assert admin.xlen(keys.experience("alice")) == 0


def test_publishing(address, admin, keys, make_learner):
    learner = make_learner(address)
    learner.welcome(b"come in")
    learner.publish(3, b"three")
    learner.publish(4, b"four")
    learner.gate(is_open=False)
    learner.describe({"steps": 7})
    assert (admin.get(keys.welcome), admin.get(keys.policy), admin.get(keys.gate)) == (b"come in", b"four", b"closed")
    assert [fields for _, fields in admin.xrange(keys.versions)] == [{b"v": b"4"}]
    learner.gate(is_open=True)
    assert admin.get(keys.gate) == b"open"
    assert 0 < admin.ttl(keys.gate) <= GATE_S
    until(lambda: not learner.receive(0.1) and admin.hget(keys.learner, "steps") == b"7")
    shown = admin.hgetall(keys.learner)
    assert shown[b"version"] == b"4"
    assert abs(float(shown[b"seen"]) - time.time()) < 30


def test_the_gate_stays_open_only_while_the_learner_looks_after_it(address, admin, keys, make_learner):
    learner = make_learner(address)
    learner.gate(is_open=True)
    admin.expire(keys.gate, 1)
    until(lambda: not learner.receive(0.1) and admin.ttl(keys.gate) > 1)


def test_counting_workers(alice, address, make_learner, make_worker):
    learner = make_learner(address, silent_after_s=5.0)
    links = [make_worker(alice, f"alice.{index}.aaaaaa") for index in range(3)]
    until(lambda: learner.workers() == 3)
    links[0].close()
    until(lambda: learner.workers() == 2)


def test_old_heartbeats_are_forgotten_and_accounts_are_not(alice, address, admin, keys, make_learner):
    append(admin, keys, 1)
    admin.xadd(keys.beat(WORKER), {"b": b"\x80"}, id=f"{int((time.time() - 7200) * 1000)}-0")
    learner = make_learner(address)
    assert learner.workers() == 0
    until(lambda: not learner.receive(0.1) and not admin.exists(keys.beat(WORKER)))
    assert learner.accounts()[0].sent == 10


def test_an_idle_learner_uses_no_processor(alice, address, make_learner):
    learner = make_learner(address)
    learner.receive(0.1)
    began_s = time.thread_time()
    learner.receive(2.0)
    assert time.thread_time() - began_s < 0.5
