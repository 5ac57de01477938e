"""`souls notify`: what it refuses, the test message, and that it never shows an address."""

import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
import typer
from typer.testing import CliRunner

from soulsai.cli import dashboard as command
from soulsai.errors import ConfigError, RunError
from soulsai.runs.run import Run
from soulsai.runs.status import Status
from soulsai.telemetry import webhook

SECRET = "s3cr3t"


@pytest.fixture
def souls(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv("SOULS_NOTIFY", raising=False)
    monkeypatch.setattr(webhook, "PAUSES_S", (0.01,))
    monkeypatch.setattr(command, "BEGIN_S", 0.1)
    app = typer.Typer()
    app.command()(command.notify)

    def run(*words, **environment):
        return CliRunner().invoke(app, [str(word) for word in words], env=environment)

    return run


@pytest.fixture
def folder(tmp_path):
    run = Run.create(tmp_path / "mine", "[run]\nseed = 1\n", preset="smoke", command=["souls"])
    run.write_status(Status("stopped", 7, 10, 0.5, 0.4, 0.6))
    return run.folder


class Hook(BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.got.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(self.server.code)
        self.end_headers()

    def log_message(self, *args):
        pass


@pytest.fixture
def hook():
    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        server.got, server.code = [], 204
        server.url = f"http://127.0.0.1:{server.server_port}/{SECRET}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_a_test_message_arrives(souls, folder, hook):
    done = souls(folder, "--url", hook.url, "--test")
    assert (done.exit_code, done.output) == (0, "webhook 1: the message has arrived\n")
    assert b"mine: this is a test; the run is stopped" in hook.got[0]


def test_several_addresses_from_the_variable(souls, folder, hook):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}/{SECRET}"
        done = souls(folder, "--test", SOULS_NOTIFY=f"{hook.url} {nobody}")
    assert done.exit_code == 1
    assert "webhook 1: the message has arrived" in done.output
    assert "webhook 2: it cannot be reached (connection refused)" in done.output
    assert SECRET not in done.output


def test_a_refusal_is_one_line(souls, folder, hook):
    hook.code = 404
    done = souls(folder, "--url", hook.url, "--test")
    assert (done.exit_code, done.output) == (1, "webhook 1: it refuses the message (HTTP 404)\n")


def test_a_run_that_nobody_trains(souls, folder, hook):
    done = souls(folder, "--url", hook.url)
    assert isinstance(done.exception, RunError)
    assert "is not being trained (it is stopped)" in str(done.exception)


def test_no_address(souls, folder):
    done = souls(folder)
    assert isinstance(done.exception, ConfigError)
    assert "set SOULS_NOTIFY" in str(done.exception)


def test_an_address_that_cannot_be_used_is_not_shown(souls, folder):
    done = souls(folder, "--url", f"ftp://host/{SECRET}")
    assert isinstance(done.exception, ConfigError)
    assert SECRET not in str(done.exception) + done.output


def test_the_help_shows_no_address(souls, hook):
    done = souls("--help", SOULS_NOTIFY=hook.url)
    assert done.exit_code == 0
    assert SECRET not in done.output
