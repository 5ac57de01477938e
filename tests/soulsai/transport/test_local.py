"""Pipes that are full, cut, frozen and full of rubbish; and books that close all the same."""

import multiprocessing
import os
import random
import signal
import struct
import sys
import threading
import time
from pathlib import Path

import pytest

from soulsai.processes.supervisor import Pauses, Supervisor, function
from soulsai.transport import local
from soulsai.transport.links import Account, Message
from soulsai.transport.local import AHEAD, LocalLearnerLink, LocalWorkerLink
from soulsgym.errors import MisuseError

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="signals and file descriptors are for POSIX")


def eventually(check, limit_s=60.0):
    deadline_s = time.monotonic() + limit_s
    while not (found := check()):
        assert time.monotonic() < deadline_s, f"not within {limit_s} s"
        time.sleep(0.005)
    return found


def take(learner, count, limit_s=60.0):
    """At least so many parcels."""
    deliveries = []
    deadline_s = time.monotonic() + limit_s
    while len(deliveries) < count:
        assert time.monotonic() < deadline_s, f"{len(deliveries)} of {count} parcels came"
        deliveries += learner.receive(0.2)
    return deliveries


def in_thread(call):
    """Call it in a thread; its result is in the list once the thread has ended."""
    result = []
    thread = threading.Thread(target=lambda: result.append(call()), daemon=True)
    thread.start()
    return thread, result


@pytest.fixture
def learner():
    news = []
    link = LocalLearnerLink(say=news.append)
    link.news = news
    yield link
    link.close()


@pytest.fixture
def join(learner):
    """A function that lets a worker join, in this process."""
    links = []

    def make(name="a.1.000001"):
        links.append(LocalWorkerLink(learner.add(name), name, run="run"))
        return links[-1]

    yield make
    for link in links:
        link.close()


@pytest.fixture
def raw(learner):
    """A function that gives the bare end of a pipe: a worker that does only what the test does."""
    connections = []

    def make(name="raw"):
        connections.append(learner.add(name))
        return connections[-1]

    yield make
    for connection in connections:
        connection.close()


def parcel(link, sequence, rows=3, frame=b"frame"):
    return Message(link.worker, sequence, rows, frame)


def head(sequence=1, rows=1):
    return local.CHUNK_HEAD.pack(sequence, rows, 0.0)


def account(learner, worker):
    return next(account for account in learner.accounts() if account.worker == worker)


def test_parcels_come_whole_and_in_order(learner, join):
    ends = [join(f"w{number}") for number in range(3)]
    big = bytes(range(256)) * 8192
    before_s = time.time()

    def send_all(link):
        return [link.send(parcel(link, sequence, rows=sequence, frame=big + link.worker.encode() + bytes([sequence])))
                for sequence in range(1, 11)]  # fmt: skip

    threads = [in_thread(lambda link=link: send_all(link)) for link in ends]
    deliveries = take(learner, 30)
    for thread, result in threads:
        thread.join(60.0)
        assert result == [[True] * 10]
    for link in ends:
        mine = [delivery for delivery in deliveries if delivery.worker == link.worker]
        assert [parcel.sequence for parcel in mine] == list(range(1, 11))
        assert [parcel.rows for parcel in mine] == list(range(1, 11))
        assert all(got.frame == big + link.worker.encode() + bytes([got.sequence]) for got in mine)
    assert all(before_s <= delivery.sent_s <= time.time() for delivery in deliveries)
    assert learner.accounts() == [Account(f"w{number}", sent=55) for number in range(3)]


def test_books(learner, join):
    link = join("w")
    for sequence, rows in ((1, 10), (2, 20), (3, 30), (4, 40)):
        assert link.send(parcel(link, sequence, rows))
        learner_has = take(learner, 1)
        if sequence == 1:
            deliveries = []
        deliveries += learner_has
    link.send(parcel(link, 4, 40))  # A repeat is counted nowhere.
    assert account(learner, "w").in_flight == 100
    one, two, three, four = deliveries
    learner.settle([one], [(two, "stale"), (three, "invalid")])
    assert learner.accounts() == [Account("w", 100, 10, {"stale": 20, "invalid": 30})]
    assert account(learner, "w").in_flight == 40
    learner.settle([], [(four, "stale")])
    assert learner.accounts() == [Account("w", 100, 10, {"stale": 60, "invalid": 30})]
    assert account(learner, "w").in_flight == 0


def test_settling_twice_counts_once(learner, join):
    link = join("w")
    link.send(parcel(link, 1, 5))
    link.send(parcel(link, 2, 6))
    one, two = take(learner, 2)
    learner.settle([one, one], [(one, "stale")])
    learner.settle([one])
    assert learner.accounts() == [Account("w", 11, 5)]
    learner.settle([], [(two, "stale"), (two, "invalid")])
    assert learner.accounts() == [Account("w", 11, 5, {"stale": 6})]


def test_receive_waits_for_the_first_only(learner, join):
    link = join()
    began_s = time.monotonic()
    assert learner.receive(0.2) == []
    assert 0.2 <= time.monotonic() - began_s < 30.0
    thread, result = in_thread(lambda: learner.receive(60.0))
    time.sleep(0.05)
    link.send(parcel(link, 1))
    thread.join(30.0)
    assert not thread.is_alive()
    assert len(result[0]) == 1
    assert learner.receive(0.0) == []


def test_policy_is_the_newest_only(learner, join):
    learner.publish(1, b"one")
    link = join("early")
    assert eventually(link.newest) == b"one", "whoever joins gets what there is"
    assert link.newest() is None
    for version in range(2, 50):
        learner.publish(version, str(version).encode())
    got = [eventually(link.newest)]
    while got[-1] != b"49":
        got.append(eventually(link.newest))
    assert got == sorted(got, key=int), "never an older one"
    assert eventually(join("late").newest) == b"49"


def test_the_first_policy_is_told():
    told = []
    learner = LocalLearnerLink(on_first_policy=lambda: told.append(1))
    assert not told
    learner.publish(1, b"one")
    learner.publish(2, b"two")
    assert told == [1]
    learner.close()


@pytest.mark.faults
def test_one_that_does_not_read_holds_nobody_up(learner, join, raw):
    frozen, link = raw(), join("awake")
    frozen.send_bytes(b"?")
    big = bytes(4 << 20)
    for version in range(1, 21):
        learner.publish(version, big + str(version).encode())
    while (eventually(link.newest))[len(big) :] != b"20":
        pass
    assert link.send(parcel(link, 1))
    assert len(take(learner, 1)) == 1


@pytest.mark.faults
@posix_only
def test_one_frozen_in_the_middle_of_a_message_holds_nobody_up(learner, join, raw):
    frozen, link = raw(), join("awake")
    os.write(frozen.fileno(), struct.pack("!i", 5000) + head(rows=77) + b"half of")
    for sequence in range(1, 20):
        assert link.send(parcel(link, sequence))
        assert len(take(learner, 1)) == 1
    assert account(learner, "raw").sent == 0
    frozen.close()
    eventually(lambda: learner.news == ["worker raw is gone without a goodbye"])
    assert learner.receive(0.0) == []
    assert account(learner, "raw") == Account("raw"), "what was not sent completely never was"


def test_gate(learner, join):
    learner.gate(is_open=False)
    link = join("w")
    assert link.send(parcel(link, 1))
    thread, result = in_thread(lambda: link.send(parcel(link, 2)))
    assert len(take(learner, 1)) == 1
    assert learner.receive(0.5) == []
    assert (result, link.is_waiting, learner.workers()) == ([], True, 1)
    learner.gate(is_open=True)
    assert len(take(learner, 1)) == 1
    thread.join(60.0)
    assert result == [True]
    learner.gate(is_open=False)
    assert link.send(parcel(link, 3))
    thread, result = in_thread(lambda: link.send(parcel(link, 4)))
    time.sleep(0.05)
    link.stop()
    thread.join(60.0)
    assert result == [False]
    assert link.ended == "stopped"
    eventually(lambda: account(learner, "w").sent == 9)


def flood(link):
    """Send as much as goes, in a thread; how much that was, once the link is told to stop."""
    sent = []

    def send():
        while link.send(parcel(link, len(sent) + 1, rows=1, frame=bytes(1 << 20))):
            sent.append(1)

    return in_thread(send)[0], sent


def test_a_learner_that_takes_nothing_makes_workers_wait(learner, join):
    link = join("w")
    thread, sent = flood(link)
    eventually(lambda: account(learner, "w").sent == AHEAD)
    time.sleep(0.5)
    assert len(sent) == AHEAD, "more would fill the learner's memory"
    assert learner.workers() == 1
    taken = take(learner, 20)
    assert [delivery.sequence for delivery in taken] == list(range(1, len(taken) + 1))
    learner.stop_workers()
    thread.join(60.0)
    assert link.ended == "stopped", "a stop ends the wait"
    link.close()
    taken += take(learner, account(learner, "w").sent - len(taken))
    learner.settle(taken)
    assert account(learner, "w").in_flight == 0
    eventually(lambda: learner.workers() == 0)


@pytest.mark.parametrize("how", ["close", "kill"])
def test_one_that_leaves_while_it_waits_is_seen(learner, join, raw, how):
    learner.gate(is_open=False)
    if how == "close":
        link = join("w")
        assert link.send(parcel(link, 1))
        eventually(lambda: learner.workers() == 1)
        link.close()
    else:
        pipe = raw("w")
        pipe.send_bytes(head() + b"frame")
        eventually(lambda: learner.workers() == 1)
        pipe.close()
    eventually(lambda: learner.workers() == 0)
    eventually(lambda: learner.news == ([] if how == "close" else ["worker w is gone without a goodbye"]))
    assert len(learner.receive(0.0)) == 1, "what came stays"


def test_names_are_used_once(learner, join):
    join("w").close()
    with pytest.raises(MisuseError, match="a name of its own"):
        learner.add("w")
    with pytest.raises(MisuseError, match="cannot be sent by x"):
        join("x").send(Message("someone else", 1, 1, b"frame"))


def test_close_leaves_no_thread_of_those_that_have_ended():
    threads = set(threading.enumerate())
    learner = LocalLearnerLink(say=pytest.fail)
    learner.publish(1, bytes(8 << 20))
    ends = [LocalWorkerLink(learner.add(f"w{number}"), f"w{number}", run="run") for number in range(3)]
    flooding, _ = flood(ends[0])
    learner.stop_workers()
    flooding.join(60.0)
    for link in ends:
        link.close()
    learner.close()
    eventually(lambda: set(threading.enumerate()) <= threads)


def test_end_of_the_learner_ends_the_worker():
    ours, theirs = multiprocessing.Pipe()
    link = LocalWorkerLink(theirs, "w", run="run")
    assert link.newest() is None
    ours.close()  # as the system does for a process that was killed
    assert link.send(parcel(link, 1)) is False
    assert link.ended == "gone"
    assert link.newest() is None
    link.close()


# ---- real processes


@pytest.fixture
def children(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    import local_children

    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)  # children need not load pytest
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    return local_children


@pytest.fixture
def supervise(learner, children):
    started = []

    def make(count, size, pause_s):
        lives = iter(range(1, 1000))

        def arguments(index):
            name = supervisor.names[index] = f"local.{index}.{next(lives):06x}"
            return learner.add(name), name, size, pause_s

        news = []
        supervisor = Supervisor(
            function(children.play, arguments), count, hang_s=120.0, say=news.append, pauses=Pauses(0.02, 0.05)
        )
        supervisor.names = {}
        started.append(supervisor)
        supervisor.start()
        return supervisor

    yield make
    for supervisor in started:
        supervisor.stop(0.0)


def check_parcels(children, deliveries, size):
    """No life's parcels have a gap, a repetition or a wrong byte."""
    last = {}
    for delivery in deliveries:
        got = delivery
        assert got.sequence == last.get(got.worker, 0) + 1
        assert got.rows == children.rows_of(got.sequence)
        assert got.frame[:-8] == children.frame_of(got.worker, got.sequence, size)
        last[got.worker] = got.sequence
    return last


@pytest.mark.faults
@pytest.mark.slow
@posix_only
def test_books_close_whoever_is_killed(learner, supervise, children):
    size, chance = 300_000, random.Random(1)
    supervisor = supervise(4, size, pause_s=0.002)
    deliveries, kept, dropped = [], {}, {}
    killed, deadline_s = set(), time.monotonic() + 180.0
    while len(killed) < 6 or len(deliveries) < 300:
        assert time.monotonic() < deadline_s
        got = learner.receive(0.05)
        deliveries += got
        bad = [delivery for delivery in got if chance.random() < 0.2]
        good = [delivery for delivery in got if delivery not in bad]
        learner.settle(good, [(delivery, "stale") for delivery in bad])
        for book, settled in ((kept, good), (dropped, bad)):
            for delivery in settled:
                book[delivery.worker] = book.get(delivery.worker, 0) + delivery.rows
        assert all(account.in_flight >= 0 for account in learner.accounts())
        victim = chance.choice(got).worker if got and chance.random() < 0.1 else None
        index = next((index for index, worker in supervisor.names.items() if worker == victim), None)
        if index in supervisor.pids() and len(killed) < 6:
            os.kill(supervisor.pids()[index], signal.SIGKILL)  # in the middle of whatever it is doing
            killed.add(victim)
    threading.Thread(target=supervisor.stop, args=(60.0,)).start()
    is_over = False
    while not is_over:
        is_over = not supervisor.pids() and not learner.workers()
        deliveries += (got := learner.receive(0.05))
        learner.settle(got)
        for delivery in got:
            kept[delivery.worker] = kept.get(delivery.worker, 0) + delivery.rows
    check_parcels(children, deliveries, size)
    for account in learner.accounts():
        assert account.in_flight == 0
        assert account.stored == kept.get(account.worker, 0)
        assert dict(account.dropped) == ({"stale": dropped[account.worker]} if account.worker in dropped else {})
    assert supervisor.restarts["died"] >= 2


@pytest.mark.faults
@pytest.mark.slow
@posix_only
def test_frozen_process(learner, supervise, children):
    size = 300_000
    supervisor = supervise(2, size, pause_s=0.0)
    deliveries = take(learner, 50)
    while len({delivery.worker for delivery in deliveries}) < 2:
        deliveries += take(learner, 1)
    frozen = next(worker for worker in {got.worker for got in deliveries} if worker.startswith("local.0."))
    awake = next(worker for worker in {got.worker for got in deliveries} if worker.startswith("local.1."))
    os.kill(supervisor.pids()[0], signal.SIGSTOP)
    version = 0
    until_s, deadline_s = time.monotonic() + 1.5, time.monotonic() + 60.0
    while time.monotonic() < until_s:
        assert time.monotonic() < deadline_s
        version += 1
        learner.publish(version, b"%08d" % version + bytes(1 << 20))
        got = learner.receive(30.0)
        assert got, "the other one goes on"
        deliveries += got
    assert deliveries[-1].worker == awake
    before = sum(delivery.worker == frozen for delivery in deliveries)
    os.kill(supervisor.pids()[0], signal.SIGCONT)
    deadline_s = time.monotonic() + 60.0
    while not {frozen, awake} <= {got.worker for got in deliveries if int(got.frame[-8:]) == version}:
        assert time.monotonic() < deadline_s, "once it wakes it gets the newest"
        deliveries += learner.receive(0.05)
    eventually(lambda: learner.workers() == 2)
    deliveries += take(learner, 20)
    assert sum(delivery.worker == frozen for delivery in deliveries) > before
    check_parcels(children, deliveries, size)
    assert supervisor.restarts == {"died": 0, "hung": 0}


@pytest.mark.faults
@pytest.mark.slow
@posix_only
def test_waiting_for_the_learner_is_not_hanging(learner, supervise):
    supervisor = supervise(1, 300_000, pause_s=0.0)
    take(learner, 1)
    eventually(supervisor.pids)
    pulse = supervisor._places[0].process.pulse
    eventually(lambda: account(learner, supervisor.names[0]).sent >= AHEAD)
    before = pulse()
    eventually(lambda: pulse() >= before + 2)  # nobody takes what it sends

    def touches_but_sends_nothing():
        before = pulse()
        return not learner.receive(2.5) and pulse() >= before + 1

    learner.gate(is_open=False)
    eventually(touches_but_sends_nothing)
    assert supervisor.restarts == {"died": 0, "hung": 0}
    assert len(learner.accounts()) == 1
    learner.gate(is_open=True)
    take(learner, 20)
