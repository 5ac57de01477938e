"""The learner's end against a real Redis: what is handed out, settled, redelivered, and lost by others."""

import logging
import threading
import time

import pytest
from redis_kit import WORKER, append, books, numbers, parcel, take, until

import soulsai.transport.redis.learner as module
from soulsai.errors import TransportError
from soulsai.transport.links import Progress
from soulsai.transport.redis.access import invite, revoke
from soulsai.transport.redis.entries import LARGEST_ENTRY, write_beat, write_entry
from soulsai.transport.redis.learner import GATE_S, LISTS, POLICY_S, STATE, WRITE
from soulsai.transport.redis.report import look_at


def test_what_was_sent_is_handed_out_once(alice, address, admin, keys, make_learner):
    learner = make_learner(address)
    append(admin, keys, *range(1, 31))
    began_s = time.time()
    found = take(learner, 30)
    assert numbers(found) == list(range(1, 31))
    assert (found[0].worker, found[0].rows, found[0].frame[:4]) == (WORKER, 10, b"SOUL")
    assert abs(found[0].sent_s - began_s) < 30
    assert learner.receive(0.05) == []
    learner.settle(found[:10], [(found[10], "stale")])
    account = learner.accounts()[0]
    assert (account.worker, account.stored, account.dropped) == (WORKER, 100, {"stale": 10})
    assert admin.llen(keys.experience("alice")) == 19
    assert books(admin, keys)[WORKER].measured == 190


def test_small_messages_of_one_name_come_all_at_once_and_large_ones_a_few_at_a_time(
    alice, address, admin, keys, make_learner, monkeypatch
):
    learner = make_learner(address)
    learner.receive(0.1)
    append(admin, keys, *range(1, 301))
    assert len(learner.receive(5.0)) == 300
    monkeypatch.setattr(module, "READ_BYTES", 3 * len(write_entry(parcel(301), 0.0, 0)))
    append(admin, keys, *range(301, 311))
    assert [len(learner.receive(5.0)) for _ in range(4)] == [3, 3, 3, 1]


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
    first.settle(found[:20])
    first.close()
    append(admin, keys, *range(41, 46))
    second = make_learner(address)
    again = take(second, 25)
    assert numbers(again) == list(range(21, 46))
    second.settle(again)
    assert second.accounts()[0].stored == 450
    assert books(admin, keys)[WORKER].measured == 0


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


def hear_nothing(learner, text, monkeypatch):
    """The script runs, and the answer is lost."""
    script = learner._scripts[text]

    def run(**arguments):
        script(**arguments)
        raise ConnectionResetError

    monkeypatch.setitem(learner._scripts, text, run)


@pytest.mark.parametrize("text", [LISTS, WRITE, STATE], ids=["read", "write", "state"])
def test_an_answer_that_was_lost_on_its_way(alice, address, admin, keys, make_learner, monkeypatch, text):
    learner = make_learner(address)
    append(admin, keys, 1, 2)
    found = take(learner, 2)
    append(admin, keys, 3, 4)
    with monkeypatch.context() as patch:
        hear_nothing(learner, text, patch)
        learner.gate(is_open=False)
        learner.settle(found)
        more = learner.receive(0.01)
    append(admin, keys, 5)
    assert numbers([*more, *take(learner, 3 - len(more))]) == [3, 4, 5]
    assert learner.receive(0.05) == []
    assert books(admin, keys)[WORKER].account.stored == 20
    assert books(admin, keys)[WORKER].measured == 30


def test_copies_are_counted_once(alice, address, admin, keys, make_learner):
    learner = make_learner(address)
    append(admin, keys, 1, 2)
    found = take(learner, 2)
    entry = admin.lindex(keys.experience("alice"), 0)
    admin.rpush(keys.experience("alice"), entry)
    assert learner.receive(0.1) == []
    assert books(admin, keys)[WORKER].measured == 20
    learner.settle([found[0]])
    admin.rpush(keys.experience("alice"), entry)
    assert learner.receive(0.1) == []
    assert books(admin, keys)[WORKER].measured == 10
    learner.settle([found[1]])
    assert books(admin, keys)[WORKER].account.stored == 20
    until(lambda: not learner.receive(0.05) and not admin.llen(keys.experience("alice")))


def test_a_lower_sequence_is_a_repeat_and_a_jump_earns_nothing(alice, address, admin, keys, make_learner):
    """Whatever a sender claims: credit is for rows that were received, once."""
    learner = make_learner(address)
    append(admin, keys, 1000)
    append(admin, keys, *range(1, 21), rows=1 << 24)
    learner.settle(take(learner, 1))
    assert learner.receive(0.1) == []
    account = books(admin, keys)[WORKER].account
    assert (account.sent, account.stored) == (10, 10)
    assert admin.llen(keys.experience("alice")) == 0


def test_what_a_checkpoint_holds_comes_to_be_counted_only(alice, address, admin, keys, make_learner):
    """The learner was killed between the checkpoint and the acknowledgement."""
    first = make_learner(address)
    append(admin, keys, 1, 2, 3)
    found = take(first, 3)
    first.mark_stored(found[:2])
    marks = first.marks()
    assert marks == {WORKER: 2}
    first.close()
    second = make_learner(address)
    second.restore(marks)
    again = take(second, 3)
    assert [message.is_held for message in again] == [True, True, False]  # to be counted, once they were opened
    second.settle(again[:2])
    account = books(admin, keys)[WORKER].account
    assert (account.stored, account.in_flight) == (20, 10)


def test_one_that_is_settled_before_an_earlier_one_waits_for_it(alice, address, admin, keys, make_learner):
    learner = make_learner(address)
    append(admin, keys, 1, 2, 3)
    found = take(learner, 3)
    learner.settle([found[2]], [(found[1], "stale")])
    assert books(admin, keys)[WORKER].measured == 30
    learner.settle([found[0]])
    account = books(admin, keys)[WORKER].account
    assert (account.stored, account.dropped, account.in_flight) == (20, {"stale": 10}, 0)


def test_an_older_learner_is_refused_in_one_sentence(alice, address, admin, keys, make_learner):
    """As with two learners from a copied folder."""
    first, second = make_learner(address), make_learner(address)
    append(admin, keys, 1, 2)
    found = take(first, 2)
    assert numbers(take(second, 2)) == [1, 2]
    for write in (
        lambda: first.settle(found),
        lambda: first.publish(1, b"one"),
        lambda: first.gate(is_open=False),
        lambda: first.receive(0.1),
    ):
        with pytest.raises(TransportError, match=r"another learner has taken over .* stop the other"):
            write()
    assert not admin.exists(keys.policy)
    assert books(admin, keys)[WORKER].measured == 20
    admin.flushall()
    assert second.receive(0.1) == []
    with pytest.raises(TransportError, match="another learner"):
        until(lambda: first.receive(0.1))


def test_a_flood_is_dropped_by_the_reader(alice, address, admin, keys, make_learner):
    """Workers keep to fleet.max_chunks by themselves; whoever does not keeps nobody waiting."""
    invite(admin, keys, "bob")
    learner = make_learner(address, max_chunks=100)
    append(admin, keys, *range(1, 3001), rows=1)
    append(admin, keys, 1, worker="bob.1.bbbbbb")
    found = take(learner, 1)
    learner.settle(found)

    def learn():
        more = learner.receive(0.05)
        learner.settle(more)
        found.extend(more)
        return not admin.llen(keys.experience("alice")) and not more

    until(learn)
    assert len([message for message in found if message.worker == WORKER]) < 300
    assert [message for message in found if message.worker != WORKER]
    account = books(admin, keys)[WORKER].account
    assert account.dropped["flood"] + account.stored == account.sent == 3000
    assert account.dropped["flood"] > 2500


def test_an_entry_beyond_all_limits_is_not_read(alice, address, admin, keys, make_learner):
    learner = make_learner(address)
    admin.rpush(keys.experience("alice"), bytes(LARGEST_ENTRY + 1))
    append(admin, keys, 1)
    assert numbers(take(learner, 1)) == [1]
    assert learner.receive(0.05) == []
    assert look_at(admin, keys)["unreadable"] == {"alice": 1}
    assert admin.llen(keys.experience("alice")) == 1


def test_lives_beyond_the_limit_share_an_account(alice, address, admin, keys, make_learner, monkeypatch):
    monkeypatch.setattr("soulsai.transport.redis.accounts.MOST_LIVES", 10)
    learner = make_learner(address)
    for life in range(30):
        append(admin, keys, 1, worker=f"alice.1.{life:06x}")
    learner.settle(take(learner, 30))
    append(admin, keys, *range(1, 6), worker="alice.2.aaaaaa")
    learner.settle(take(learner, 5))
    accounts = {account.worker: account for account in learner.accounts()}
    assert len(accounts) <= 31
    assert sum(account.stored for account in accounts.values()) == 350
    assert sum(book.account.stored for book in books(admin, keys).values()) == 350


def test_ending_is_quick_while_redis_does_not_answer(alice, address, admin, keys, make_learner, monkeypatch):
    """As with the first Ctrl-C of `souls serve`."""
    is_stopped = threading.Event()
    learner = make_learner(address, stop=is_stopped.is_set)
    append(admin, keys, 1)
    found = take(learner, 1)
    calls = []

    def does_not_answer(**_):
        calls.append(1)
        raise TimeoutError

    for text in learner._scripts:
        monkeypatch.setitem(learner._scripts, text, does_not_answer)
    learner.settle(found)
    is_stopped.set()
    began_s = time.monotonic()
    learner.settle(found)
    learner.publish(1, b"one")
    learner.gate(is_open=False)
    assert (learner.receive(60), learner.workers()) == ([], 0)
    learner.close()
    assert time.monotonic() - began_s < 30
    assert len(calls) == 1


def test_repeated_after_a_crash_between_storing_and_settling(alice, address, admin, keys, make_learner):
    """The new learner has it already and calls it repeated, but the books have never heard of it."""
    first = make_learner(address)
    append(admin, keys, 1)
    take(first, 1)
    first.close()
    second = make_learner(address)
    second.settle(take(second, 1))
    assert books(admin, keys)[WORKER].account.stored == 10


def test_names_that_are_invited_later(address, admin, keys, make_learner):
    learner = make_learner(address)
    assert learner.receive(0.1) == []
    invite(admin, keys, "bob")
    append(admin, keys, 1, worker="bob.1.bbbbbb")
    began_s = time.monotonic()
    assert numbers(take(learner, 1)) == [1]
    assert time.monotonic() - began_s < 30


def test_what_no_worker_writes_is_thrown_away(alice, address, admin, keys, make_learner, caplog):
    learner = make_learner(address)
    bad = [
        b"",
        b"hello",
        bytes(100),
        write_entry(parcel(1, worker="bob.1.bbbbbb"), 0.0, 10),
        write_entry(parcel(0), 0.0, 10),
        write_entry(parcel(1, rows=0), 0.0, 10),
        write_entry(parcel(1, rows=10**12), 0.0, 10),
        write_entry(parcel(1), 0.0, 10)[:80],
    ]
    with caplog.at_level(logging.WARNING):
        admin.rpush(keys.experience("alice"), *bad)
        append(admin, keys, 1)
        assert numbers(take(learner, 1)) == [1]
    assert len([record for record in caplog.records if "no worker writes" in record.message]) == 1
    assert look_at(admin, keys)["unreadable"] == {"alice": 8}
    assert admin.llen(keys.experience("alice")) == 1


def test_a_spoiled_list_does_not_hurt_others_and_is_made_good(alice, address, admin, keys, make_learner):
    invite(admin, keys, "bob")
    admin.hset(keys.experience("alice"), "a", "b")
    learner = make_learner(address)
    append(admin, keys, 1, worker="bob.1.bbbbbb")
    assert numbers(take(learner, 1)) == [1]
    append(admin, keys, 1)
    assert numbers(take(learner, 1)) == [1]
    assert len(books(admin, keys)) == 2


def test_a_name_is_usable_again_after_revoke_and_invite(alice, address, admin, keys, make_learner):
    learner = make_learner(address)
    append(admin, keys, 1)
    learner.settle(take(learner, 1))
    revoke(admin, keys, "alice")
    until(lambda: not learner.receive(0.05) and not admin.sismember(keys.revoked, "alice"))
    assert not list(admin.scan_iter(match=f"{keys.prefix}from:alice:*"))
    invite(admin, keys, "alice")
    append(admin, keys, 1, worker="alice.1.bbbbbb")
    learner.settle(take(learner, 1))
    assert books(admin, keys)["alice.1.bbbbbb"].account.stored == 10


@pytest.mark.parametrize("is_running", [True, False])
def test_leftovers_of_a_revoked_name(alice, address, admin, keys, make_learner, is_running):
    """They are gone at once, whether or not a learner is there; what it has read may still be stored."""
    said = []
    learner = make_learner(address, say=said.append)
    append(admin, keys, *range(1, 6))
    held = take(learner, 5)
    append(admin, keys, *range(6, 31))
    if not is_running:
        learner.close()
    revoke(admin, keys, "alice")
    assert admin.exists(keys.experience("alice"), keys.beats("alice"), keys.to("alice")) == 0
    if not is_running:
        learner = make_learner(address, say=said.append)
    until(lambda: not learner.receive(0.05) and any("not invited" in text for text in said))
    assert not any("came back" in text for text in said)
    learner.settle(held)
    assert admin.hkeys(keys.removed) == [b""]
    assert admin.smembers(keys.revoked) == set()
    if is_running:
        assert books(admin, keys)[WORKER].account.stored == 50
    assert look_at(admin, keys, check=True)["open"] == {}


def test_publishing(address, admin, keys, make_learner):
    learner = make_learner(address)
    learner.welcome(b"come in")
    learner.publish(3, b"three")
    learner.publish(4, b"four")
    learner.gate(is_open=False)
    learner.describe({"steps": 7})
    assert (admin.get(keys.welcome), admin.get(keys.policy), admin.get(keys.gate)) == (b"come in", b"four", b"closed")
    assert admin.get(keys.version) == b"4"
    assert 0 < admin.ttl(keys.policy) <= POLICY_S
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
    learner = make_learner(address, silent_after_s=60.0)
    links = [make_worker(alice, f"alice.{index}.aaaaaa") for index in range(3)]
    until(lambda: learner.workers() == 3)
    links[0].close()
    until(lambda: learner.workers() == 2)


def test_old_heartbeats_are_forgotten_and_accounts_are_not(alice, address, admin, keys, make_learner):
    append(admin, keys, 1)
    old = write_beat(Progress(), "playing", 0.0, {}, time_s=time.time() - 7200, pushed=10, dropped={"buffer_full": 5})
    admin.hset(keys.beats("alice"), WORKER, old)
    learner = make_learner(address)
    learner.settle(take(learner, 1))
    assert learner.workers() == 0
    until(lambda: not learner.receive(0.1) and not admin.exists(keys.beats("alice")))
    assert books(admin, keys)[WORKER].account.sent == 15
    assert learner.accounts()[0].dropped == {"buffer_full": 5}


def test_an_idle_learner_uses_no_processor(alice, address, make_learner):
    learner = make_learner(address)
    learner.receive(0.1)
    began_s = time.thread_time()
    learner.receive(2.0)
    assert time.thread_time() - began_s < 0.5
