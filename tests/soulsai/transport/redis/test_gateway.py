"""A gateway in front of a real Redis: workers come through it, and nothing else does."""

import contextlib
import os
import socket
import ssl
import threading
import time
from dataclasses import replace

import pytest
from redis.exceptions import AuthenticationError, ConnectionError
from redis_kit import WORKER, numbers, parcel, sequences, take, until
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect as open_socket

from benchmarks import hostile
from benchmarks.hostile import gateway_flood, nonsense, open_gateway, say
from soulsai.errors import TransportError
from soulsai.transport.gateway import server as gateways
from soulsai.transport.gateway.certificate import load_certificate, load_or_make_certificate
from soulsai.transport.gateway.client import secure_socket
from soulsai.transport.gateway.counts import gateway_part
from soulsai.transport.gateway.messages import LATER, REFUSED, Clock, Get, Push, SendBeat, Waiting
from soulsai.transport.gateway.quotas import (
    BYTES,
    CHUNKS,
    INVALID,
    LOCKED,
    LONGEST_WAIT_S,
    MEMORY,
    TOO_LONG,
    Limits,
    Quotas,
)
from soulsai.transport.gateway.server import Gateway, GatewayOptions, make_server
from soulsai.transport.redis import invitations
from soulsai.transport.redis.access import invite, revoke, set_locked
from soulsai.transport.redis.address import Address
from soulsai.transport.redis.connection import Refused, connect
from soulsai.transport.redis.report import stop_workers
from soulsai.transport.redis.worker import REVOKED, STOPPED, fetch_welcome


@pytest.fixture
def make_gateway(server):
    """A function that starts a gateway; gives it, and its port."""
    with contextlib.ExitStack() as held:

        def make(limits=None, upstream=server.address, certificate=None):
            said = []
            options = GatewayOptions(
                upstream, *(certificate[:2] if certificate else (None, None)), limits=limits or Limits()
            )
            gateway = Gateway(upstream, options.limits, said.append)
            ready, listening = threading.Event(), socket.create_server(("127.0.0.1", 0))
            running = make_server(options, gateway, ready.set)
            thread = threading.Thread(target=running.run, args=([listening],), daemon=True)
            thread.start()

            def end():
                running.should_exit = True
                thread.join(60)

            held.callback(end)
            assert ready.wait(60)
            gateway.said, gateway.port = said, listening.getsockname()[1]
            return gateway

        yield make


def through(address, gateway, **changes):
    return replace(address, port=gateway.port, is_gateway=True, **changes)


def raw(address, gateway):
    """A connection that says what it likes."""
    return open_gateway(through(address, gateway))


def entry(sequence, worker=WORKER, size=100):
    return hostile.entry(sequence, worker, "any", size)


def test_experience_goes_in_and_policies_and_commands_come_out(
    alice, admin, keys, make_gateway, make_link, make_learner
):
    gateway, learner = make_gateway(), make_learner(replace(alice, user="admin", password=admin_password(admin)))
    link = make_link(through(alice, gateway))
    for number in range(1, 41):
        assert link.send(parcel(number))
    messages = take(learner, 40)
    assert numbers(messages) == list(range(1, 41))
    learner.settle(messages)
    learner.publish(7, b"a policy")
    found = []
    until(lambda: found.append(link.newest()) or found[-1] is not None)
    assert found[-1] == b"a policy"
    assert gateway.quotas.counts()["alice"]["passed"] == 40
    stop_workers(admin, keys, "alice")
    until(lambda: link.ended == STOPPED)


def admin_password(admin):
    return admin.connection_pool.connection_kwargs["password"]


def test_the_welcome_comes_through(alice, admin, keys, make_gateway):
    admin.set(keys.welcome, b"welcome")
    frame, now_s = fetch_welcome(through(alice, make_gateway()), 5.0)
    assert frame == b"welcome"
    assert abs(now_s - time.time()) < 60.0


def test_wrong_credentials_and_other_runs_stay_outside(alice, admin, make_gateway):
    gateway = make_gateway()
    for wrong in ({"password": "guessed"}, {"user": "mallory"}, {"user": "admin"}, {"run": "another"}):
        with pytest.raises(Refused, match="ask for a new invitation"):
            fetch_welcome(through(alice, gateway, **wrong), 5.0)
    for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": "Basic !"}, {"Authorization": "Basic eA=="}):
        with pytest.raises(InvalidStatus) as caught:
            open_socket(f"ws://127.0.0.1:{gateway.port}/{alice.run}", additional_headers=headers)
        assert caught.value.response.status_code == 401


def test_many_wrong_passwords_are_not_even_tried(alice, admin, make_gateway, monkeypatch):
    monkeypatch.setattr(gateways, "FAILURES", 3)
    gateway = make_gateway()
    for _ in range(3):
        with pytest.raises(AuthenticationError):
            connect(through(alice, gateway, password="guessed")).time()
    with pytest.raises(ConnectionError, match="too many wrong passwords"):
        connect(through(alice, gateway)).time()


def test_nothing_is_kept_of_a_name_before_its_password_is_known(alice, admin, make_gateway):
    """Otherwise whoever knows a name could use up what its owner may have."""
    gateway = make_gateway(Limits(connections=1))
    for name in ("alice", "nobody"):
        with pytest.raises(AuthenticationError):
            connect(through(alice, gateway, user=name, password="guessed")).time()
    assert gateway.quotas.counts() == {}
    with raw(alice, gateway) as found:
        assert len(say(found, Clock())[0]) == 2
    assert list(gateway.quotas.counts()) == ["alice"]


def test_an_address_may_not_knock_too_often_at_once(alice, admin, make_gateway, monkeypatch):
    monkeypatch.setattr(gateways, "KNOCKING", 0)
    with pytest.raises(ConnectionError, match="connections at once, came from your address"):
        connect(through(alice, make_gateway())).time()


def test_who_is_revoked_is_out_at_once(alice, admin, keys, make_gateway, make_link):
    gateway = make_gateway()
    link = make_link(through(alice, gateway))
    link.send(parcel(1))
    until(lambda: admin.llen(keys.experience("alice")) == 1)
    with raw(alice, gateway) as found:
        assert say(found, Waiting()) == [1]
        revoke(admin, keys, "alice")
        with pytest.raises(ConnectionClosed) as caught:
            say(found, Waiting())
        assert caught.value.rcvd.code == REFUSED
    until(lambda: link.ended == REVOKED)


def test_who_is_locked_out_by_the_learner_is_told_so_and_comes_back(alice, admin, keys, make_gateway, make_link):
    gateway = make_gateway()
    link = make_link(through(alice, gateway))
    with raw(alice, gateway) as found:
        assert say(found, Waiting()) == [0]
        set_locked(admin, "alice", is_locked=True)
        with pytest.raises(ConnectionClosed) as caught:
            say(found, Waiting())
        assert (caught.value.rcvd.code, caught.value.rcvd.reason) == (
            LATER,
            "too much was sent: locked out for a while",
        )
    with pytest.raises(ConnectionError, match="alice has sent too much and is locked out for a while"):
        connect(through(alice, gateway)).time()
    assert gateway.quotas.totals.refused["locked_out"] >= 1
    assert gateway.quotas.totals.refused["credentials"] == 0
    set_locked(admin, "alice", is_locked=False)
    link.send(parcel(1))
    until(lambda: admin.llen(keys.experience("alice")) == 1)
    assert link.ended == ""


def test_everything_at_the_door_is_counted(alice, admin, make_gateway, tmp_path, monkeypatch):
    monkeypatch.setattr(gateways, "HEADERS_S", 0.2)
    gateway = make_gateway()
    totals = gateway.quotas.totals
    with raw(alice, gateway) as found:
        say(found, Push([entry(1), entry(2)]), Clock())
        assert (totals.connections, totals.accepted, totals.passed) == (1, 1, 2)
        assert totals.bytes > 2 * len(entry(1))
        say(found, Push([b"no entry"]))
    with pytest.raises(AuthenticationError):
        connect(through(alice, gateway, password="guessed")).time()
    with socket.create_connection(("127.0.0.1", gateway.port), 60) as silent, contextlib.suppress(ConnectionResetError):
        assert silent.recv(1000) == b""
    until(lambda: totals.connections == 0)
    (tmp_path / "gateway").mkdir()
    assert gateway_part(tmp_path) == {}
    totals.write(tmp_path / "gateway")
    told = gateway_part(tmp_path)["gateway"]
    assert {key: told[key] for key in ("connections", "accepted", "passed", "dropped", "refused")} == {
        "connections": 0, "accepted": 1, "passed": 2, "dropped": {"invalid": 1},
        "refused": {"credentials": 1, "silent": 1},
    }  # fmt: skip
    file = tmp_path / "gateway" / "counts.json"
    os.utime(file, (time.time() - 120, time.time() - 120))  # of a gateway that has ended
    assert gateway_part(tmp_path) == {}
    file.write_text('{"connections": "many"}')
    assert gateway_part(tmp_path) == {}


@pytest.mark.parametrize("message", nonsense(WORKER))
def test_what_no_worker_says_ends_the_connection_and_is_counted(message, alice, admin, make_gateway):
    gateway = make_gateway()
    with raw(alice, gateway) as found:
        found.send(message)
        with pytest.raises(ConnectionClosed):
            found.recv(timeout=60)
    until(lambda: gateway.quotas.counts()["alice"].get(INVALID) == 1)


def test_a_connection_speaks_for_one_worker_of_its_name(alice, admin, keys, make_gateway):
    gateway = make_gateway()
    with raw(alice, gateway) as found:
        assert say(found, SendBeat(WORKER, b"beat"), Push([entry(1)])) == [1, 1]
        for other in ("bob.1.abcdef", "alice.2.abcdef"):
            failed = say(found, SendBeat(other, b"beat"), Push([entry(1, worker=other)]), Waiting(), Clock(), Get("to"))
            assert [type(answer).__name__ for answer in failed[:2]] == ["Failure", "Failure"]
            assert failed[2] == 1
            assert len(failed[3]) == 2
        assert type(say(found, Push([b"no entry"]))[0]).__name__ == "Failure"
    assert admin.hkeys(keys.beats("alice")) == [WORKER.encode()]
    assert gateway.quotas.counts()["alice"][INVALID] == 5  # heartbeats, too
    assert gateway.said


def test_a_flood_is_dropped_and_locks_out_its_name_alone(alice, admin, keys, make_gateway, make_link):
    gateway = make_gateway(Limits(chunks_per_s=5.0, burst_s=2.0, strikes=10))
    bob = replace(alice, user="bob", password=invite(admin, keys, "bob"))
    gateway_flood(through(alice, gateway))
    assert gateway.quotas.counts()["alice"][CHUNKS] >= 10
    assert admin.llen(keys.experience("alice")) < 64
    with pytest.raises(ConnectionError, match="locked out"):
        connect(through(alice, gateway)).time()
    link = make_link(through(bob, gateway), "bob.1.abcdef")
    for number in range(1, 6):
        assert link.send(parcel(number, worker="bob.1.abcdef"))
    until(lambda: sequences(admin, keys, "bob") == [1, 2, 3, 4, 5])
    assert any("alice" in text and "locked out" in text for text in gateway.said)


def test_an_honest_worker_that_is_too_fast_is_slowed_and_loses_nothing(alice, admin, keys, make_gateway, make_link):
    gateway = make_gateway(Limits(chunks_per_s=40.0, burst_s=0.25))
    link = make_link(through(alice, gateway), waits=False, buffer_bytes=1 << 20)
    for number in range(1, 61):
        assert link.send(parcel(number))
    until(lambda: sequences(admin, keys) == list(range(1, 61)))
    assert link.account().dropped == {}


def test_what_waits_for_the_learner_has_a_limit(alice, admin, keys, make_gateway):
    gateway = make_gateway(Limits(memory=3000))
    with raw(alice, gateway) as found:
        assert say(found, Push([entry(1, size=2000)])) == [1]
        (failed,) = say(found, Push([entry(2, size=2000)]))
        assert "OOM" in failed.why
        assert gateway.quotas.counts()["alice"] == {"passed": 1, MEMORY: 1}
        admin.lpop(keys.experience("alice"))  # the learner takes it
        assert say(found, Waiting(), Clock())[0] == 0
        assert say(found, Push([entry(2, size=2000)])) == [1]


def test_no_more_connections_than_allowed_and_none_left_behind(alice, admin, make_gateway):
    gateway = make_gateway(Limits(connections=2))
    with raw(alice, gateway) as first, raw(alice, gateway) as second:
        assert [len(say(found, Clock())[0]) for found in (first, second)] == [2, 2]
        with pytest.raises(InvalidStatus) as caught, raw(alice, gateway):
            pass
        assert caught.value.response.status_code == 429
    until(lambda: gateway.quotas.of("alice").connections == 0)
    with raw(alice, gateway) as found:
        assert len(say(found, Clock())[0]) == 2
    until(lambda: not [client for client in admin.client_list() if client["user"] == "alice"])


def test_a_message_that_is_too_long_ends_the_connection(alice, admin, keys, make_gateway):
    gateway = make_gateway(Limits(message=10_000))
    with raw(alice, gateway) as found:
        with pytest.raises(ConnectionClosed) as caught:
            say(found, Push([entry(1, size=20_000)]))
        assert caught.value.rcvd.code == 1009
    until(lambda: gateway.quotas.counts()["alice"].get(TOO_LONG) == 1)
    assert admin.llen(keys.experience("alice")) == 0


@pytest.mark.parametrize("frame", [hostile.PING, hostile.PIECE])
def test_frames_without_end_and_without_a_message_end_the_connection(frame, alice, admin, keys, make_gateway):
    """They never reach a quota; reading them would keep the gateway from everybody else."""
    gateway = make_gateway()
    bob = replace(alice, user="bob", password=invite(admin, keys, "bob"))
    with raw(bob, gateway) as honest:
        hostile.gateway_frames(through(alice, gateway), frame=frame, for_s=60.0)
        until(lambda: gateway.quotas.counts()["alice"].get(INVALID) == 1)
        assert say(honest, Waiting()) == [0]


def test_who_asks_without_end_has_to_wait(alice, admin, keys, make_gateway):
    admin.set(keys.policy, bytes(100_000))
    gateway = make_gateway(Limits(answer_bytes_per_s=100_000.0, burst_s=1.0))
    with raw(alice, gateway) as found:
        began_s = time.monotonic()
        for _ in range(4):
            say(found, Get("policy"))
        assert time.monotonic() - began_s > 1.5


def test_sockets_that_say_nothing_are_hung_up_on(alice, admin, make_gateway, monkeypatch):
    monkeypatch.setattr(gateways, "HEADERS_S", 0.2)
    monkeypatch.setattr(gateways, "IDLE_S", 0.2)
    gateway = make_gateway()
    for words in (b"", b"GET / HTTP/1.1\r\nHost:"):
        with socket.create_connection(("127.0.0.1", gateway.port), 60) as silent:
            silent.sendall(words)
            with contextlib.suppress(ConnectionResetError):
                assert silent.recv(1000) == b""
    with raw(alice, gateway) as found, pytest.raises(ConnectionClosed) as caught:
        found.recv(timeout=60)
    assert "nothing was said" in caught.value.rcvd.reason


def test_a_gateway_without_redis_says_so_and_the_worker_waits(alice, admin, make_gateway):
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    gateway = make_gateway(upstream=replace(alice, port=port))
    with pytest.raises(TransportError, match="cannot be reached from the gateway"):
        fetch_welcome(through(alice, gateway), 0.0, lambda text: None)


def test_tls_by_fingerprint(alice, admin, keys, make_gateway, tmp_path):
    admin.set(keys.welcome, b"welcome")
    certificate = load_or_make_certificate(tmp_path / "gateway", ["localhost", "127.0.0.1"])
    assert load_or_make_certificate(tmp_path / "gateway", ["localhost", "127.0.0.1"]) == certificate
    gateway = make_gateway(certificate=certificate)
    line = through(alice, gateway, tls=True, fingerprint=certificate.fingerprint).url()
    assert line.startswith("wss://alice:")
    assert fetch_welcome(Address.parse(line), 5.0)[0] == b"welcome"
    other = load_or_make_certificate(tmp_path / "other", ["localhost", "127.0.0.1"]).fingerprint
    for wrong in (
        f"{line.partition('#')[0]}#{other}",
        line.partition("#")[0],
    ):  # another one; the system trusts neither
        with pytest.raises(Refused, match="not to be trusted"):
            fetch_welcome(Address.parse(wrong), 5.0)
    with pytest.raises(TransportError, match=r"127\.0\.0\.1"):  # no TLS where TLS is spoken
        fetch_welcome(replace(Address.parse(line), tls=False), 0.0, lambda text: None)
    assert load_certificate(*certificate[:2], trusted=True).fingerprint == ""
    (tmp_path / "gateway" / "gateway.key").write_text("damaged")
    with pytest.raises(TransportError, match="not a certificate and its key"):
        load_certificate(*certificate[:2])
    assert load_or_make_certificate(tmp_path / "gateway", ["localhost"]).fingerprint != certificate.fingerprint


def test_one_thread_reads_while_another_writes(alice, tmp_path):
    """A gateway may say something at any time; what came of it was broken connections, and a crash in the end."""
    certificate = load_or_make_certificate(tmp_path, ["localhost", "127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate[:2])
    connections, size, times = 30, 2000, 300

    def echo():
        for _ in range(connections):
            with context.wrap_socket(door.accept()[0], server_side=True) as end:
                while data := end.recv(4096):
                    end.sendall(data)

    with socket.create_server(("127.0.0.1", 0)) as door:
        threading.Thread(target=echo, daemon=True).start()
        address = replace(alice, host="127.0.0.1", port=door.getsockname()[1], fingerprint=certificate.fingerprint)
        for _ in range(connections):
            with secure_socket(socket.create_connection(door.getsockname(), 20.0), address) as end:
                writer = threading.Thread(target=lambda end=end: [end.sendall(bytes(size)) for _ in range(times)])
                writer.start()
                came = 0
                while came < size * times and (data := end.recv(4096)):
                    came += len(data)
                writer.join(20.0)
                assert came == size * times
                end.settimeout(0.01)
                with pytest.raises(TimeoutError):
                    end.recv(1)


def test_an_end_that_is_written_to_while_it_writes(alice, tmp_path):
    """It reads nothing until all it has to say was read; a thread that waits to write must let the other one read."""
    certificate = load_or_make_certificate(tmp_path, ["localhost", "127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate[:2])
    size, counts = 16 << 20, []

    def count(end, wanted):
        came = 0
        while came < wanted and (data := end.recv(1 << 16)):
            came += len(data)
        counts.append(came)

    def talk():
        with context.wrap_socket(door.accept()[0], server_side=True) as end:
            end.sendall(bytes(size))
            count(end, size)

    with socket.create_server(("127.0.0.1", 0)) as door:
        server = threading.Thread(target=talk, daemon=True)
        server.start()
        address = replace(alice, host="127.0.0.1", port=door.getsockname()[1], fingerprint=certificate.fingerprint)
        with secure_socket(socket.create_connection(door.getsockname(), 20.0), address) as end:
            writer = threading.Thread(target=lambda: end.sendall(bytes(size)), daemon=True)
            writer.start()
            count(end, size)
            for thread in (writer, server):
                thread.join(20.0)
    assert counts == [size, size]


def test_addresses():
    fingerprint = "A" * 43
    found = Address.parse(f"wss://alice:secret@example.org/run-1#{fingerprint}")
    assert (found.port, found.tls, found.is_gateway, found.fingerprint) == (443, True, True, fingerprint)
    assert Address.parse(found.url()) == found
    assert fingerprint not in str(found)
    assert "secret" not in f"{found} {found!r}"
    assert Address.parse("ws://a:b@[::1]:81/r").port == 81
    for wrong in ("wss://a:b@h/r#short", f"ws://a:b@h/r#{fingerprint}", f"redis://a:b@h/r#{fingerprint}"):
        with pytest.raises(TransportError):
            Address.parse(wrong)


def test_invitations_for_some_machines_and_for_some_time(alice, admin, keys, make_gateway):
    gateway = make_gateway()
    invitations.set_terms(admin, keys, "alice", lasts_s=3600.0, machines=1)
    bob = replace(alice, user="bob", password=invite(admin, keys, "bob"))
    with raw(alice, gateway) as first, raw(alice, gateway) as second:  # of one machine
        assert [len(say(found, Clock())[0]) for found in (first, second)] == [2, 2]
    until(lambda: not gateway.quotas.of("alice").machines)
    gateway.quotas.of("alice").machines["198.51.100.7"] += 1  # another machine is there
    with pytest.raises(ConnectionError, match="1 machines at once"):
        connect(through(alice, gateway)).time()
    assert connect(through(bob, gateway)).time()
    terms = invitations.terms_of(admin, keys)
    assert (terms["alice"].machines, terms["bob"]) == (1, invitations.Terms(0.0))
    assert terms["alice"].until_s - terms["alice"].since_s == 3600.0
    assert invitations.end_those_over(admin, keys) == []
    invitations.set_terms(admin, keys, "alice", lasts_s=-1.0)
    assert invitations.end_those_over(admin, keys) == ["alice"]
    assert list(invitations.terms_of(admin, keys)) == ["bob"]
    with pytest.raises(Refused):
        fetch_welcome(through(alice, gateway), 5.0)
    assert not admin.exists(invitations.machines_key(keys, "alice"))


def test_times():
    assert [invitations.seconds_of(text) for text in ("", "30m", "12h", "7d")] == [0.0, 1800.0, 43200.0, 604800.0]
    for wrong in ("7", "d", "-1d", "1w", "1.5h", "0m", "\u0663d", "9999999d"):
        with pytest.raises(TransportError, match="is not a time"):
            invitations.seconds_of(wrong)


class Clocked(Quotas):
    """With a clock that is set by hand."""

    def __init__(self, **limits):
        self.now_s = 100.0
        super().__init__(Limits(**limits), lambda: self.now_s)


def test_quotas_slow_then_drop_then_lock_out_then_forgive():
    quotas = Clocked(chunks_per_s=1.0, bytes_per_s=1000.0, burst_s=2.0, strikes=3, locked_s=30.0)
    assert quotas.pass_or_drop("a", [10, 10]) == ("", 0.0)
    assert quotas.pass_or_drop("a", [10]) == ("", pytest.approx(1.0))
    assert quotas.pass_or_drop("a", [10]) == ("", pytest.approx(2.0))
    assert quotas.pass_or_drop("a", [10]) == (CHUNKS, 0.0)
    assert quotas.pass_or_drop("b", [10]) == ("", 0.0)
    assert quotas.pass_or_drop("a", [10, 10])[0] == CHUNKS
    assert quotas.is_locked("a")
    assert quotas.refusal("a") == ("locked_out", "a has sent too much and is locked out for another 30 s")
    assert quotas.pass_or_drop("a", [10])[0] == LOCKED
    quotas.now_s += 31.0
    assert quotas.refusal("a") == ("", "")
    assert quotas.pass_or_drop("a", [10]) == ("", 0.0)
    assert quotas.counts()["a"] == {"passed": 0, CHUNKS: 3, LOCKED: 1}


def test_answers_are_paid_for_too():
    quotas = Clocked(answers_per_s=2.0, answer_bytes_per_s=1000.0, burst_s=2.0)
    assert [quotas.wait_s("a") for _ in range(6)] == [0.0, 0.0, 0.0, 0.0, 0.5, 1.0]
    assert quotas.wait_s("b") == 0.0
    quotas.note_answer("b", 5000)
    assert quotas.wait_s("b") == pytest.approx(3.0, abs=0.01)
    quotas.now_s += 10.0
    assert (quotas.wait_s("a"), quotas.wait_s("b")) == (0.0, 0.0)


def test_a_chunk_larger_than_the_burst_passes_and_is_paid_for():
    quotas = Clocked(chunks_per_s=100.0, bytes_per_s=1000.0, burst_s=2.0)
    assert quotas.pass_or_drop("a", [5000]) == ("", 0.0)
    assert quotas.pass_or_drop("a", [10])[0] == BYTES
    quotas.now_s += 5.0 + LONGEST_WAIT_S
    assert quotas.pass_or_drop("a", [10])[0] == ""


def test_all_names_together_have_a_limit_too():
    quotas = Clocked(all_connections=2)
    for name in ("a", "b"):
        quotas.of(name).connections += 1
    assert quotas.refusal("c") == ("full", "this gateway has no room for another connection")
