"""A fight in cells of all sizes, in plain letters and in lines."""

import numpy as np
import pytest

from soulsai.cli.fight_screen import FightScreen, fight_lines
from soulsai.evaluation import ScriptedFighter, evaluate
from soulsai.evaluation.witness import Witness
from soulsgym.spec import load_fight


@pytest.fixture(scope="module")
def recording():
    witness = Witness(1)
    evaluate(ScriptedFighter("duellist"), 1, seed=4, witness=witness, step_limit=120)
    return witness.fight(0).recording


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("size", [(100, 30), (40, 14), (233, 70), (41, 15)])
def test_every_size(recording, plain, size):
    screen = FightScreen(recording, load_fight("iudex"), plain=plain)
    cells = screen.cells(60, *size)
    assert cells.size == size
    text = cells.text()
    assert "Iudex Gundyr" in text
    assert "HP" in text
    assert str(int(np.ceil(recording.fights["boss_hp"][60, 0]))) in text
    if plain:
        assert "@" in text
        assert "B" in text
        assert text.isascii()
    else:
        assert "▀" in text
        assert len(np.unique(cells.ink[2:-2].reshape(-1, 3), axis=0)) > 20, "a picture has many colours"


def test_fighters_are_where_they_are(recording):
    """The player's blue and the boss's red are in the picture, as far apart as in the fight."""
    screen = FightScreen(recording, load_fight("iudex"), plain=False)
    cells = screen.cells(20, 120, 40)
    pixels = np.empty((72, 120, 3), np.int64)
    pixels[::2], pixels[1::2] = cells.ink[2:-2], cells.paper[2:-2]
    blue = (pixels[..., 2] > 180) & (pixels[..., 2] - pixels[..., 0] > 80)
    red = (pixels[..., 0] > 120) & (pixels[..., 0] - pixels[..., 2] > 80)
    assert blue.sum() > 4
    assert red.sum() > 20
    fight = recording.fights[20]
    (py, px), (by, bx) = (np.argwhere(mask).mean(axis=0) for mask in (blue, red))
    wanted = fight["boss_pose"][:2] - fight["player_pose"][:2]
    found = np.array([bx - px, py - by])
    assert found @ wanted / (np.linalg.norm(found) * np.linalg.norm(wanted)) > 0.9


@pytest.mark.parametrize("size", [(39, 30), (100, 13), (20, 5), (3, 2), (1, 1)])
def test_too_small(recording, size):
    cells = FightScreen(recording, load_fight("iudex"), plain=False).cells(5, *size)
    assert cells.size == size
    if size[0] >= 20:
        assert "make it 40 x 14 or larger" in " ".join(cells.text().split())


def test_the_end_is_told(recording):
    screen = FightScreen(recording, load_fight("iudex"), plain=True)
    assert "TIME OUT" in screen.cells(len(recording) - 1, 100, 30).text()
    assert "paused" in screen.cells(3, 100, 30, paused=True).text()
    assert "4x" in screen.cells(3, 100, 30, speed=4.0).text()


def test_lines(recording):
    lines = list(fight_lines(recording, load_fight("iudex")))
    seconds = [line for line in lines if "m apart" in line]
    assert len(seconds) >= int(recording.fights["time_s"][-1])
    hits = sum("the player is hit" in line for line in lines)
    assert hits == int((recording.fights["damage_taken"] > 0).sum())
