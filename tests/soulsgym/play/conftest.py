"""A session and its window, on a display that nobody sees."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "game"))

from soulsgym.envs.simulated import FightSettings
from soulsgym.game.keyboard import load_bindings
from soulsgym.play.session import PlaySession


@pytest.fixture
def session():
    return PlaySession(FightSettings("iudex", changes=True), seed=5)


@pytest.fixture
def make_window(monkeypatch, session):
    """A window of the session; its keyword arguments are those of PlayWindow."""
    from soulsgym.play.window import PlayWindow

    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    made = []

    def make(played=None, **options):
        played = played or session
        made.append(PlayWindow(played, load_bindings(played.spec.title.id), size=(480, 360), **options))
        return made[-1]

    yield make
    for window in made:
        window.close()
