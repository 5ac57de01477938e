"""Patience with a Redis that comes and goes."""

import socket
import ssl
import threading
import time
from dataclasses import replace

import pytest
from redis import exceptions

from soulsai.errors import TransportError
from soulsai.transport.redis import connection
from soulsai.transport.redis.address import Address
from soulsai.transport.redis.connection import Refused, Retry, Stopped, connect

NOWHERE = Address("127.0.0.1", 1, "alice", "s3cret", "r")


class Calls:
    """Fails with each of the errors once, then returns how often it was called."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.number = 0

    def __call__(self):
        self.number += 1
        if self.errors:
            raise self.errors.pop(0)
        return self.number


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(connection, "FIRST_PAUSE_S", 0.001)


def test_answers_are_bytes_and_the_connection_may_have_a_name(admin, address):
    admin.set("a", "b")
    assert admin.get("a") == b"b"
    with connect(address, client="souls-learner") as named:
        assert named.client_getname() in (b"souls-learner", "souls-learner")


def test_nothing_is_tried_twice_by_the_client_itself():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        opened = []
        threading.Thread(target=_close_all, args=(listener, opened), daemon=True).start()
        with (
            connect(replace(NOWHERE, port=listener.getsockname()[1])) as client,
            pytest.raises(exceptions.ConnectionError),
        ):
            client.ping()
        time.sleep(0.2)
        assert len(opened) == 1


def _close_all(listener, opened):
    while True:
        try:
            stream, _ = listener.accept()
        except OSError:
            return
        opened.append(stream)
        stream.close()


def test_a_server_that_says_nothing_has_a_limit():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        address = replace(NOWHERE, port=silent.getsockname()[1])
        with connect(address, limit_s=0.2) as client, pytest.raises(exceptions.TimeoutError):
            client.ping()
        assert 0.15 < time.monotonic() - began < 60
    limits = client.connection_pool.connection_kwargs
    assert (limits["socket_timeout"], limits["socket_connect_timeout"]) == (0.2, 0.2)


def test_a_blocking_read_may_take_less_than_the_limit(admin):
    began = time.monotonic()
    assert not admin.xread({"s": "$"}, block=300)
    assert time.monotonic() - began >= 0.25


@pytest.mark.parametrize(
    "error",
    [
        exceptions.ConnectionError("lost"),
        exceptions.TimeoutError("late"),
        exceptions.BusyLoadingError("LOADING"),
        exceptions.ReadOnlyError("READONLY"),
        exceptions.TryAgainError("TRYAGAIN"),
        exceptions.OutOfMemoryError("OOM"),
        exceptions.ResponseError("MISCONF Errors writing to the AOF file: No space left on device"),
        ConnectionResetError("reset"),
    ],
)
def test_what_may_pass_is_tried_again(quick, error):
    assert Retry(NOWHERE).run("try", Calls(error, error, error)) == 4


@pytest.mark.parametrize(
    "error",
    [
        exceptions.AuthenticationError("WRONGPASS"),
        exceptions.AuthorizationError("no"),
        exceptions.NoPermissionError("NOPERM"),
    ],
)
def test_a_refusal_is_not_tried_again(quick, error):
    calls = Calls(error)
    with pytest.raises(Refused, match="ask for a new invitation") as caught:
        Retry(NOWHERE).run("send experience", calls)
    assert calls.number == 1
    assert isinstance(caught.value, TransportError)
    assert "127.0.0.1:1" in str(caught.value)
    assert "cannot send experience" in str(caught.value)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "error", [exceptions.ResponseError("WRONGTYPE"), exceptions.DataError("no"), ValueError("own")]
)
def test_a_mistake_of_ours_is_not_tried_again(quick, error):
    calls = Calls(error)
    with pytest.raises(type(error)) as caught:
        Retry(NOWHERE).run("try", calls)
    assert caught.value is error
    assert calls.number == 1


def test_a_wrong_certificate_is_not_tried_again(quick):
    failed = ssl.SSLCertVerificationError("certificate verify failed")
    failed.verify_message = "unable to get local issuer certificate"
    error = exceptions.ConnectionError("Error 1 connecting")
    error.__context__ = failed
    calls = Calls(error)
    with pytest.raises(Refused, match=r"unable to get local issuer.*--ca FILE"):
        Retry(NOWHERE).run("join", calls)
    assert calls.number == 1


def test_patience_ends_with_a_sentence():
    began = time.monotonic()
    with (
        connect(NOWHERE) as client,
        pytest.raises(TransportError, match=r"cannot join: 127\.0\.0\.1:1 does not answer"),
    ):
        Retry(NOWHERE, patience_s=0.4).run("join", client.ping)
    assert 0.3 < time.monotonic() - began < 30


def test_no_patience_is_one_try():
    calls = Calls(exceptions.ConnectionError("lost"))
    with pytest.raises(TransportError, match="lost"):
        Retry(NOWHERE, patience_s=0).run("try", calls)
    assert calls.number == 1


def test_a_stop_ends_the_waiting_within_a_moment(monkeypatch):
    monkeypatch.setattr(connection.random, "uniform", lambda low, high: 60.0)
    asked = threading.Event()
    threading.Timer(0.2, asked.set).start()
    began = time.monotonic()
    with pytest.raises(Stopped):
        Retry(NOWHERE).run("try", Calls(exceptions.ConnectionError("lost")), asked.is_set)
    assert 0.15 < time.monotonic() - began < 30


def test_pauses_grow_to_a_limit_and_are_random(monkeypatch):
    limits = []
    monkeypatch.setattr(connection.random, "uniform", lambda low, high: limits.append((low, high)) or 0.0)
    Retry(NOWHERE).run("try", Calls(*[exceptions.ConnectionError("lost")] * 9))
    assert [low for low, _ in limits] == [0.0] * 9
    assert [high for _, high in limits] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]


def test_days_of_trying_do_not_overflow(monkeypatch):
    monkeypatch.setattr(connection.random, "uniform", lambda low, high: 0.0)
    assert Retry(NOWHERE).run("try", Calls(*[exceptions.ConnectionError("lost")] * 5000)) == 5001


def test_the_first_failure_and_the_recovery_are_logged_once(quick, caplog):
    caplog.set_level("INFO")
    Retry(NOWHERE).run("send", Calls(*[exceptions.ConnectionError("lost")] * 5))
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "cannot send" in caplog.text
    assert "answers again" in caplog.text
