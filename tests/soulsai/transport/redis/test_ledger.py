"""What the operator sees: who is there, how they are doing, and books that nobody can spoil for others."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import msgspec
import pytest
from redis_kit import until

from soulsai.errors import TransportError
from soulsai.transport.links import Progress
from soulsai.transport.redis.access import invite
from soulsai.transport.redis.beats import Command, read_beat, read_commands, write_beat
from soulsai.transport.redis.ledger import check_books, look, stop_workers

WORKER = "alice.1.abcdef"
PLAYING = Progress("playing", policy=7, steps=100, steps_per_s=22.0, episodes=5, wins=2, fights=4, restarts=1)


def beat(admin, keys, worker=WORKER, *, ago_s=0.0, state="playing", still_s=0.0, progress=PLAYING, **about):
    seconds, microseconds = admin.time()
    entry = f"{int((seconds + microseconds / 1e6 - ago_s) * 1000)}-0"
    admin.delete(keys.beat(worker))
    admin.xadd(keys.beat(worker), {"b": write_beat(progress, state, still_s, about)}, id=entry, maxlen=1)


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
    row = look(admin, keys).workers[0]
    assert row.state == state
    assert -0.1 < row.age_s - ago_s < time.monotonic() - began_s + 0.1


def test_who_has_sent_something_is_no_longer_starting(admin, keys):
    beat(admin, keys, state="starting")
    admin.hset(keys.account(WORKER), "1", b'{"sent": 64}')
    assert look(admin, keys).workers[0].state == "playing"


def test_limits_of_the_states(admin, keys):
    beat(admin, keys, ago_s=2, still_s=10)
    assert look(admin, keys, silent_after_s=1.0).workers[0].state == "silent"
    assert look(admin, keys, hang_s=5.0).workers[0].state == "frozen"


def test_a_worker_and_the_learner(admin, keys):
    beat(admin, keys, host="den")
    admin.hset(keys.learner, mapping={"version": 9, "steps": 1000})
    admin.hset(keys.account(WORKER), "1", b'{"sent": 100, "dropped": {"buffer_full": 20}}')
    admin.hset(keys.account("bob.1.bbbbbb"), "1", b'{"sent": 50}')
    admin.hset(keys.accounts, mapping={f"{WORKER}|stored": 30, f"{WORKER}|dropped:stale": 5, "alice|malformed": 3})
    view = look(admin, keys)
    row, other = view.workers
    assert (row.id, row.name, row.host, row.lag, row.beat.steps_per_s) == (WORKER, "alice", "den", 2, 22.0)
    assert (row.beat.episodes, row.beat.wins, row.beat.fights, row.beat.restarts) == (5, 2, 4, 1)
    assert (row.account.sent, row.account.stored, row.account.in_flight) == (100, 30, 45)
    assert row.account.dropped == {"buffer_full": 20, "stale": 5}
    assert (other.id, other.state, other.age_s, other.lag) == ("bob.1.bbbbbb", "silent", float("inf"), 0)
    assert (view.total.sent, view.total.stored, view.total.in_flight) == (150, 30, 95)
    assert (view.learner["steps"], view.malformed) == ("1000", {"alice": 3})


def test_an_empty_run(admin, keys):
    view = look(admin, keys)
    assert (view.workers, view.learner, view.total.sent) == ([], {}, 0)
    assert check_books(admin, keys) == []


def test_what_a_worker_may_write_does_not_spoil_the_view(admin, keys):
    """All of these are within the rights of a worker."""
    invite(admin, keys, "alice")
    beat(admin, keys)
    prefix = f"{keys.prefix}from:alice:"
    admin.hset(f"{prefix}beat:alice.1.aaaaaa", "a", "b")
    admin.xadd(f"{prefix}account:alice.1.aaaaaa", {"a": "b"})
    admin.xadd(f"{prefix}beat:bob.1.bbbbbb", {"b": write_beat(PLAYING, "playing", 0, {})})
    admin.hset(f"{prefix}account:bob.1.bbbbbb", "1", b'{"sent": 1000000}')
    admin.hset(f"{prefix}account:\x1b[31m", "1", b'{"sent": 1}')
    admin.xadd(f"{prefix}beat:alice.2.aaaaaa", {"b": b"\xc1 not msgpack"})
    admin.xadd(f"{prefix}beat:alice.3.aaaaaa", {"x": b""})
    admin.xadd(keys.experience("alice"), {"w": "bob.1.bbbbbb", "q": 1, "r": 5, "f": b""})
    admin.xadd(keys.experience("alice"), {"w": "x" * 100_000, "q": 1, "r": 5, "f": b""})
    admin.xadd(f"{prefix}more:experience", {"w": WORKER, "q": 1, "r": 5, "f": b""})
    assert [row.id for row in look(admin, keys).workers] == [WORKER]
    assert [(book.account.worker, book.measured) for book in check_books(admin, keys)] == [(WORKER, 0)]


def test_texts_of_a_worker_cannot_command_a_terminal(admin, keys):
    beat(admin, keys, host="den\x1b]0;owned\x07\n\u202e")
    assert look(admin, keys).workers[0].host == "den?]0;owned???"


@pytest.mark.parametrize(
    "values",
    [
        {"steps": -1},
        {"steps": "many"},
        {"state": "x" * 1000},
        {"about": {"a": 5}},
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
link = RedisWorkerLink(address, worker, max_chunks=10, buffer_bytes=1000, waits=True, beat_s=0.1)
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
        rows = look(admin, keys, silent_after_s=1.5, hang_s=1.0).workers
        return rows and rows[0].state == state

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
