"""`souls watch --terminal` on a real pseudo terminal: it plays, and gives the terminal back."""

import os
import select
import signal
import struct
import sys
import time

import pytest

from soulsai.evaluation import ScriptedFighter, evaluate
from soulsai.evaluation.fight_recorder import FightRecorder
from soulsai.evaluation.thoughts import write_fight_file

fcntl, pty, termios = (pytest.importorskip(name) for name in ("fcntl", "pty", "termios"))
LIMIT_S = 180.0


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    recorder = FightRecorder(1)
    evaluate(ScriptedFighter("duellist"), 1, seed=4, recorder=recorder, step_limit=120)
    path = tmp_path_factory.mktemp("fights") / "duel.npz"
    write_fight_file(path, recorder.fight(0), {})
    return path


UNWANTED = ("NO_COLOR", "COLUMNS", "LINES")
"""Of the environment: whoever runs the tests may have set them."""


class Session:
    """`souls watch` on a pseudo terminal."""

    def __init__(self, words, columns, rows, **environment):
        self.master, slave = pty.openpty()
        self.slave = slave
        self.resize(columns, rows)
        self.before = termios.tcgetattr(slave)
        code = "from soulsai.cli.main import main; main()"
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for number in (0, 1, 2):
                os.dup2(slave, number)
            kept = {key: value for key, value in os.environ.items() if key not in UNWANTED}
            os.execve(sys.executable, [sys.executable, "-c", code, *words], kept | {"TERM": "xterm"} | environment)
        self.seen = b""
        self.ended = None

    def resize(self, columns, rows):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds):
        ready, _, _ = select.select([self.master], [], [], seconds)
        if ready:
            self.seen += os.read(self.master, 65536)
        return bool(ready)

    def until(self, text, what):
        deadline_s = time.monotonic() + LIMIT_S
        while text.encode() not in self.seen:
            assert time.monotonic() < deadline_s, f"{what} did not come within {LIMIT_S:.0f} s: {self.seen[-500:]!r}"
            self.read(0.2)

    def end(self):
        deadline_s = time.monotonic() + LIMIT_S
        while self.ended is None:
            assert time.monotonic() < deadline_s, f"it did not end within {LIMIT_S:.0f} s"
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.ended = os.waitstatus_to_exitcode(status)
        while self.read(0.2):
            pass
        return self.ended

    def is_as_before(self):
        modes = termios.tcgetattr(self.slave)[:4] == self.before[:4]
        return (
            modes
            and self.seen.rfind(b"\x1b[?1049l") > self.seen.rfind(b"\x1b[?1049h") >= 0
            and b"\x1b[?25h" in self.seen
        )

    def close(self):
        if self.ended is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def session(file):
    made = []

    def start(*words, columns=100, rows=30, **environment):
        made.append(Session(["watch", str(file), "--terminal", *words], columns, rows, **environment))
        return made[-1]

    yield start
    for each in made:
        each.close()


def test_plays_to_the_end(session):
    one = session()
    one.until("\x1b[38;2;", "colours")
    one.until("▀", "the picture")
    assert one.end() == 0
    assert one.is_as_before()
    assert b"TIME OUT" in one.seen
    assert b"time-out after 12.0 s" in one.seen


def test_resized(session):
    one = session(columns=30, rows=8)
    one.until("this terminal has", "the sentence about the size")
    one.resize(90, 28)
    one.until("▀", "the picture")
    os.kill(one.pid, signal.SIGINT)
    assert one.end() != 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_killed_it_gives_the_terminal_back(session, number):
    one = session()
    one.until("▀", "the picture")
    os.kill(one.pid, number)
    assert one.end() != 0
    assert one.is_as_before()
