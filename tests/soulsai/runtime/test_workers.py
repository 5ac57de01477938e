"""What worker processes do: they count what they send, show that they live, and say why they cannot play."""

import threading

import pytest

from soulsai.acting.worker import WorldFailed
from soulsai.errors import WorkerError
from soulsai.runtime import workers
from soulsai.runtime.workers import Board, watched
from soulsai.transport.links import Account, Progress, version_of


class Control:
    """What a process knows of itself, without a process."""

    def __init__(self):
        self.touches, self.touched, self.worked = 0, threading.Event(), threading.Event()

    def touch(self):
        self.touches += 1
        self.touched.set()

    def work(self):
        self.worked.set()

    @property
    def has_worked(self):
        return self.worked.is_set()


class Link:
    """A link that only counts."""

    run, worker, stopping, is_near = "mine", "alice.0.00000a", False, False

    def __init__(self):
        self.progress, self.rows, self.is_waiting, self.has_sent, self.closed = Progress(), 0, False, False, False

    def account(self):
        return Account(self.worker, self.rows, 0, {"buffer_full": 3})

    def unsent(self):
        return 7

    def close(self):
        self.rows += 1
        self.stopping = self.closed = True


def test_the_board_goes_on_counting_with_a_new_life():
    board = Board(2)
    for life in range(3):
        link = Link()
        board.begin(1)
        link.progress = Progress("playing", version_of(2, 5 + life), 40, 20.0, episodes=4, wins=1, fights=3)
        link.rows = 100
        workers._tell(board, 1, link)
    assert board.read(0) == dict.fromkeys(board.read(0), 0.0)
    assert board.read(1) == {
        "policy": version_of(2, 7), "steps": 120, "steps_per_s": 20, "episodes": 12, "wins": 3, "fights": 9,
        "unsent": 7, "sent": 300, "dropped": 9,
    }  # fmt: skip
    with watched(link, Control(), lambda: workers._tell(board, 1, link)):
        pass
    assert link.closed
    assert (board.read(1)["steps_per_s"], board.read(1)["sent"]) == (0.0, 301)


def test_a_worker_that_waits_has_not_hung(monkeypatch):
    monkeypatch.setattr(workers, "TOUCH_S", 0.01)
    link, control, told = Link(), Control(), threading.Semaphore(0)
    with watched(link, control, told.release):
        for _ in range(3):
            assert told.acquire(timeout=60.0)
        assert not control.touches
        assert not control.has_worked
        link.is_waiting = True
        assert control.touched.wait(60.0)
        link.is_waiting, link.has_sent = False, True
        assert control.worked.wait(60.0)
        for _ in range(3):  # one touch may have been on its way
            assert told.acquire(timeout=60.0)
        before = control.touches
        for _ in range(10):
            assert told.acquire(timeout=60.0)
        assert control.touches == before
    assert link.closed


def test_what_was_sent_at_the_very_end_counts():
    link, control = Link(), Control()
    with watched(link, control):
        link.has_sent = True
    assert control.has_worked


def test_an_environment_that_cannot_be_played_is_named(monkeypatch):
    class Broken:
        def run(self):
            raise WorldFailed("GameNotFound: the game is not running")

    monkeypatch.setattr("soulsai.learning.wiring.build_worker", lambda *_, **__: Broken())
    with pytest.raises(WorkerError, match=r"^its environment cannot be played \(GameNotFound: .* not running\)$"):
        workers._play(None, Link(), Control())
