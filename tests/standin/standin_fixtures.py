"""Fixtures with running stand-ins. They skip where Wine cannot be had, and clear away whatever happens."""

from __future__ import annotations

import pytest
import standin_kit


@pytest.fixture(scope="session")
def wine():
    """The bench all stand-ins of a session run on: displays and prefixes are made as they are needed."""
    if reason := standin_kit.missing():
        pytest.skip(reason)
    standin_kit.build_speed()
    with standin_kit.bench() as bench:
        yield bench


@pytest.fixture(scope="session")
def standin_exe(wine):
    """The built executable."""
    return standin_kit.build()


@pytest.fixture
def no_lapse():
    """Clocks that are kept, and stand, even if this program is held up for long, for tests of something else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("soulsgym.game.clock.LAPSE_S", 60.0)
        patch.setattr("soulsgym.game.stages.TRICKLE_S", float("inf"))
        yield


@pytest.fixture
def start_standin(wine, standin_exe):
    """A function that starts a stand-in with switches; all are stopped after the test."""
    started = []

    def start(*switches, room=0, executable=None):
        standin = wine.start(*switches, room=room, executable=executable or standin_exe)
        started.append(standin)
        return standin

    yield start
    for standin in started:
        standin.stop()


@pytest.fixture
def standin(start_standin):
    """One stand-in, in the arena with the fight begun."""
    return start_standin("--start", "arena")


@pytest.fixture
def two_standins(start_standin):
    """Two of them at the same time, each with its own display and prefix."""
    return start_standin("--start", "arena"), start_standin("--start", "arena", room=1)
