"""Those who look at a training: the live page, webhooks, W&B; and that none of them disturbs it."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psutil
import pytest
from typer.testing import CliRunner

from soulsai.cli.main import app
from soulsai.errors import ConfigError

LIMIT_S = 240.0
QUICK = ["smoke", "--accept-all", "--plain", "--set", "run.threads=1", "--set", "fight.number=4", "--set",
         "ppo.minibatch=64", "--set", "network.hidden=[8]", "--set", "run.evaluate_every_steps=0", "--set",
         "run.final_fights=0", "--set", "run.log_every_s=0.1"]  # fmt: skip


class Souls:
    """A training in a process of its own, whose lines are read as they come."""

    def __init__(self, *words):
        command = [sys.executable, "-c", "from soulsai.cli.main import main; main()", *map(str, words)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line)

    def said(self, pattern):
        """What it says that looks so, as soon as it does."""
        deadline_s = time.monotonic() + LIMIT_S
        while True:
            is_over = not self._reader.is_alive() or time.monotonic() > deadline_s  # before the last look
            for line in tuple(self.lines):
                if found := re.search(pattern, line):
                    return found
            assert not is_over, f"never said {pattern}:\n{''.join(self.lines)}"
            time.sleep(0.05)

    def page(self):
        """The process of its page."""
        children = psutil.Process(self.process.pid).children()
        (page,) = [child for child in children if "soulsai.dashboard.child" in child.cmdline()]
        return page

    def end(self):
        code = self.process.wait(LIMIT_S)
        self._reader.join(LIMIT_S)
        return code


@pytest.fixture
def souls():
    started = []

    def start(*words):
        started.append(Souls(*words))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()


def get(url):
    with urllib.request.urlopen(url, timeout=LIMIT_S) as answer:
        return json.loads(answer.read())


@pytest.mark.slow
def test_the_page_of_a_training_and_a_training_whose_page_is_killed(souls, tmp_path):
    training = souls("train", *QUICK, "--dashboard", "--set", "run.steps=100000000", "--run", tmp_path / "run")
    url = training.said(r"the page of this run: (http://127\.0\.0\.1:\d+/)")[1]
    training.said(r"steps \(")
    (shown,) = get(f"{url}api/runs")["runs"]
    assert (shown["id"], shown["state"], shown["live"]) == ("run", "running", True)
    training.page().kill()
    training.said(r"the page is gone \(its process was ended\); training goes on; open it again with: souls dashboard")
    rows = len((tmp_path / "run/metrics.jsonl").read_text().splitlines())
    deadline_s = time.monotonic() + LIMIT_S
    while len((tmp_path / "run/metrics.jsonl").read_text().splitlines()) < rows + 3:
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    training.process.send_signal(signal.SIGINT)
    assert training.end() == 130


@pytest.mark.slow
def test_a_page_does_not_outlive_a_killed_training(souls, tmp_path):
    training = souls("train", *QUICK, "--dashboard", "--set", "run.steps=100000000", "--run", tmp_path / "run")
    training.said("the page of this run")
    page = training.page()
    os.kill(training.process.pid, signal.SIGKILL)
    page.wait(LIMIT_S)


class Hook(BaseHTTPRequestHandler):
    """Keeps what is sent to it; with `hangs`, it never answers."""

    hangs = False

    def do_POST(self):
        self.server.told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        if self.hangs:
            self.server.over.wait(LIMIT_S)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def hook():
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (Hook,), {}))
    server.told, server.over = [], threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.over.set()
    server.shutdown()
    server.server_close()


@pytest.mark.slow
def test_a_webhook_is_told_of_the_end_and_is_kept_nowhere(souls, hook, tmp_path):
    url = f"http://127.0.0.1:{hook.server_address[1]}/services/secret"
    training = souls("train", *QUICK, "--notify", url, "--set", "run.steps=3000", "--run", tmp_path / "run")
    assert training.end() == 0, "".join(training.lines)
    deadline_s = time.monotonic() + LIMIT_S
    while not hook.told and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert [told["event"] for told in hook.told] == ["finished"]
    kept = [file for file in (tmp_path / "run").rglob("*") if file.is_file() and b"secret" in file.read_bytes()]
    assert kept == []
    assert "secret" not in "".join(training.lines)


@pytest.mark.slow
def test_a_webhook_that_hangs_holds_nobody_up(souls, hook, tmp_path):
    hook.RequestHandlerClass.hangs = True
    url = f"http://127.0.0.1:{hook.server_address[1]}/hook"
    training = souls("train", *QUICK, "--notify", url, "--set", "run.steps=3000", "--run", tmp_path / "run")
    training.said(r"3,\d\d\d steps \(100%\)|report:")
    ended_s = time.monotonic()
    assert training.end() == 0
    assert time.monotonic() - ended_s < 45.0  # the tries to tell it take more than a minute


def test_what_cannot_be_is_refused_before_anything_is_made(tmp_path):
    for url in ("ftp://example.org/secret", "secret"):
        result = CliRunner().invoke(app, ["train", *QUICK, "--notify", url, "--run", str(tmp_path / "run")])
        assert isinstance(result.exception, ConfigError), result.output
        assert "must begin with https:// or http://" in str(result.exception)
        assert "secret" not in str(result.exception)
        assert not (tmp_path / "run").exists()
