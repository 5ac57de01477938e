"""Puts the fakes of the game layer where its tests find them, and lays a game out in a fake process."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fake_process import KNIGHT, FakeProcess, lay_out

from soulsgym.game.addresses import load_addresses


@pytest.fixture
def process():
    """An empty process."""
    return FakeProcess()


@pytest.fixture
def souls():
    """Dark Souls III in a fake process: a knight before Iudex."""
    return lay_out(load_addresses("darksouls3"), **KNIGHT)


@pytest.fixture
def rings():
    """Elden Ring in a fake process, all values 0."""
    return lay_out(load_addresses("eldenring"))
