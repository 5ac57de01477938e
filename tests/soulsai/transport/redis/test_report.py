"""What the operator sees: who is there, how they are doing, and books that nobody can spoil for others."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import msgspec
import pytest
from redis_kit import append, check_books, look, parcel, until

from soulsai.errors import TransportError
from soulsai.transport.links import Progress
from soulsai.transport.redis.access import invite
from soulsai.transport.redis.accounts import Counts
from soulsai.transport.redis.entries import (
    Command,
    read_beat,
    read_commands,
    write_beat,
    write_entry,
)
from soulsai.transport.redis.report import MOST_BEATS, look_at, refused_lines, stop_workers

WORKER = "alice.1.abcdef"
PLAYING = Progress("playing", policy=7, steps=100, steps_per_s=22.0, episodes=5, wins=2, fights=4, restarts=1)


def beat(admin, keys, worker=WORKER, *, ago_s=0.0, state="playing", still_s=0.0, progress=PLAYING, pushed=0,
         dropped=None, **about):  # fmt: skip
    seconds, microseconds = admin.time()
    told = write_beat(progress, state, still_s, about, time_s=seconds + microseconds / 1e6 - ago_s, pushed=pushed,
                      dropped=dropped)  # fmt: skip
    admin.sadd(keys.names, keys.name_of(worker))
    admin.hset(keys.beats(keys.name_of(worker)), worker, told)


@pytest.mark.parametrize(
    ("said", "ago_s", "still_s", "state"),
    [
        ("playing", 1, 0, "playing"),
        ("waiting", 1, 0, "waiting"),
        ("starting", 1, 0, "starting"),
        ("playing", 1, 65, "frozen"),
        ("starting", 1, 65, "frozen"),
        ("waiting", 1, 500, "waiting"),
        ("playing", 5, 56, "frozen"),
        ("playing", 11, 0, "silent"),
        ("playing", 11, 100, "silent"),
        ("left", 5000, 0, "left"),
        ("\x1b[2Jevil", 1, 0, "starting"),
    ],
)
def test_states(admin, keys, said, ago_s, still_s, state):
    began_s = time.monotonic()
    beat(admin, keys, ago_s=ago_s, state=said, still_s=still_s)
    (row,) = look(admin, keys)
    assert row["state"] == state
    assert -0.1 < row["seen_s"] - ago_s < time.monotonic() - began_s + 0.1


def test_who_has_sent_something_is_no_longer_starting(admin, keys):
    beat(admin, keys, state="starting", pushed=10)
    append(admin, keys, 1)
    assert look(admin, keys)[0]["state"] == "playing"


def test_limits_of_the_states(admin, keys):
    beat(admin, keys, ago_s=2, still_s=10)
    assert look(admin, keys, silent_after_s=1.0)[0]["state"] == "silent"
    assert look(admin, keys, hang_s=5.0)[0]["state"] == "frozen"


def test_a_worker_and_the_learner(admin, keys):
    beat(admin, keys, host="den", pushed=80, dropped={"buffer_full": 20})
    rates = msgspec.json.encode({WORKER: 12.5})
    admin.hset(keys.learner, mapping={"version": 9, "steps": 1000, "rates": rates, "most_rows": 20})
    admin.rpush(keys.experience("alice"), b"one", b"two")
    counts = {
        WORKER: Counts(7, 30, 35, {"stale": 5}, steps=120, episodes=3, fights=2, wins=1),
        "bob.1.bbbbbb": Counts(3, 0, 50),
        "alice.0.000000": Counts(unreadable=3),
    }
    admin.hset(keys.accounts, mapping={who: msgspec.json.encode(kept) for who, kept in counts.items()})
    report = look_at(admin, keys)
    row, other = report["workers"]
    shown = ("worker", "name", "host", "lag", "steps_per_s", "episodes", "wins", "fights", "restarts")
    assert [row[key] for key in shown] == [WORKER, "alice", "den", 2, 12.5, 3, 1, 2, 1]
    assert row["steps"] == 120  # what the learner has counted, whatever the heartbeat says
    assert (row["sent"], row["stored"], row["in_flight"]) == (95, 30, 40)  # no more than two messages can hold
    assert row["dropped"] == {"buffer_full": 20, "stale": 5}
    assert [other[key] for key in ("worker", "state", "seen_s", "lag")] == ["bob.1.bbbbbb", "silent", None, None]
    total = report["total"]
    assert (total["sent"], total["stored"], total["in_flight"]) == (95, 30, 40)
    assert (report["learner"]["steps"], report["unreadable"]) == ("1000", {"alice": 3})
    assert look_at(admin, keys, check=True)["open"] == {WORKER: {"expected": 45, "found": 0}}


def test_an_empty_run(admin, keys):
    report = look_at(admin, keys, check=True)
    assert (report["workers"], report["learner"], report["total"]["sent"], report["open"]) == ([], {}, 0, {})


def test_what_a_worker_may_write_does_not_spoil_the_view(admin, keys):
    """All of these are within the rights of a worker."""
    invite(admin, keys, "alice")
    beat(admin, keys)
    told = write_beat(PLAYING, "playing", 0, {}, pushed=1_000_000)
    admin.hset(keys.beats("alice"), mapping={
        "bob.1.bbbbbb": told, "\x1b[31m": told, "alice.2.aaaaaa": b"\xc1 not msgpack", "alice.3.aaaaaa": b"",
        "alice.4.aaaaaa": bytes(10_000_000), "x" * 100_000: told,
    })  # fmt: skip
    foreign = write_entry(parcel(1, worker="bob.1.bbbbbb"), 0.0, 5)
    admin.rpush(keys.experience("alice"), foreign, b"", b"x" * 100_000, b"SOUL" * 30)
    admin.rpush(f"{keys.prefix}from:alice:more", b"x")
    assert [row["worker"] for row in look(admin, keys)] == [WORKER]
    assert [(book.account.worker, book.measured) for book in check_books(admin, keys)] == [(WORKER, 0)]


def test_a_view_reads_no_more_workers_than_its_limit(admin, keys):
    invite(admin, keys, "alice")
    told = write_beat(PLAYING, "playing", 0, {})
    admin.hset(keys.beats("alice"), mapping={f"alice.1.{number:06x}": told for number in range(3 * MOST_BEATS)})
    assert len(look(admin, keys)) == MOST_BEATS


@pytest.mark.parametrize("key", ["beats", "experience"])
def test_keys_of_another_type_are_passed_over(admin, keys, key):
    invite(admin, keys, "alice")
    admin.set(getattr(keys, key)("alice"), "x")
    assert look_at(admin, keys, check=True)["workers"] == []


def test_a_report_is_json_whatever_a_worker_says(admin, keys):
    beat(admin, keys, progress=msgspec.structs.replace(PLAYING, steps_per_s=float("nan")), still_s=float("-inf"))
    report = look_at(admin, keys, check=True)
    assert json.loads(json.dumps(report, allow_nan=False))["workers"] == []


def test_what_was_refused_is_told_by_name():
    report = {"unreadable": {"ann": 2}, "refused": {"eve": {"forbidden": 1200, "of a later version": 1}}}
    assert refused_lines(report) == [
        "ann: 2 unreadable messages", "eve: 1,200 forbidden commands", "eve: 1 of a later version",
    ]  # fmt: skip


def test_texts_of_a_worker_cannot_command_a_terminal(admin, keys):
    beat(admin, keys, host="den\x1b]0;owned\x07\n\u202e")
    assert look(admin, keys)[0]["host"] == "den?]0;owned???"


@pytest.mark.parametrize(
    "values",
    [
        {"steps": -1},
        {"steps": "many"},
        {"state": "x" * 1000},
        {"about": {"a": 5}},
        {"steps_per_s": float("nan")},
        {"dropped": {"invented": 1}},
        {"about": {str(number): "" for number in range(99)}},
        [],
    ],
)
def test_bad_heartbeats(values):
    assert read_beat(msgspec.msgpack.encode(values)) is None


def test_long_texts_about_a_worker_are_cut():
    found = read_beat(write_beat(PLAYING, "playing", 0.0, {"x" * 500: "y" * 500, **{str(i): "" for i in range(50)}}))
    assert found is not None
    assert found.about["x" * 200] == "y" * 200


def test_stopping(admin, keys):
    stop_workers(admin, keys, WORKER)
    stop_workers(admin, keys, "alice")
    stop_workers(admin, keys, "*", ["alice", "bob"])
    commands = read_commands(admin.get(keys.to("alice")))
    assert [(command.worker, command.what) for command in commands] == [(WORKER, "stop"), ("*", "stop"), ("*", "stop")]
    assert abs(commands[0].time_s - time.time()) < 30
    assert [command.worker for command in read_commands(admin.get(keys.to("bob")))] == ["*"]
    with pytest.raises(TransportError, match="name of a worker"):
        stop_workers(admin, keys, "no such: name")
    for _ in range(100):
        stop_workers(admin, keys, "bob")
    assert len(read_commands(admin.get(keys.to("bob")))) == 64


def test_commands_that_cannot_be_read():
    assert read_commands(b"\xc1") == []
    assert read_commands(None) == []
    assert read_commands(msgspec.msgpack.encode([["*", "stop", 5.0]])) == [Command("*", "stop", 5.0)]


CHILD = """
import sys, time
from pathlib import Path
from soulsai.transport.links import Progress
from soulsai.transport.redis.address import Address
from soulsai.transport.redis.worker import RedisWorkerLink
address, worker = Address.parse(sys.argv[1]), sys.argv[2]
link = RedisWorkerLink(address, worker, max_chunks=10, buffer_bytes=1000, waits=True, beat_s=0.1).start()
steps = 0
while True:
    if not Path(sys.argv[3]).exists():
        steps += 1
    link.report(Progress("playing", steps=steps))
    time.sleep(0.02)
"""


@pytest.mark.faults
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="processes are stopped by signals of POSIX")
def test_a_stopped_process_and_one_that_hangs(admin, address, keys, tmp_path):
    alice = replace(address, user="alice", password=invite(admin, keys, "alice"))
    hang = tmp_path / "hang"
    child = subprocess.Popen([sys.executable, "-c", CHILD, alice.url(), WORKER, str(hang)])

    def is_now(state):
        rows = look(admin, keys, silent_after_s=1.5, hang_s=1.0)
        return rows and rows[0]["state"] == state

    try:
        until(lambda: is_now("playing"))
        os.kill(child.pid, signal.SIGSTOP)
        until(lambda: is_now("silent"))
        os.kill(child.pid, signal.SIGCONT)
        until(lambda: is_now("playing"))
        hang.touch()
        until(lambda: is_now("frozen"))
        hang.unlink()
        until(lambda: is_now("playing"))
    finally:
        child.kill()
        child.wait()
