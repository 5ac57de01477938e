"""The threads of the engine: they sleep, wake up, and go home."""

from __future__ import annotations

import gc
import threading
import time

import numpy as np

from soulsgym.actions import ACTION_CONTROLS
from soulsgym.engine import standard_starts
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import load_fight

FIGHTS = 12
WALK = ACTION_CONTROLS[np.zeros(FIGHTS, np.int64)]
LONG_IDLE_S = 0.3
"""Longer than a worker watches for work before it sleeps."""


def engine(threads: int) -> SimEngine:
    made = SimEngine(load_fight("iudex"), FIGHTS, threads=threads)
    made.reset(np.ones(FIGHTS, np.bool_), standard_starts(FIGHTS), np.arange(FIGHTS, dtype=np.uint64))
    return made


def workers() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("fights-")}


def wait_for_workers(count: int, before: set[threading.Thread]) -> None:
    limit = time.monotonic() + 60.0
    while len(workers() - before) != count and time.monotonic() < limit:
        time.sleep(0.01)
    assert len(workers() - before) == count


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
    for _ in range(10):  # again if other threads were at work, or these had not had the time to fall asleep
        before_s = time.process_time()
        time.sleep(LONG_IDLE_S)
        spent_s = time.process_time() - before_s
        if spent_s < 0.2 * LONG_IDLE_S:
            break
    assert spent_s < 0.2 * LONG_IDLE_S
    crew.close()


def test_one_thread_starts_no_workers() -> None:
    before = workers()
    engine(1).step(WALK)
    assert workers() <= before


def test_workers_end_with_close_and_with_their_engine() -> None:
    before = workers()
    closed, dropped = engine(3), engine(2)
    assert len(workers() - before) == 3
    closed.close()
    wait_for_workers(1, before)
    del dropped
    gc.collect()
    wait_for_workers(0, before)
