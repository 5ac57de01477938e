"""Pipes that are full, cut, frozen and full of rubbish; and books that close all the same."""

import os
import random
import signal
import struct
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from soulsai.acting.crew import Crew, Pauses
from soulsai.errors import TransportError
from soulsai.transport import local
from soulsai.transport.frames import LARGEST_BODY, LARGEST_FRAME
from soulsai.transport.links import Account, Delivery, Parcel, Progress
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
    link = LocalLearnerLink(silent_after_s=0.8, say=news.append)
    link.news = news
    yield link
    link.close()


@pytest.fixture
def join(learner):
    """A function that lets a worker join, in this process."""
    links = []

    def make(name="a.1.000001", **settings):
        links.append(LocalWorkerLink(learner.add(name), name, run="run", **{"beat_s": 0.1, **settings}))
        return links[-1]

    yield make
    for link in links:
        link.close(0.0)


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
    return Parcel(link.worker, sequence, rows, frame)


def head(sequence=1, rows=1):
    return local.PARCEL_HEAD.pack(b"P", sequence, rows, 0.0)


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
        mine = [delivery.parcel for delivery in deliveries if delivery.parcel.worker == link.worker]
        assert [parcel.sequence for parcel in mine] == list(range(1, 11))
        assert [parcel.rows for parcel in mine] == list(range(1, 11))
        assert all(got.frame == big + link.worker.encode() + bytes([got.sequence]) for got in mine)
    assert all(before_s <= delivery.sent_s <= time.time() for delivery in deliveries)
    assert learner.accounts() == [Account(f"w{number}", sent=55) for number in range(3)]


def test_books(learner, join):
    link = join("w")
    for sequence, rows in ((1, 10), (2, 20), (3, 30), (4, 40), (4, 40)):
        assert link.send(parcel(link, sequence, rows))
        learner_has = take(learner, 1)
        if sequence == 1:
            deliveries = []
        deliveries += learner_has
    assert account(learner, "w").in_flight == 140
    one, two, three, four, again = deliveries
    learner.settle([one], [(two, "stale"), (three, "invalid")], [again])
    assert learner.accounts() == [Account("w", 100, 10, {"stale": 20, "invalid": 30})]
    assert account(learner, "w").in_flight == 40
    learner.settle([], [(four, "stale")])
    assert learner.accounts() == [Account("w", 100, 10, {"stale": 60, "invalid": 30})]
    assert account(learner, "w").in_flight == 0


def test_books_refuse_what_cannot_be(learner, join):
    link = join("w")
    link.send(parcel(link, 1, 5))
    link.send(parcel(link, 2, 6))
    one, two = take(learner, 2)
    before = learner.accounts()
    foreign = Delivery(one.parcel, "1-0", 0.0)
    for arguments in (([one, one],), ([two, one], [(one, "stale")]), ([one], [], [one]), ([one, foreign],),
                      ([one, Delivery(two.parcel, 99, 0.0)],)):  # fmt: skip
        with pytest.raises(MisuseError):
            learner.settle(*arguments)
        assert learner.accounts() == before
    learner.settle([one])
    with pytest.raises(MisuseError, match="twice"):
        learner.settle([two, one])
    assert account(learner, "w").in_flight == 6


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


def test_idle_costs_nothing(learner, join):
    for number in range(5):
        join(f"w{number}", beat_s=60.0)
    learner.receive(0.1)
    began_s = time.process_time()
    learner.receive(1.0)
    assert time.process_time() - began_s < 0.3


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


@pytest.mark.faults
def test_one_that_does_not_read_holds_nobody_up(learner, join, raw):
    frozen, link = raw(), join("awake")
    big = bytes(4 << 20)
    began_s = time.monotonic()
    for version in range(1, 21):
        learner.publish(version, big + str(version).encode())
    assert time.monotonic() - began_s < 30.0
    while (eventually(link.newest))[len(big) :] != b"20":
        pass
    assert link.send(parcel(link, 1))
    assert len(take(learner, 1)) == 1
    seen = []
    while 20 not in seen:
        assert frozen.poll(60.0), "once it reads it gets the newest"
        kind, version = local.POLICY_HEAD.unpack_from(message := frozen.recv_bytes())
        assert kind == b"V"
        assert message[local.POLICY_HEAD.size :] == big + str(version).encode()
        seen.append(version)
    assert len(seen) <= 2, "and none of those between"
    assert not frozen.poll(0.2)


@pytest.mark.faults
@posix_only
def test_one_frozen_in_the_middle_of_a_message_holds_nobody_up(learner, join, raw):
    frozen, link = raw(), join("awake")
    os.write(frozen.fileno(), struct.pack("!i", 5000) + head(rows=77) + b"half of")
    time.sleep(0.1)
    for sequence in range(1, 20):
        assert link.send(parcel(link, sequence))
        assert len(take(learner, 1)) == 1
    assert account(learner, "raw").sent == 0
    frozen.close()
    eventually(lambda: learner.removed() == {"gone": 1})
    assert learner.receive(0.0) == []
    assert account(learner, "raw") == Account("raw"), "what was not sent completely never was"
    eventually(lambda: learner.news == ["worker raw is gone without a goodbye"])


def test_gate(learner, join):
    touched = []
    learner.gate(is_open=False)
    link = join("w", touch=lambda: touched.append(1))
    eventually(lambda: not link._is_open)
    thread, result = in_thread(lambda: link.send(parcel(link, 1)))
    assert learner.receive(0.8) == []
    eventually(lambda: len(touched) >= 2)  # waiting is not hanging
    assert not result
    eventually(lambda: learner.workers() == 1)  # its heart beats while it waits
    learner.gate(is_open=True)
    assert len(take(learner, 1)) == 1
    thread.join(60.0)
    assert result == [True]
    learner.gate(is_open=False)
    learner.gate(is_open=True)
    learner.gate(is_open=False)
    eventually(lambda: not link._is_open)
    thread, result = in_thread(lambda: link.send(parcel(link, 2)))
    time.sleep(0.05)
    link.stop()
    thread.join(60.0)
    assert result == [False]
    assert link.ended == "stopped"
    assert account(learner, "w").sent == 3


def test_a_full_pipe_makes_workers_wait(learner, join):
    link = join("w", beat_s=0.05)
    sent = []

    def flood():
        while link.send(parcel(link, len(sent) + 1, rows=1, frame=bytes(1 << 20))):
            sent.append(1)
        return len(sent)

    thread, result = in_thread(flood)
    eventually(lambda: account(learner, "w").sent == AHEAD)
    time.sleep(1.2)  # longer than silence is allowed
    assert account(learner, "w").sent == AHEAD, "more would fill the learner's memory"
    assert len(sent) <= AHEAD + 1
    eventually(lambda: learner.workers() == 1)  # its silence is ours
    taken = take(learner, 20)
    assert [delivery.parcel.sequence for delivery in taken] == list(range(1, len(taken) + 1))
    eventually(lambda: learner.workers() == 1)
    learner.stop_workers()
    eventually(lambda: link.stopping)
    thread.join(60.0)
    assert not thread.is_alive(), "a stop ends the wait"
    assert result
    link.close(0.1)  # nobody takes what is left
    taken += take(learner, account(learner, "w").sent - len(taken))
    learner.settle(taken)
    eventually(lambda: learner.removed())
    learner.settle(learner.receive(0.0))
    assert account(learner, "w").in_flight == 0


def send_too_many(link, count):
    """Send more than there is room for, in a thread: the answers so far, while the next parcel is on its way."""
    answers = []
    frame = bytes(1 << 20)
    thread, _ = in_thread(lambda: answers.extend(link.send(parcel(link, n, frame=frame)) for n in range(1, count + 1)))
    eventually(lambda: len(answers) == AHEAD and link._outgoing is not None)
    return thread, answers


def test_close_sends_what_is_left(learner, join):
    link = join("w")
    thread, answers = send_too_many(link, AHEAD + 1)
    link.stop()
    thread.join(60.0)
    assert answers == [True] * AHEAD + [False]
    closing, _ = in_thread(lambda: link.close(60.0))
    assert len(take(learner, AHEAD + 1)) == AHEAD + 1
    closing.join(60.0)
    eventually(lambda: learner.removed() == {"goodbye": 1})
    assert learner.workers() == 0
    assert learner.news == []
    assert link.send(parcel(link, 9)) is False


def test_workers_that_are_told_to_stop_need_not_wait_for_room(learner, join):
    link = join("w")
    thread, answers = send_too_many(link, AHEAD + 4)
    learner.stop_workers()
    thread.join(60.0)
    assert answers[-1] is False
    began_s = time.monotonic()
    link.close(60.0)
    assert time.monotonic() - began_s < 30.0, "the learner reads on although nobody takes anything"
    eventually(lambda: learner.removed() == {"goodbye": 1})
    rest = learner.receive(0.0)
    assert len(rest) >= AHEAD + 1
    learner.settle(rest)
    assert account(learner, "w").in_flight == 0


def test_hearts(learner, join, raw):
    beat_of = raw("dumb")
    assert learner.workers() == 0, "nobody was heard yet"
    link = join("w")
    eventually(lambda: learner.workers() == 1)
    beat = b"B" + local.msgspec.msgpack.encode(Progress())
    eventually(lambda: beat_of.send_bytes(beat) or learner.workers() == 2)
    link.report(Progress("playing", policy=7, steps=1234, steps_per_s=55.5, episodes=9, wins=2, fights=8, restarts=1))
    eventually(lambda: learner.progress()["w"].policy == 7)
    assert learner.progress()["w"] == Progress("playing", 7, 1234, 55.5, 9, 2, 8, 1)
    eventually(lambda: learner.workers() == 1)  # the other one falls silent
    time.sleep(0.9)
    eventually(lambda: learner.workers() == 1)
    assert learner.removed() == {}, "silent is not gone"
    link.close()
    eventually(lambda: learner.removed() == {"goodbye": 1})
    assert learner.workers() == 0
    assert set(learner.progress()) == {"dumb"}


BAD = {
    "empty": b"",
    "unknown": b"X" + bytes(50),
    "short": b"P123",
    "no frame": head(),
    "no rows": head(rows=0) + b"frame",
    "no sequence": head(sequence=0) + b"frame",
    "not a beat": b"B" + b"\xff" * 30,
    "beat of wrong types": b"B" + local.msgspec.msgpack.encode({"policy": "seven"}),
    "long beat": b"B" + local.msgspec.msgpack.encode({"state": "x" * 5000}),
    "goodbye and more": b"Goodbye",
}


@pytest.mark.faults
@pytest.mark.parametrize("message", BAD.values(), ids=BAD.keys())
def test_rubbish_removes_that_worker_only(learner, join, raw, message):
    bad, link = raw("bad"), join("good")
    bad.send_bytes(head(1, 10) + b"frame")
    bad.send_bytes(message)
    with suppress(OSError):  # it may be hung up already
        bad.send_bytes(head(2, 10) + b"frame")
    eventually(lambda: learner.removed() == {"malformed": 1})
    assert bad.poll(60.0)
    with pytest.raises((EOFError, OSError)):
        bad.recv_bytes()
    assert link.send(parcel(link, 1, rows=1))
    learner.settle(take(learner, 2))
    assert learner.accounts() == [Account("bad", 10, 10), Account("good", 1, 1)], "what came before stays"
    eventually(lambda: learner.news)
    assert len(learner.news) == 1
    assert "worker bad sent what no worker sends" in learner.news[0]


@pytest.mark.faults
def test_rubbish_from_one_that_does_not_read_leaves_no_thread(learner, raw):
    threads = set(threading.enumerate())
    learner.publish(1, bytes(8 << 20))
    bad = raw("bad")
    assert bad.poll(60.0)
    bad.send_bytes(b"rubbish")
    eventually(lambda: set(threading.enumerate()) <= threads)


@pytest.mark.faults
@posix_only
@pytest.mark.parametrize("length", [LARGEST_FRAME + 1000, 2**31 - 1, -5])
def test_sizes_are_refused_before_memory_is_taken(learner, join, raw, length):
    bad, link = raw("bad"), join("good")
    os.write(bad.fileno(), struct.pack("!i", length) + head() + b"frame")
    eventually(lambda: learner.removed())
    assert account(learner, "bad") == Account("bad")
    assert link.send(parcel(link, 1, rows=1))
    assert len(take(learner, 1)) == 1


@pytest.mark.faults
@posix_only
def test_random_bytes_never_get_through(learner, join):
    chance = random.Random(3)
    link = join("good", beat_s=60.0)
    for number in range(300):
        bad = learner.add(f"bad{number}")
        data = chance.randbytes(chance.randrange(1, 200))
        if number % 2:  # well framed, but rubbish
            bad.send_bytes(data.lstrip(b"P") or b"x")
        else:
            os.write(bad.fileno(), data)
        bad.close()
    eventually(lambda: sum(learner.removed().values()) == 300)
    assert learner.receive(0.0) == []
    assert sum(account.sent for account in learner.accounts()) == 0
    assert link.send(parcel(link, 1))
    assert len(take(learner, 1)) == 1


def test_sizes_that_can_be_sent(learner, join):
    link = join("w")
    with pytest.raises(TransportError, match=r"chunk 1 of w has \d+ bytes"):
        link.send(parcel(link, 1, frame=bytes(LARGEST_FRAME + 1)))
    with pytest.raises(TransportError, match="chunk 2 of w has 0 bytes"):
        link.send(parcel(link, 2, frame=b""))
    with pytest.raises(TransportError, match=r"policy 5 has \d+ bytes"):
        learner.publish(5, bytes(LARGEST_BODY + 1))
    with pytest.raises(MisuseError, match="cannot be sent by w"):
        link.send(Parcel("someone else", 1, 1, b"frame"))
    assert link.send(parcel(link, 1, frame=bytes(LARGEST_FRAME)))
    assert len(take(learner, 1)[0].parcel.frame) == LARGEST_FRAME
    learner.publish(6, bytes(LARGEST_BODY))
    assert len(eventually(link.newest)) == LARGEST_BODY


def test_removed_worker(learner, join):
    link = join("w")
    link.send(parcel(link, 1))
    eventually(lambda: account(learner, "w").sent)
    learner.remove("w")
    learner.remove("w")
    learner.remove("nobody")
    eventually(lambda: link.stopping)
    assert link.ended == "gone"
    assert link.send(parcel(link, 2)) is False
    assert learner.removed() == {"removed": 1}
    assert len(take(learner, 1)) == 1, "what came before stays"


def test_names_are_used_once(learner, join):
    join("w").close()
    with pytest.raises(MisuseError, match="a name of its own"):
        learner.add("w")
    learner.close()
    with pytest.raises(MisuseError, match="closed"):
        learner.add("x")


@posix_only
def test_close_leaves_nothing_behind(raw, monkeypatch):
    monkeypatch.setattr(local, "CLOSE_S", 6.0)
    threads, files = set(threading.enumerate()), len(os.listdir("/proc/self/fd"))
    news = []
    learner = LocalLearnerLink(say=news.append)
    learner.publish(1, bytes(8 << 20))
    ends = [LocalWorkerLink(learner.add(f"w{number}"), f"w{number}", run="run") for number in range(3)]
    frozen = [learner.add(f"frozen{number}") for number in range(3)]
    os.write(frozen[1].fileno(), struct.pack("!i", 5000) + head())  # in the middle of a message
    flooding, answers = send_too_many(ends[0], 2 * AHEAD)
    for link in ends:
        eventually(link.newest)
    began_s = time.monotonic()
    learner.close()
    assert time.monotonic() - began_s < 30.0
    for link in ends:
        eventually(lambda link=link: link.stopping)
        assert link.ended == "stopped", "it was told before the end"
        link.close(0.2)
    flooding.join(60.0)
    assert answers[-1] is False
    for connection in frozen:
        connection.close()
    assert learner.receive(0.0) != [], "what came can still be taken"
    learner.close()
    assert news == []
    eventually(lambda: set(threading.enumerate()) <= threads)
    assert len(os.listdir("/proc/self/fd")) <= files


def test_end_of_the_learner_ends_the_worker(raw):
    learner = LocalLearnerLink(say=lambda text: None)
    theirs = learner.add("w")
    link = LocalWorkerLink(theirs, "w", run="run")
    peer = learner._peers["w"]
    local._hang_up(peer.connection)  # as the system does for a process that was killed
    eventually(lambda: link.stopping)
    assert link.ended == "gone"
    assert link.send(parcel(link, 1)) is False
    link.close()
    learner.close()


# ---- real processes


@pytest.fixture
def children(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    import local_children

    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)  # children need not load pytest
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    return local_children


@pytest.fixture
def make_crew(learner, children):
    crews = []

    def make(count, size, pause_s):
        lives = iter(range(1, 1000))

        def arguments(index):
            name = crew.names[index] = f"local.{index}.{next(lives):06x}"
            return learner.add(name), name, size, pause_s

        news = []
        crew = Crew(children.play, count, arguments=arguments, hang_s=120.0, say=news.append, pauses=Pauses(0.02, 0.05))
        crew.names = {}
        crews.append(crew)
        crew.start()
        return crew

    yield make
    for crew in crews:
        crew.stop(0.0)


def check_parcels(children, deliveries, size):
    """No life's parcels have a gap, a repetition or a wrong byte."""
    last = {}
    for delivery in deliveries:
        got = delivery.parcel
        assert got.sequence == last.get(got.worker, 0) + 1
        assert got.rows == children.rows_of(got.sequence)
        assert got.frame == children.frame_of(got.worker, got.sequence, size)
        last[got.worker] = got.sequence
    return last


@pytest.mark.faults
@pytest.mark.slow
@posix_only
def test_books_close_whoever_is_killed(learner, make_crew, children):
    size, chance = 300_000, random.Random(1)
    crew = make_crew(4, size, pause_s=0.002)
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
                book[delivery.parcel.worker] = book.get(delivery.parcel.worker, 0) + delivery.parcel.rows
        assert all(account.in_flight >= 0 for account in learner.accounts())
        victim = chance.choice(got).parcel.worker if got and chance.random() < 0.1 else None
        index = next((index for index, worker in crew.names.items() if worker == victim), None)
        if index in crew.pids() and len(killed) < 6:
            os.kill(crew.pids()[index], signal.SIGKILL)  # in the middle of whatever it is doing
            killed.add(victim)
    crew.begin_stop(60.0)
    is_over = False
    while not is_over:
        is_over = not crew.alive() and sum(learner.removed().values()) == len(learner.accounts())
        deliveries += (got := learner.receive(0.05))
        learner.settle(got)
        for delivery in got:
            kept[delivery.parcel.worker] = kept.get(delivery.parcel.worker, 0) + delivery.parcel.rows
    check_parcels(children, deliveries, size)
    for account in learner.accounts():
        assert account.in_flight == 0
        assert account.stored == kept.get(account.worker, 0)
        assert dict(account.dropped) == ({"stale": dropped[account.worker]} if account.worker in dropped else {})
    assert crew.restarts["died"] >= 2
    assert learner.removed()["goodbye"] >= 1, "those that lived to the end said so"


@pytest.mark.faults
@pytest.mark.slow
@posix_only
def test_frozen_process(learner, make_crew, children):
    size = 300_000
    crew = make_crew(2, size, pause_s=0.0)
    deliveries = take(learner, 50)
    while len({delivery.parcel.worker for delivery in deliveries}) < 2:
        deliveries += take(learner, 1)
    frozen = next(worker for worker in {got.parcel.worker for got in deliveries} if worker.startswith("local.0."))
    awake = next(worker for worker in {got.parcel.worker for got in deliveries} if worker.startswith("local.1."))
    os.kill(crew.pids()[0], signal.SIGSTOP)
    version = 0
    until_s, deadline_s = time.monotonic() + 1.5, time.monotonic() + 60.0
    while time.monotonic() < until_s or learner.workers() != 1:
        assert time.monotonic() < deadline_s, "a frozen worker is seen"
        version += 1
        learner.publish(version, b"%08d" % version + bytes(1 << 20))
        got = learner.receive(30.0)
        assert got, "the other one goes on"
        deliveries += got
    assert deliveries[-1].parcel.worker == awake
    before = sum(delivery.parcel.worker == frozen for delivery in deliveries)
    os.kill(crew.pids()[0], signal.SIGCONT)
    deadline_s = time.monotonic() + 60.0
    while learner.progress()[frozen].policy < version or learner.progress()[awake].policy < version:
        assert time.monotonic() < deadline_s, "once it wakes it gets the newest"
        deliveries += learner.receive(0.05)
    eventually(lambda: learner.workers() == 2)
    deliveries += take(learner, 20)
    assert sum(delivery.parcel.worker == frozen for delivery in deliveries) > before
    check_parcels(children, deliveries, size)
    assert crew.restarts == {"died": 0, "hung": 0}


@pytest.mark.faults
@pytest.mark.slow
@posix_only
def test_waiting_for_the_learner_is_not_hanging(learner, make_crew):
    crew = make_crew(1, 300_000, pause_s=0.0)
    take(learner, 1)
    eventually(crew.pids)
    pulse = crew._places[0].child.pulse
    eventually(lambda: learner._peers[crew.names[0]].parked)
    before = pulse.value
    eventually(lambda: pulse.value >= before + 8)  # nobody takes what it sends

    def touches_but_sends_nothing():
        before = pulse.value
        return not learner.receive(2.5) and pulse.value >= before + 6

    learner.gate(is_open=False)
    eventually(touches_but_sends_nothing)
    assert crew.restarts == {"died": 0, "hung": 0}
    assert len(learner.accounts()) == 1
    learner.gate(is_open=True)
    take(learner, 20)
