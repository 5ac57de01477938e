"""Messages to a real web server that behaves badly, and what is told of it: never its address."""

import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from soulsai.errors import ConfigError
from soulsai.telemetry import webhook
from soulsai.telemetry.webhook import Messenger, Refused, check_urls, post, send

SECRET = "s3cr3t-p4th"
LIMIT_S = 60.0


class Hook(BaseHTTPRequestHandler):
    """Answers with what the server was told to, and keeps what came."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, self.headers["Content-Type"], json.loads(body)))
        answer = self.server.answers.pop(0) if self.server.answers else 204
        if answer == "hang":
            self.server.let_go.wait(LIMIT_S)
            return
        self.send_response(answer)
        if 300 <= answer < 400:
            self.send_header("Location", self.server.elsewhere)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST  # noqa: N815 (http.server's name)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Hook) as made:
        made.daemon_threads = True
        made.got, made.answers, made.let_go, made.elsewhere = [], [], threading.Event(), ""
        made.url = f"http://127.0.0.1:{made.server_port}/{SECRET}?key={SECRET}"
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.let_go.set()
        made.shutdown()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")


def test_it_arrives(server):
    send(server.url, {"text": "hello ✓"})
    assert server.got == [(f"/{SECRET}?key={SECRET}", "application/json", {"text": "hello ✓"})]


def test_it_is_tried_again_with_growing_pauses(server):
    server.answers[:] = [500, 503, 429, 408, 200]
    pauses = []
    send(server.url, {}, pauses.append)
    assert len(server.got) == 5
    assert pauses == sorted(pauses)
    assert len(set(pauses)) == 4


def test_after_five_tries_it_is_given_up(server):
    server.answers[:] = [500] * 9
    with pytest.raises(Refused, match=r"refuses the message \(HTTP 500\)"):
        send(server.url, {}, lambda pause_s: None)
    assert len(server.got) == 5


@pytest.mark.parametrize("code", [400, 401, 403, 404, 410, 413])
def test_a_refusal_is_final(server, code):
    server.answers[:] = [code]
    with pytest.raises(Refused, match=rf"refuses the message \(HTTP {code}\)"):
        send(server.url, {}, lambda pause_s: pytest.fail("tried again"))
    assert len(server.got) == 1


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(server, code):
    with ThreadingHTTPServer(("127.0.0.1", 0), Hook) as other:
        other.got, other.answers = [], []
        threading.Thread(target=other.serve_forever, daemon=True).start()
        server.elsewhere = f"http://127.0.0.1:{other.server_port}/elsewhere"
        server.answers[:] = [code]
        with pytest.raises(Refused, match=rf"leads to another address \(HTTP {code}\)") as refused:
            send(server.url, {}, lambda pause_s: pytest.fail("tried again"))
        other.shutdown()
    assert other.got == []
    assert "elsewhere" not in str(refused.value)


def test_a_try_has_a_limit(server, monkeypatch):
    monkeypatch.setattr(webhook, "TRY_S", 0.4)
    server.answers[:] = ["hang"]
    begun_s = time.monotonic()
    with pytest.raises(Refused, match=r"not answer.*in time") as refused:
        post(server.url, {})
    assert time.monotonic() - begun_s < LIMIT_S / 2
    assert refused.value.again


def test_nobody_there():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/{SECRET}"
        with pytest.raises(Refused, match=r"cannot be reached \(connection refused\)") as refused:
            post(url, {})
    assert refused.value.again


def test_something_else_than_a_web_server():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def speak():
            connection, _ = server.accept()
            connection.recv(4096)
            connection.sendall(b"220 mail ready\r\n")
            connection.close()

        threading.Thread(target=speak, daemon=True).start()
        with pytest.raises(Refused, match="does not answer as a web server does"):
            post(f"http://127.0.0.1:{server.getsockname()[1]}/{SECRET}", {})


BAD = [
    f"ftp://host/{SECRET}",
    f"file:///{SECRET}",
    f"{SECRET}",
    f"https:///{SECRET}",
    f"http://host:port/{SECRET}",
    f"http://host/{SECRET}\r\nX: y",
    f"http://ho st/{SECRET}",
    f"http://[::1/{SECRET}",
    f"https://host/{SECRET}" + "x" * 5000,
    "",
]


@pytest.mark.parametrize("url", BAD)
def test_addresses_that_cannot_be_used_are_refused_without_showing_them(url):
    with pytest.raises(ConfigError, match="webhook 2 is not a web address") as error:
        check_urls(["https://example.org/x", url])
    assert SECRET not in str(error.value)
    assert error.value.__cause__ is None


@pytest.mark.parametrize("url", BAD)
def test_whatever_goes_wrong_the_address_is_not_told(url, monkeypatch):
    monkeypatch.setattr(webhook, "TRY_S", 2.0)
    with pytest.raises(Refused) as refused:
        post(url, {})
    assert SECRET not in str(refused.value)


def test_a_webhook_that_hangs_keeps_neither_others_nor_the_caller_waiting(server, monkeypatch):
    monkeypatch.setattr(webhook, "TRY_S", 10 * LIMIT_S)
    monkeypatch.setattr(webhook, "PAUSES_S", ())
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        messenger = Messenger([f"http://127.0.0.1:{hanging.getsockname()[1]}/{SECRET}", server.url], lambda text: None)
        begun_s = time.monotonic()
        for number in range(3):
            messenger.send({"number": number})
        while len(server.got) < 3:
            assert time.monotonic() - begun_s < LIMIT_S
            time.sleep(0.01)
        assert [message["number"] for _, _, message in server.got] == [0, 1, 2]
        assert not messenger.drain(0.0)  # the first one still hangs


def test_a_broken_webhook_is_told_once_and_without_its_address(monkeypatch):
    monkeypatch.setattr(webhook, "PAUSES_S", (0.01,))
    said = []
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        messenger = Messenger([f"http://127.0.0.1:{closed.getsockname()[1]}/{SECRET}"], said.append)
        for number in range(3):
            messenger.send({"number": number})
        assert messenger.drain(LIMIT_S)
    assert said == ["webhook 1: it cannot be reached (connection refused)"]


def test_more_than_can_wait_is_dropped(server, monkeypatch):
    monkeypatch.setattr(webhook, "MOST_WAITING", 2)
    monkeypatch.setattr(webhook, "PAUSES_S", (0.01,))
    server.answers[:] = ["hang"]
    messenger = Messenger([server.url], lambda text: None)
    for number in range(50):
        messenger.send({"number": number})
    assert not messenger.drain(0.2)
    server.let_go.set()
    assert messenger.drain(LIMIT_S)
    assert len(server.got) <= 4  # one of them twice


def test_a_failure_is_told_again_only_after_it_worked(server):
    said = []
    messenger = Messenger([server.url], said.append)
    server.answers[:] = [404, 404, 204, 403]
    for number in range(4):
        messenger.send({"number": number})
        assert messenger.drain(LIMIT_S)
    assert said == ["webhook 1: it refuses the message (HTTP 404)", "webhook 1: it refuses the message (HTTP 403)"]
