"""The page beside a training: whatever happens to either, the other is not disturbed, and nothing stays behind."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import psutil
import pytest

from soulsai.dashboard import child as child_module
from soulsai.dashboard.child import dashboard_child
from soulsai.processes.supervisor import NICE, Command

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
LIMIT_S = 120.0


class News:
    def __init__(self):
        self.lines = []
        self._more = threading.Condition()

    def say(self, text):
        with self._more:
            self.lines.append(text)
            self._more.notify_all()

    def wait(self, count=1, limit_s=LIMIT_S):
        with self._more:
            assert self._more.wait_for(lambda: len(self.lines) >= count, limit_s), self.lines
            return self.lines[count - 1]


@pytest.fixture
def news():
    return News()


def answers(url):
    try:
        with urllib.request.urlopen(url + "healthz", timeout=LIMIT_S) as answer:
            return answer.read() == b"ok"
    except OSError:
        return False


def until(condition, limit_s=LIMIT_S):
    deadline_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline_s, "it did not happen"
        time.sleep(0.05)


def pages_of(parent):
    """Processes of pages that a process has started."""
    found = []
    for each in psutil.Process(parent).children():
        with contextlib.suppress(psutil.Error):  # it has ended
            if child_module.CHILD in each.cmdline():
                found.append(each)
    return found


def is_gone(process):
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_it_is_there_during_the_block_and_not_after(root, news):
    with dashboard_child(root / "one", news.say):
        line = news.wait()
        assert line.startswith("the page of this run: http://127.0.0.1:")
        url = line.split(": ", 1)[1]
        assert answers(url)
        (page,) = pages_of(os.getpid())
        assert page.nice() == min(psutil.Process().nice() + NICE, 19)
        assert os.getpgid(page.pid) != os.getpgid(0)  # Ctrl-C in the terminal does not reach it
    assert is_gone(page)  # its port may already be that of another page
    assert len(news.lines) == 1


def test_a_killed_page_is_one_line_of_news(root, news):
    with dashboard_child(root / "one", news.say):
        news.wait()
        (page,) = pages_of(os.getpid())
        page.kill()
        assert "the page is gone (its process was ended); training continues" in news.wait(2)
        time.sleep(0.3)
    assert len(news.lines) == 2


@pytest.fixture
def mute(monkeypatch):
    """In the place of the page a process that never answers."""

    monkeypatch.setattr(Command, "module", lambda module, words, **pipes: Command(["sleep", "600"], **pipes))


def test_the_training_waits_neither_for_its_beginning_nor_for_its_end(root, news, mute, monkeypatch):
    monkeypatch.setattr(child_module, "END_S", 0.3)
    began_s = time.monotonic()
    with dashboard_child(root / "one", news.say):
        pass
    assert time.monotonic() - began_s < LIMIT_S
    assert news.lines == []


def test_a_process_that_cannot_be_started(root, news, monkeypatch):
    def fail(command):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(Command, "start", fail)
    with dashboard_child(root / "one", news.say):
        pass
    assert news.lines == ["the page does not start (Cannot allocate memory); training continues without it"]


def test_a_missing_package(root, news, tmp_path, monkeypatch):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "sitecustomize.py").write_text("import sys; sys.modules['uvicorn'] = None")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "broken"), prepend=os.pathsep)
    with dashboard_child(root / "one", news.say):
        assert "pip install 'souls-arena[dashboard]'" in news.wait()
    assert len(news.lines) == 1


TRAINING = """
import sys, time
from pathlib import Path
from soulsai.dashboard.child import dashboard_child
from soulsai.runs.run import Run
from soulsai.runs.status import Status
run = Run(Path(sys.argv[1]))
run.write_status(Status("running"))
with run.lock(), dashboard_child(run.folder, lambda text: print(text, flush=True)):
    time.sleep(600)
"""


def line_with(stream, text):
    return next(line for line in map(bytes.decode, stream) if text in line)


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
def test_it_goes_when_the_training_was_killed(root, sign):
    training = subprocess.Popen([sys.executable, "-c", TRAINING, str(root / "one")], stdout=subprocess.PIPE, text=True)
    try:
        url = training.stdout.readline().split(": ", 1)[1].strip()
        (page,) = pages_of(training.pid)
        with urllib.request.urlopen(url + "api/events?run=one", timeout=LIMIT_S) as stream:
            assert '"state":"running"' in line_with(stream, '"newest_fight"')
            training.send_signal(sign)
            training.wait(LIMIT_S)
            assert '"state":"killed"' in line_with(stream, '"newest_fight"'), "the last word of its page"
        until(lambda: is_gone(page))
    finally:
        training.kill()


def test_an_error_in_the_block_goes_through(root, news):
    with pytest.raises(ZeroDivisionError), dashboard_child(Path(root / "one"), news.say):
        raise ZeroDivisionError
    until(lambda: not pages_of(os.getpid()))
