"""The threads of the engine: they help, are not waited for in vain, and end."""

import gc
import threading
import time

import numpy as np
import pytest

from soulsgym.actions import ACTION_CONTROLS
from soulsgym.engine import standard_starts
from soulsgym.sim import engine as engine_module
from soulsgym.sim.engine import BLOCK, SimEngine

FIGHTS = 8 * BLOCK + 1
WALK = ACTION_CONTROLS[np.zeros(FIGHTS, np.int64)]


@pytest.fixture
def new_engine(spec):
    def made(threads):
        made = SimEngine(spec, FIGHTS, threads=threads)
        made.reset(np.ones(FIGHTS, np.bool_), standard_starts(FIGHTS), np.arange(FIGHTS, dtype=np.uint64))
        return made

    return made


def helpers():
    return {thread for thread in threading.enumerate() if thread.name.startswith("fights")}


def wait_for_helpers(count, before):
    limit = time.monotonic() + 60.0
    while len(helpers() - before) != count and time.monotonic() < limit:
        time.sleep(0.01)
    assert len(helpers() - before) == count


def test_every_block_is_stepped_once(new_engine):
    alone, together = new_engine(1), new_engine(3)
    for _ in range(20):
        alone.step(WALK)
        together.step(WALK)
        assert together.fights.tobytes() == alone.fights.tobytes()


def test_one_thread_starts_no_helpers(new_engine):
    before = helpers()
    new_engine(1).step(WALK)
    assert helpers() <= before


def test_helpers_end_with_close_and_with_their_engine(new_engine):
    before = helpers()
    closed, dropped = new_engine(3), new_engine(2)
    closed.step(WALK)
    dropped.step(WALK)
    closed.close()
    closed.close()
    closed.step(WALK)
    del dropped
    gc.collect()
    wait_for_helpers(0, before)


def test_a_helper_that_does_not_come_is_not_waited_for(new_engine):
    engine, free = new_engine(2), threading.Event()
    busy = engine._pool.submit(free.wait, 60.0)
    engine.step(WALK)
    assert not busy.done()
    assert (engine.fights["step"] == 1).all()
    free.set()


def test_what_fails_on_a_helper_is_raised(new_engine, monkeypatch):
    engine, caller = new_engine(2), threading.current_thread()
    helper_came = threading.Event()

    def fails_elsewhere(*_):
        if threading.current_thread() is not caller:
            helper_came.set()
            raise RuntimeError("broken")
        helper_came.wait(60.0)

    monkeypatch.setattr(engine_module, "step_block", fails_elsewhere)
    with pytest.raises(RuntimeError, match="broken"):
        engine.step(WALK)
