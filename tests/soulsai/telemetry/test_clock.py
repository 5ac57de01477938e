"""The clock of the loop, against a perf_counter that is moved by hand."""

import pytest

from soulsai.telemetry import clock as module
from soulsai.telemetry.clock import LoopClock


@pytest.fixture
def hand(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(module, "perf_counter", lambda: now[0])

    def wait(seconds):
        now[0] += seconds

    return wait


def test_phases_add_up(hand):
    clock = LoopClock()
    for _ in range(2):
        with clock.phase("act"):
            hand(1.0)
        with clock.phase("learn"):
            hand(2.0)
        hand(1.0)
    assert clock.total == 8.0
    assert clock.shares() == {"act": 0.25, "learn": 0.5, "other": 0.25}


def test_take_begins_anew(hand):
    clock = LoopClock()
    with clock.phase("act"):
        hand(3.0)
    assert clock.take() == {"other": 0.0, "act": 3.0}
    hand(1.0)
    assert clock.take() == {"other": 1.0}
    assert clock.total == 0.0


def test_time_within_a_phase_counts_once(hand):
    clock = LoopClock()
    with clock.phase("learn"):
        hand(1.0)
        with clock.phase("sample"):
            hand(2.0)
            with clock.phase("learn"):
                hand(4.0)
        hand(8.0)
    assert clock.take() == {"other": 0.0, "learn": 13.0, "sample": 2.0}


def test_take_within_a_phase(hand):
    clock = LoopClock()
    with clock.phase("log"):
        hand(1.0)
        assert clock.take() == {"other": 0.0, "log": 1.0}
        hand(2.0)
    assert clock.take() == {"log": 2.0, "other": 0.0}


def test_an_error_ends_the_phase(hand):
    clock = LoopClock()
    with pytest.raises(KeyError), clock.phase("act"):
        raise KeyError
    hand(1.0)
    assert clock.take() == {"other": 1.0, "act": 0.0}


def test_nothing_passed(hand):
    assert LoopClock().shares() == {"other": 0.0}


def test_a_phase_looks_at_the_time_twice_and_is_made_once(monkeypatch):
    clock, looks = LoopClock(), []
    monkeypatch.setattr(module, "perf_counter", lambda: looks.append(1) or 0.0)
    phase = clock.phase("act")
    for _ in range(3):
        with clock.phase("act"):
            pass
    assert len(looks) == 2 * 3
    assert clock.phase("act") is phase
