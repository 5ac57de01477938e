"""A member with valid credentials who means harm and speaks the raw protocol, against a learner that learns."""

import json
import threading
import time
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import pytest
from redis.exceptions import AuthenticationError, ConnectionError, NoPermissionError, RedisError
from redis_kit import until

import soulsai.transport.redis.learner as learner_module
import soulsai.transport.redis.report as report_module
from benchmarks import hostile
from benchmarks.hostile import Member
from soulsai.config import load_preset, with_settings
from soulsai.learning.limits import most_rows
from soulsai.learning.loop import build_fleet_loop
from soulsai.learning.sources import Start
from soulsai.runtime import serve
from soulsai.transport.chunks import unpack_chunk
from soulsai.transport.frames import BadFrame
from soulsai.transport.redis.access import invite, revoke
from soulsai.transport.redis.entries import HEAD
from soulsai.transport.redis.quota import Quota
from soulsai.transport.redis.report import look_at

CONFIG = with_settings(
    load_preset("cartpole-dqn"),
    ["run.threads=1", "run.device=cpu", "run.steps=100000", "fleet.chunk_rows=64", "q.warmup_steps=64", "q.batch=16",
     "q.burst=1", "network.hidden=[8]", "fleet.publish_every_s=0"],
)  # fmt: skip
EVE, BOB = "eve.1.eeeeee", "bob.1.bbbbbb"


SMALL = Quota(memory=4 << 20, waiting=200, workers=50, connections=20, messages_per_s=1000.0, locked_s=2.0)


@pytest.fixture
def siege(address, admin, keys, make_learner, monkeypatch):
    """A learner of CartPole that everybody can send to, and what it says."""
    said = []
    monkeypatch.setattr(learner_module, "LOOK_S", 0.2)
    monkeypatch.setattr(learner_module, "COUNT_S", 0.2)
    link = make_learner(address, most_rows=most_rows(CONFIG), max_chunks=300, quota=SMALL, say=said.append)
    loop = build_fleet_loop(CONFIG, link, Start(keys.run, 1), said.append)
    siege = SimpleNamespace(address=address, admin=admin, keys=keys, link=link, loop=loop, said=said)
    siege.bob, siege.eve = (
        Member(replace(address, user=name, password=invite(admin, keys, name)), loop.learner.schema, worker)
        for name, worker in (("bob", BOB), ("eve", EVE))
    )
    loop.begin()
    siege.report = lambda check=False: look_at(admin, keys, check=check)
    siege.of = lambda name: siege.report()["names"].get(name, {"stored": 0, "steps": 0, "episodes": 0, "share": 0.0})

    def settle():
        """Let the learner take everything in, and hold it in a checkpoint."""
        metrics = {}
        until(lambda: metrics.update(loop.iterate()) or not any(
            admin.llen(keys.experience(name)) > len(inbox.read) for name, inbox in link._inboxes.items()))  # fmt: skip
        loop.source.start_saving()()
        return metrics

    siege.settle = settle
    return siege


def test_steps_are_tied_to_rows(siege):
    hostile.too_many_steps(siege.eve)
    siege.bob.send()
    siege.settle()
    assert siege.loop.counters.steps == 1 + 8
    assert siege.of("eve")["steps"] == 1
    assert {a.worker: a.dropped for a in siege.link.accounts()}[EVE] == {"invalid": 1}


def test_a_sequence_far_ahead_earns_nothing(siege):
    hostile.leaping_sequences(siege.eve)
    for _ in range(5):
        siege.bob.send()
    siege.settle()
    assert (siege.of("eve")["stored"], siege.of("bob")["stored"]) == (8, 40)
    assert siege.report()["unreadable"] == {"eve": 1}
    siege.eve.send(sequence=1001)  # the name is not lost for it
    siege.settle()
    assert siege.of("eve")["stored"] == 16


def test_rows_are_what_was_opened(siege):
    """A message that claims more rows than any of this run can hold is none."""
    hostile.too_many_rows(siege.eve, most_rows(CONFIG))
    siege.bob.send()
    siege.settle()
    total = siege.report()["total"]
    assert (total["stored"], total["sent"]) == (16, 24)  # one sequence number was left out: as much can be lost
    assert siege.of("eve")["share"] == 0.5


def test_episodes_and_returns_that_cannot_be(siege):
    hostile.impossible_episodes(siege.eve)
    siege.bob.send(siege.bob.chunk(8, episodes=1))
    siege.settle()
    assert siege.loop.episodes.metrics()["episodes"] == 1
    assert siege.loop.episodes.metrics()["return/training"] == 20.0
    assert {a.worker: a.dropped for a in siege.link.accounts()}[EVE] == {"invalid": 24}


def test_what_becomes_much_is_refused_before_it_is_unpacked(siege):
    began_s = time.process_time()
    hostile.bombs(siege.eve, 4)
    made_s = time.process_time() - began_s
    frame = siege.admin.lindex(siege.keys.experience("eve"), -1)[HEAD.size :]
    for _ in range(3):
        siege.bob.send()
    siege.settle()
    assert siege.of("bob")["stored"] == 24
    assert {a.worker: a.dropped for a in siege.link.accounts()}[EVE] == {"invalid": 32}
    began_s = time.process_time()
    for _ in range(40):
        with pytest.raises(BadFrame, match="not the arrays"):
            unpack_chunk(frame, siege.loop.learner.schema, run=siege.keys.run)
    assert time.process_time() - began_s < made_s  # to unpack one takes longer than to make it


def test_how_old_a_chunk_is_nobody_can_make_up(siege):
    siege.settle()
    hostile.false_clocks(siege.eve)
    siege.bob.send()
    siege.settle()
    siege.loop.source._looked_s = 0.0
    metrics = siege.loop.source.metrics(siege.loop.counters)
    assert 0.0 <= metrics["fleet/oldest_s"] < 60.0
    assert (siege.of("eve")["stored"], siege.of("bob")["stored"]) == (40, 8)


def test_heartbeats_invent_neither_metrics_nor_rates(siege):
    siege.eve.beat(steps=10**14, steps_per_s=1e300, episodes=10**14, wins=10**14, dropped={"buffer_full": 10**14})
    siege.bob.send()
    siege.settle()
    siege.loop.source._looked_s = 0.0
    metrics = siege.loop.source.metrics(siege.loop.counters)
    assert metrics["fleet/dropped/buffer_full"] <= 100_000
    (row,) = [row for row in siege.report()["workers"] if row["worker"] == EVE]
    assert [row[key] for key in ("steps", "steps_per_s", "episodes", "wins", "win_rate")] == [0, 0.0, 0, 0, None]
    json.dumps(siege.report(), allow_nan=False)


def test_an_account_that_was_never_written_does_not_stay_open(siege):
    siege.eve.beat(EVE, pushed=10**9)
    siege.bob.send()
    siege.settle()
    found = siege.report(check=True)
    assert list(found["open"]) == [EVE]
    assert found["total"]["sent"] == 8  # nobody else's books are wrong for it
    revoke(siege.admin, siege.keys, "eve")
    until(lambda: siege.loop.iterate() is not None and not siege.report(check=True)["open"])


def test_the_steps_a_second_are_those_that_came(siege):
    for _ in range(3):
        siege.bob.beat(BOB, steps_per_s=1e12)
        siege.bob.send()
        siege.settle()
    siege.loop.source._reported_s = 0.0
    siege.loop.iterate()
    siege.link._next_refresh_s = 0.0
    siege.loop.iterate()
    (row,) = [row for row in siege.report()["workers"] if row["worker"] == BOB]
    assert 0.0 < row["steps_per_s"] < 1e6


@pytest.mark.parametrize("size", [3e38, 1e9, 1e7])
@pytest.mark.parametrize("column", ["observations", "next_observations", "rewards"])
def test_numbers_that_would_break_every_weight(siege, column, size):
    before = len(siege.loop.learner.store)
    hostile.impossible_numbers(siege.eve, column, size)
    for _ in range(8):
        siege.bob.send()
    siege.settle()
    while siege.loop.learner.is_due:
        siege.loop.iterate()
    assert siege.loop.counters.updates > 0
    assert siege.loop.learner.is_finite()
    assert len(siege.loop.learner.store) - before == 64
    assert {a.worker: a.dropped for a in siege.link.accounts()}[EVE] == {"invalid": 24}
    assert "eve.1.eeeeee" in siege.said[0]


@pytest.mark.parametrize(
    "attack",
    [hostile.fill_memory, hostile.fill_heartbeats, hostile.many_heartbeats, hostile.many_messages,
     hostile.many_connections],
)  # fmt: skip
def test_who_takes_too_much_is_locked_out_for_a_while(siege, attack):
    """The others are not held up, it is counted, and afterwards the name can begin again."""
    siege.settle()
    attack(siege.eve)
    siege.link._next_look_s = siege.link._next_count_s = 0.0  # before it is read: else that is how it goes
    siege.link.workers()
    assert any("eve has" in line and "is locked out for 2 s" in line for line in siege.said)
    for _ in range(3):
        siege.bob.send()
    siege.settle()
    assert siege.of("bob")["stored"] == 8 * siege.bob.sequence
    assert not siege.admin.exists(siege.keys.experience("eve"), siege.keys.beats("eve"))
    assert not [client for client in siege.admin.client_list() if client["user"] == "eve"]
    with pytest.raises((NoPermissionError, ConnectionError)):
        siege.eve.client.ping()
    if attack in (hostile.fill_memory, hostile.many_messages):
        assert siege.report()["refused"]["eve"]["quota"] >= 1

    def is_in_again():
        siege.loop.iterate()
        try:
            return siege.eve.client.ping()
        except (NoPermissionError, ConnectionError):
            return False

    until(is_in_again)
    siege.eve.send()
    siege.settle()
    assert siege.of("eve")["stored"] == 8


def test_keys_of_another_type_are_put_right(siege):
    hostile.wrong_types(siege.eve)
    until(lambda: siege.loop.iterate() is None or siege.admin.exists(siege.keys.beats("eve")) == 0)
    siege.eve.send()
    siege.eve.beat(EVE)
    siege.settle()
    assert siege.of("eve")["stored"] == 8


def test_how_the_fleet_was_is_kept_for_a_learner_that_dies(siege, tmp_path, monkeypatch):
    monkeypatch.setattr(serve, "KEEP_S", 0.0)
    siege.link._on_look = serve._LastReport(SimpleNamespace(folder=tmp_path))
    siege.bob.beat(BOB)
    siege.bob.send()
    siege.settle()
    siege.link._next_look_s = 0.0
    siege.link.workers()
    kept = report_module.last(tmp_path)
    assert [(row["worker"], row["stored"]) for row in kept["workers"]] == [(BOB, 8)]


def test_heartbeats_of_tomorrow_are_none(siege):
    hostile.heartbeats_of_tomorrow(siege.eve)
    siege.settle()
    assert siege.link.workers() == 0
    assert siege.report()["workers"] == []
    siege.settle()
    assert siege.report()["refused"] == {"eve": {"heartbeat": 40}}  # each of them once
    assert not siege.admin.exists(siege.keys.beats("eve"))


@pytest.mark.parametrize(("field", "value"), [("x" * 100, b""), (EVE, bytes(5000)), ("nobody", b"x"), (BOB, b"x")])
def test_what_is_no_heartbeat_is_removed_and_counted(siege, field, value):
    siege.eve.client.hset(siege.keys.beats("eve"), field, value)
    until(lambda: siege.loop.iterate() is None or siege.report()["refused"].get("eve") == {"heartbeat": 1})
    assert not siege.admin.exists(siege.keys.beats("eve"))


def test_forbidden_commands_are_counted_once_each(siege):
    """Whoever is connected may try to log in as anybody: it is counted where it comes from."""

    def look():
        siege.link._next_refresh_s = 0.0
        siege.loop.iterate()
        siege.loop.source.start_saving()()
        return siege.report()["refused"]

    assert look() == {}
    for _ in range(3):
        with pytest.raises(NoPermissionError):
            siege.eve.client.flushall()
    assert look() == {"eve": {"forbidden": 3}}
    assert look() == {"eve": {"forbidden": 3}}
    for _ in range(2):
        with pytest.raises(NoPermissionError):
            siege.eve.client.flushall()
    with pytest.raises(AuthenticationError):
        siege.eve.client.execute_command("AUTH", "bob", "guessed")
    assert look() == {"eve": {"forbidden": 6}}
    siege.admin.acl_log_reset()
    with pytest.raises(NoPermissionError):
        siege.eve.client.flushall()
    assert look() == {"eve": {"forbidden": 7}}


def test_who_is_locked_out_is_not_counted_for_trying_again(siege):
    siege.settle()
    siege.link._lock_out("eve", "has too much")
    tries = 0
    while siege.link._locked:
        with suppress(NoPermissionError, ConnectionError):
            tries += 1
            siege.eve.client.ping()
        siege.loop.iterate()
    siege.eve.client.ping()
    siege.settle()
    assert tries > 1
    assert "forbidden" not in siege.report()["refused"]["eve"]


def test_commands_so_large_that_nothing_else_has_room(siege):
    """Redis remembers what it has denied in its memory, beyond all limits: it has to forget, full as it is."""
    siege.settle()
    hostile.large_commands(siege.eve, size=40 << 20)
    assert siege.admin.info("memory")["used_memory"] > 256 << 20
    until(lambda: siege.loop.iterate() is None or siege.admin.info("memory")["used_memory"] < 64 << 20)
    siege.bob.send()
    siege.settle()
    assert siege.of("bob")["stored"] == 8
    assert any("eve sent forbidden commands" in line and "is locked out" in line for line in siege.said)


def test_a_connection_has_no_name_that_takes_up_memory(siege):
    for words in (("CLIENT", "SETNAME", "x"), ("HELLO", "2", "SETNAME", "x")):
        assert hostile.refused(siege.eve.client, words) is True


def test_a_flood_of_small_chunks_delays_nobody(siege, monkeypatch):
    """Thousands of chunks of one row; a policy is published all the while, and the end comes at once."""
    hostile.small_chunks(siege.eve)
    turns = 0
    while siege.of("bob")["stored"] < 80:
        turns += 1
        assert turns < 60
        siege.bob.send()
        siege.loop.iterate()
        siege.loop.source.start_saving()()
    assert siege.loop.source._number > 3
    until(lambda: siege.loop.iterate() is None or flood_is_counted(siege))


TURN_S, TURNS = 0.05, 24
SOON_S = 30.0
"""On a busy machine, with the attacker in a thread of the same process; rates are for benchmarks/siege.py."""


def test_messages_that_are_never_finished_take_no_memory_from_others(siege, server):
    """All clients together have a part of the server's memory, and the learner is never hung up on."""
    if int(siege.admin.info("server")["redis_version"].partition(".")[0]) < 7:
        pytest.skip("before Redis 7 a server does not limit them; the learner locks such names out")
    with suppress(RedisError, OSError):
        hostile.unfinished_messages(siege.eve, 30)
    assert siege.admin.info("memory")["mem_clients_normal"] <= 64 << 20
    siege.bob.send()
    siege.settle()
    assert siege.of("bob")["stored"] == 8
    (learner,) = [one for one in siege.admin.client_list() if one["name"] == "souls-learner"]
    assert "e" in learner["flags"]  # no-evict


def test_a_flood_at_the_end_does_not_put_it_off(siege, monkeypatch):
    monkeypatch.setattr(serve, "LEAVE_S", 1.0)
    is_over, rounds = threading.Event(), []

    def go():
        while not is_over.wait(0.005):
            with suppress(RedisError, OSError):
                siege.eve.beat()
                hostile.small_chunks(siege.eve, 100)
            rounds.append(time.monotonic())

    attacker = threading.Thread(target=go)
    attacker.start()
    try:
        until(lambda: len(rounds) > 3)
        siege.loop.iterate()
        serve._let_go(siege.address, siege.said.append)
        ended_s = time.monotonic()
        until(lambda: rounds[-1] > ended_s)  # it goes on
    finally:
        is_over.set()
        attacker.join(60.0)


COUNTED = (
    hostile.too_many_steps, hostile.leaping_sequences, hostile.too_many_rows, hostile.impossible_episodes,
    hostile.no_numbers, hostile.damaged_frames, hostile.bombs, hostile.many_heartbeats, hostile.fill_heartbeats,
    hostile.fill_memory, hostile.unfinished_messages, hostile.many_messages, hostile.small_chunks,
    hostile.many_connections, hostile.large_commands,
)  # fmt: skip
REFUSED = {
    hostile.false_clocks: "clock",
    hostile.false_heartbeat: "heartbeat",
    hostile.heartbeats_of_tomorrow: "heartbeat",
    hostile.wrong_types: "type",
    hostile.forbidden_commands: "forbidden",
}
"""Attacks that take nobody's room, and what is counted of each."""


@pytest.mark.parametrize("attack", [*COUNTED, *REFUSED])
def test_whatever_a_member_does(siege, attack):
    """Over and over: all of an honest one's rows come in meanwhile, it is counted, and revoking it leaves nothing."""
    is_over = threading.Event()

    def go():
        while not is_over.wait(0.02):
            with suppress(RedisError, OSError):
                attack(siege.eve)

    def play():
        for turn in range(TURNS):
            time.sleep(max(0.0, began_s + turn * TURN_S - time.monotonic()))
            siege.bob.send()

    attacker, player = threading.Thread(target=go), threading.Thread(target=play)
    began_s = time.monotonic()
    attacker.start()
    player.start()
    try:
        until(lambda: siege.loop.iterate() is not None and are_in(siege), SOON_S)
        until(lambda: siege.loop.iterate() is not None and is_counted(siege, REFUSED.get(attack, "")))
        revoke(siege.admin, siege.keys, "eve")
        until(lambda: siege.loop.iterate() is not None and not hostile.left_of(siege.admin, siege.keys, "eve"), 5.0)
    finally:
        is_over.set()
        attacker.join(60.0)
    siege.bob.send()
    siege.settle()
    assert siege.of("bob")["stored"] == 8 * siege.bob.sequence
    assert siege.loop.learner.is_finite()
    assert not siege.report(check=True)["open"]
    assert not siege.report()["refused"].keys() - {"eve"}


def are_in(siege):
    siege.loop.source.start_saving()()
    return siege.of("bob")["stored"] == 8 * TURNS


def is_counted(siege, reason):
    report = siege.report()
    if reason:
        return reason in report["refused"].get("eve", {})
    dropped = {account.worker: account.dropped for account in siege.link.accounts()}.get(EVE, {})
    return dropped or report["unreadable"].get("eve") or "quota" in report["refused"].get("eve", {})


def flood_is_counted(siege):
    dropped = {account.worker: account.dropped for account in siege.link.accounts()}.get(EVE, {})
    return "flood" in dropped or "eve" in siege.report()["refused"]
