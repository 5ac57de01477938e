"""What the fault tests rely on: plans that can be repeated, and a network that is cut when it should be."""

import socket
import threading
import time
from contextlib import suppress

import pytest
from fault_plan import HOWS, LONG, SHORT, WORKERS, make_plan
from fault_proxy import Proxy

LIMIT_S = 60.0
SCALES = pytest.mark.parametrize("scale", [SHORT, LONG], ids=lambda scale: scale.name)


@SCALES
def test_a_plan_is_made_of_its_seed(scale):
    assert make_plan(scale, 5) == make_plan(scale, 5)
    assert list(map(str, make_plan(scale, 5))) != list(map(str, make_plan(scale, 6)))


@SCALES
def test_what_every_plan_holds(scale):
    killed = set()
    for seed in range(50):
        plan = make_plan(scale, seed)
        kills = [event for event in plan if event.what == "kill a worker"]
        assert [event.at_s for event in kills] == [
            scale.kill_every_s * turn for turn in range(1, int(scale.length_s / scale.kill_every_s))
        ]
        for event in kills:
            assert event.who != "cat" or not scale.freeze.covers(event.at_s, *scale.spare_s)
            assert event.who != "bob" or not scale.cut.covers(event.at_s, *scale.spare_s)
        assert {event.how for event in kills} == set(HOWS)
        killed |= {(event.who, event.how) for event in kills}
        others = [event.what for event in plan if event.what != "kill a worker"]
        assert others.count("kill the learner") == others.count("start the learner") == len(scale.learner)
        assert all(others.count(what) == 1 for what in ("kill Redis", "start Redis", "freeze", "thaw", "let through"))
        assert max(event.at_s for event in plan) < scale.length_s
    assert len(killed) == 3 * len(WORKERS)


def test_the_long_plan_is_the_one_that_was_asked_for():
    assert (LONG.length_s, LONG.kill_every_s, len(LONG.learner)) == (180.0, 10.0, 2)
    assert (LONG.freeze.for_s, LONG.cut.for_s) == (30.0, 30.0)


@pytest.fixture
def echo():
    """The port of a server that says everything again, and all it has heard."""
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            while True:
                try:
                    one, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(one,), daemon=True).start()

        def answer(one):
            with one, suppress(OSError):
                while data := one.recv(1 << 16):
                    heard.append(data)
                    one.sendall(data)

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1], heard
        listener.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def proxy(echo):
    proxy = Proxy(echo[0])
    yield proxy
    proxy.close()


def joined(proxy):
    return socket.create_connection(("127.0.0.1", proxy.port), LIMIT_S)


def test_everything_comes_through(proxy):
    with joined(proxy) as one:
        data = bytes(range(256)) * 4000
        threading.Thread(target=one.sendall, args=(data,), daemon=True).start()
        got = b""
        while len(got) < len(data):
            got += one.recv(1 << 16)
        assert got == data


def test_refusing_drops_and_takes_nobody(proxy):
    with joined(proxy) as one:
        one.sendall(b"a")
        assert one.recv(1) == b"a"
        proxy.set("refuse")
        assert one.recv(1) == b""
    for _ in range(3):
        with pytest.raises(ConnectionRefusedError):
            joined(proxy)
    proxy.set("open")
    with joined(proxy) as one:
        one.sendall(b"b")
        assert one.recv(1) == b"b"


def test_what_is_held_back_arrives_late(proxy, echo):
    """Also what was sent by one who has hung up since."""
    with joined(proxy) as one:
        one.sendall(b"a")
        assert one.recv(1) == b"a"
        proxy.set("hold")
        with joined(proxy) as impatient:
            impatient.sendall(b"late")
        one.sendall(b"b")
        one.settimeout(0.5)
        with pytest.raises(TimeoutError):
            one.recv(1)
        assert echo[1] == [b"a"]
        proxy.set("open")
        one.settimeout(LIMIT_S)
        assert one.recv(1) == b"b"
        with joined(proxy) as another:
            another.sendall(b"c")
            assert another.recv(1) == b"c"
    deadline_s = time.monotonic() + LIMIT_S
    while len(echo[1]) < 4 and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert sorted(echo[1]) == [b"a", b"b", b"c", b"late"]
