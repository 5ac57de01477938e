"""The threads of the engine: they sleep, wake up, and go home."""

from __future__ import annotations

import gc
import threading
import time

import numpy as np

from soulsgym.controls import ACTION_CONTROLS
from soulsgym.engine import standard_starts
from soulsgym.movesets import load_moveset
from soulsgym.sim.engine import SimEngine

FIGHTS = 12
WALK = ACTION_CONTROLS[np.zeros(FIGHTS, np.int64)]
LONG_IDLE_S = 0.3
"""Longer than a worker watches for work before it sleeps."""


def engine(threads: int) -> SimEngine:
    made = SimEngine(load_moveset("iudex"), FIGHTS, threads=threads)
    made.reset(np.ones(FIGHTS, np.bool_), standard_starts(FIGHTS), np.arange(FIGHTS, dtype=np.uint64))
    return made


def workers() -> int:
    return sum(thread.name.startswith("fights-") for thread in threading.enumerate())


def workers_left() -> int:
    """How many there are once those that are on their way home have gone."""
    gc.collect()
    time.sleep(LONG_IDLE_S)
    return workers()


def wait_for_workers(count: int) -> None:
    limit = time.monotonic() + 5.0
    while workers() != count and time.monotonic() < limit:
        time.sleep(0.01)
    assert workers() == count


def test_a_sleeping_worker_wakes_up_for_the_next_step() -> None:
    alone, crew = engine(1), engine(3)
    for idle_s in (0.0, LONG_IDLE_S, 0.0, LONG_IDLE_S):
        time.sleep(idle_s)
        alone.step(WALK)
        crew.step(WALK)
        assert crew.fights.tobytes() == alone.fights.tobytes()
    crew.close()


def test_an_idle_crew_costs_next_to_nothing() -> None:
    crew = engine(3)
    crew.step(WALK)
    time.sleep(LONG_IDLE_S)
    before_s = time.process_time()
    time.sleep(LONG_IDLE_S)
    assert time.process_time() - before_s < 0.2 * LONG_IDLE_S
    crew.close()


def test_one_thread_starts_no_workers() -> None:
    before = workers_left()
    engine(1).step(WALK)
    assert workers() == before


def test_workers_end_with_close_and_with_their_engine() -> None:
    before = workers_left()
    closed, dropped = engine(3), engine(2)
    assert workers() == before + 3
    closed.close()
    wait_for_workers(before + 1)
    del dropped
    gc.collect()
    wait_for_workers(before)
