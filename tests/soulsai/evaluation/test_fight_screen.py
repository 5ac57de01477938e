"""A fight in cells of all sizes, and in lines."""

import io
import sys

import numpy as np
import pytest
from rich.console import Console

from soulsai.evaluation import ScriptedFighter, evaluate
from soulsai.evaluation.fight_recorder import FightRecorder
from soulsai.evaluation.fight_screen import FightScreen, fight_lines, show_fight
from soulsgym.spec import load_fight


@pytest.fixture(scope="module")
def recording():
    recorder = FightRecorder(1)
    evaluate(ScriptedFighter("duellist"), 1, seed=4, recorder=recorder, step_limit=120)
    return recorder.fight(0)


def printed(screen, i, columns, rows):
    console = Console(width=columns, height=rows, force_terminal=True, color_system=None, file=io.StringIO())
    console.print(screen.picture(i, columns, rows), end="")
    return console.file.getvalue()


@pytest.mark.parametrize("size", [(100, 30), (40, 14), (233, 70), (41, 15)])
def test_every_size(recording, size):
    screen = FightScreen(recording, load_fight("iudex"))
    lines = printed(screen, 60, *size).splitlines()
    assert len(lines) == size[1]
    assert max(map(len, lines)) == size[0]
    assert sum("▀" * size[0] == line for line in lines) == size[1] - 4
    text = "\n".join(lines)
    assert "HP" in text
    assert "Iudex Gundyr" in text
    assert str(int(np.ceil(recording.fights["boss_hp"][60, 0]))) in text
    assert len(np.unique(screen.pixels(60, size[0], size[1] - 4).reshape(-1, 3), axis=0)) > 20, "a picture is colourful"


def test_fighters_are_where_they_are(recording):
    """The player's blue and the boss's red are in the picture, as far apart as in the fight."""
    pixels = FightScreen(recording, load_fight("iudex")).pixels(20, 120, 36).astype(np.int64)
    blue = (pixels[..., 2] > 180) & (pixels[..., 2] - pixels[..., 0] > 80)
    red = (pixels[..., 0] > 120) & (pixels[..., 0] - pixels[..., 2] > 80)
    assert blue.sum() > 4
    assert red.sum() > 20
    fight = recording.fights[20]
    (py, px), (by, bx) = (np.argwhere(mask).mean(axis=0) for mask in (blue, red))
    wanted = fight["boss_pose"][:2] - fight["player_pose"][:2]
    found = np.array([bx - px, py - by])
    assert found @ wanted / (np.linalg.norm(found) * np.linalg.norm(wanted)) > 0.9


@pytest.mark.parametrize("size", [(39, 30), (100, 13), (20, 5)])
def test_too_small(recording, size):
    text = printed(FightScreen(recording, load_fight("iudex")), 5, *size)
    assert "make it 40 x 14 or larger" in " ".join(text.split())


def test_the_end_is_told(recording):
    assert "TIME OUT" in printed(FightScreen(recording, load_fight("iudex")), len(recording) - 1, 100, 30)


def test_lines(recording):
    lines = list(fight_lines(recording, load_fight("iudex")))
    seconds = [line for line in lines if "m apart" in line]
    assert len(seconds) >= int(recording.fights["time_s"][-1])
    hits = sum("the player is hit" in line for line in lines)
    assert hits == int((recording.fights["damage_taken"] > 0).sum())


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_terminal_without_colours_gets_lines(recording, monkeypatch, capsys, name, value):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv(name, value)
    show_fight(recording, load_fight("iudex"))
    shown = capsys.readouterr().out
    assert shown.splitlines() == list(fight_lines(recording, load_fight("iudex")))
    assert "\x1b" not in shown
