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
        (page,) = [child for child in children if "dashboard" in child.cmdline()]
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
    training.said(r"the page is gone \(its process was ended\); training continues; open it again with: souls")
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


def test_what_cannot_be_is_refused_before_anything_is_made(tmp_path):
    for url in ("ftp://example.org/secret", "secret"):
        result = CliRunner().invoke(app, ["train", *QUICK, "--notify", url, "--run", str(tmp_path / "run")])
        assert isinstance(result.exception, ConfigError), result.output
        assert "must begin with https:// or http://" in str(result.exception)
        assert "secret" not in str(result.exception)
        assert not (tmp_path / "run").exists()
