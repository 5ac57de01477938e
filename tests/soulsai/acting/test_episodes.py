"""How training episodes went, counted by hand."""

import math

import numpy as np
import pytest

from soulsai.acting.episodes import WINDOW, Episodes, Recent, Running
from soulsai.experience import Ended
from soulsgym.batch import Step


def step_of(terms, steps, *, terminated=(), truncated=(), won=(), standard=None):
    """A step of as many fights as there are rows of terms; who ended, won and so on by number."""
    n = len(terms)
    step = Step.of_size(n, 1, 1, len(terms[0]))
    step.terms[:], step.steps[:] = terms, steps
    step.rewards[:] = step.terms.sum(axis=1)
    for flags, which in ((step.terminated, terminated), (step.truncated, truncated), (step.won, won)):
        flags[list(which)] = True
    step.ended[:] = step.terminated | step.truncated
    step.standard[list(range(n) if standard is None else standard)] = True
    return step


class Counted:
    """Episodes that run, and what is known of those that ended."""

    def __init__(self, n, terms, *, fights):
        self.running, self.known = Running(n, len(terms)), Episodes(terms, fights=fights)

    def add(self, step):
        self.running.add(step)
        self.known.record(self.running.take())

    def __getattr__(self, name):
        return getattr(self.known, name)


def test_nothing_before_the_first_end():
    episodes = Counted(2, ("dealt",), fights=True)
    episodes.add(step_of([[1.0], [2.0]], [1, 1]))
    assert episodes.metrics() == {}
    assert episodes.recent_wins == (0, 0)


def test_returns_lengths_and_wins_by_hand():
    episodes = Counted(3, ("dealt", "taken"), fights=True)
    episodes.add(step_of([[1, 0], [2, -1], [0, 0]], [1, 2, 3]))
    episodes.add(step_of([[1, -3], [0, 0], [5, 0]], [4, 1, 1], terminated=[0], won=[0]))
    # The first fight begins again from nothing; the second is cut off.
    episodes.add(step_of([[7, 0], [4, -2], [1, 0]], [2, 2, 2], truncated=[1]))
    assert episodes.metrics() == pytest.approx(
        {
            "reward/dealt": (2 + 6) / 2,
            "reward/taken": (-3 - 3) / 2,
            "return/training": (8 - 6) / 2,
            "episode/length": (5 + 5) / 2,
            "episode/time_s": 0.5,
            "episodes": 2,
            "wins": 1,
            "time_outs": 1,
            "win_rate/training": 0.5,
        }
    )
    assert episodes.recent_wins == (1, 2)
    assert episodes.episodes == 2


def test_wins_count_among_standard_starts_only():
    episodes = Counted(4, ("dealt",), fights=True)
    ends = step_of([[1.0]] * 4, [1] * 4, terminated=[0, 1, 2], truncated=[3], won=[0, 1], standard=[0, 2])
    episodes.add(ends)
    metrics = episodes.metrics()
    assert (metrics["episodes"], metrics["wins"], metrics["time_outs"]) == (4, 1, 0)
    assert metrics["win_rate/training"] == 0.5


def test_no_win_rate_before_the_first_standard_fight():
    episodes = Counted(1, ("dealt",), fights=True)
    episodes.add(step_of([[1.0]], [1], terminated=[0], won=[0], standard=[]))
    assert "win_rate/training" not in episodes.metrics()


def test_gymnasium_episodes_have_neither_terms_nor_wins():
    episodes = Counted(1, ("reward",), fights=False)
    episodes.add(step_of([[3.0]], [1], terminated=[0]))
    assert episodes.metrics() == {"return/training": 3.0, "episode/length": 1.0, "episodes": 1.0}


def test_only_the_last_episodes_count():
    episodes = Counted(1, ("reward",), fights=True)
    for number in range(WINDOW + 50):
        episodes.add(step_of([[float(number)]], [1], terminated=[0], won=[0] if number < 50 else []))
    metrics = episodes.metrics()
    assert metrics["return/training"] == pytest.approx((50 + WINDOW + 49) / 2)
    assert metrics["win_rate/training"] == 0.0
    assert (metrics["episodes"], metrics["wins"]) == (WINDOW + 50, 50)


def test_more_episodes_than_the_window_end_at_once():
    n = WINDOW + 10
    episodes = Counted(n, ("reward",), fights=True)
    episodes.add(step_of(np.arange(n, dtype=float)[:, None], [1] * n, terminated=range(n), won=range(10)))
    assert episodes.metrics()["return/training"] == pytest.approx((10 + n - 1) / 2)
    assert episodes.recent_wins == (0, WINDOW)
    assert episodes.metrics()["wins"] == 10


def test_state_round_trip():
    def begun():
        return Counted(2, ("a", "b"), fights=True)

    counted = begun()
    counted.add(step_of([[1, 2], [3, 4]], [1, 1], terminated=[0], won=[0]))
    running, episodes = counted.running.state(), counted.known.state()
    last = step_of([[1, 1], [1, 1]], [1, 1], terminated=[0, 1])
    counted.add(last)
    other = begun()
    other.running.restore(running)
    other.known.restore(episodes)
    other.add(last)
    assert other.metrics() == counted.metrics()
    assert other.recent_wins == counted.recent_wins == (1, 3)
    assert running["terms"].tolist() == [[0, 0], [3, 4]]


def test_what_ended_is_taken_once():
    running = Running(2, 1)
    step = step_of([[1.0], [2.0]], [1, 1], standard=[])
    running.add(step)
    running.add(step_of([[1.0], [2.0]], [1, 1], terminated=[1], won=[1], standard=[1]))
    taken = running.take()
    assert (taken.terms.tolist(), taken.lengths.tolist(), taken.won.tolist()) == ([[4.0]], [2], [True])
    assert len(running.take().lengths) == 0


def test_episodes_of_others_count_as_own():
    episodes = Episodes(("dealt", "taken"), fights=True)
    flags = np.array([True, True])
    episodes.record(Ended(np.ones((2, 2)), np.array([10, 20]), flags, np.array([True, False]), ~flags))
    assert episodes.recent_wins == (1, 2)
    assert episodes.metrics()["episode/length"] == 15.0
    assert episodes.metrics()["wins"] == 1.0


def test_recent_is_a_ring():
    recent = Recent(2)
    assert len(recent) == 0
    assert all(math.isnan(value) for value in recent.mean())
    recent.add(np.array([[1.0, 10.0], [3.0, 30.0]]))
    assert recent.mean().tolist() == [2.0, 20.0]
    recent.add(np.tile([[5.0, 50.0]], (WINDOW - 1, 1)))
    # 1 is forgotten, 3 and all the fives are left.
    assert len(recent) == WINDOW
    assert recent.mean()[0] == pytest.approx((3 + 5 * (WINDOW - 1)) / WINDOW)
