"""Titles in fake memory."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from title_kit import FakeClock, FakeTime

from soulsgym.game.memory import ProcessMemory
from soulsgym.game.titles import DarkSoulsIII, EldenRing


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def passing():
    """The time of the real world, which passes only in sleeps."""
    return FakeTime()


@pytest.fixture
def game(souls, clock, passing):
    """Dark Souls III with a knight before Iudex."""
    return DarkSoulsIII(ProcessMemory(souls.process), clock=clock, time_source=passing)


@pytest.fixture
def ring(rings, clock, passing):
    """Elden Ring with somebody in it."""
    rings.set(
        PlayerHP=300, PlayerMaxHP=400, PlayerSP=80, PlayerMaxSP=90, PlayerMP=20, PlayerMaxMP=50, PlayerAnimation=3000,
        PlayerXYZA=(10.0, 5.0, 20.0, 4.0), PlayerLocalXYZ=(1.0, 2.0, 3.0), LastGrace=1042362951, Time=5000,
        LocalCam=(0.6, 0.0, 0.8, 9.0, 100.0, 50.0, 200.0), ChunkCamXYZ=(30.0, 20.0, 10.0), LockOn=3,
    )  # fmt: skip
    return EldenRing(ProcessMemory(rings.process), clock=clock, time_source=passing)
