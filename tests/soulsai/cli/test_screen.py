"""The live screen and its plain form."""

import io
import re

import pytest
from rich.console import Console

from soulsai.cli import screen
from soulsai.cli.screen import PlainView, Screen, duration_text, fleet_lines, rate_text, score_lines
from soulsai.config import load_preset
from soulsai.learning.scoring import PolicyScore
from soulsai.learning.training import Progress

FIGHTS = load_preset("iudex")
METRICS = {
    "return/training": 1.234, "steps_per_s": 45_678.9, "updates_per_s": 12.0, "game_hours": 345.6,
    "loss/policy": -0.0123, "loss/value": 0.5, "policy/entropy": 2.0, "policy/kl": 1e-5, "gradient/norm": 123456.0,
    "time/simulate": 0.5, "time/learn": 0.4, "time/act": 0.099, "time/save": 0.001,
}  # fmt: skip
WON = PolicyScore(0.9, 0.85, 0.94, 200, 1, True)


def progress_of(step=5000, steps=10_000, **changes):
    values = {
        "elapsed_s": 61.0, "left_s": 3661.0, "metrics": METRICS, "recent_wins": (30, 40), "score": WON,
    }  # fmt: skip
    return Progress(step=step, steps=steps, **values | changes)


EMPTY = progress_of(0, metrics={}, recent_wins=(0, 0), score=None, elapsed_s=0.0, left_s=0.0)


def drawn(view, width=80):
    """What the screen shows, as lines of plain text."""
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(view.picture())
    return console.export_text().splitlines()


@pytest.mark.parametrize("progress", [None, EMPTY, progress_of(), progress_of(20_000)])
@pytest.mark.parametrize("width", [80, 40, 200])
def test_the_picture_fits_the_screen(progress, width):
    view = Screen("mine", FIGHTS)
    if progress is not None:
        view.show(progress)
    lines = drawn(view, width)
    assert all(len(line) <= width for line in lines)
    assert "souls: mine" in lines[0]


def test_what_the_picture_shows():
    view = Screen("mine", FIGHTS)
    view.show(progress_of())
    text = "\n".join(drawn(view, 140))
    for part in ("5,000 of 10,000 steps", "75.0% (", "of the last 40", "90.0% (85.0% to 94.0%)", "1.23",
                 "45,679 steps/s, 12 updates/s", "345.6 h of game time", "1:01, 1:01:01 left",
                 "simulate 50%, learn 40%, act 10%", "-0.0123"):  # fmt: skip
        assert part in text, part
    assert "save" not in text


def test_names_and_news_are_taken_as_they_are(capsys):
    """Brackets are no markup: nothing is swallowed, and a lone closing one breaks nothing."""
    with Screen("a [bold]b[/x]", FIGHTS) as view:
        view.show(progress_of())
        view.say("[red]c[/y] :smile:")
        assert "a [bold]b[/x]" in "\n".join(drawn(view))
    assert "[red]c[/y] :smile:" in capsys.readouterr().out


def test_returns_where_there_are_no_wins():
    found = score_lines(progress_of(recent_wins=(0, 0), score=PolicyScore(123.45, 100.0, 140.0, 20, 0, False)))
    assert found == [("return (evaluation)", "123.5"), ("return", "1.23")]
    assert score_lines(EMPTY) == []


def test_plain_lines(capsys, monkeypatch):
    now_s = [1000.0]
    monkeypatch.setattr(screen.time, "monotonic", lambda: now_s[0])
    view = PlainView()
    view.say("[bold]hello[/x] :smile: " + "long " * 60)
    view.show(progress_of())
    now_s[0] += 1.0
    view.show(progress_of(5001))
    now_s[0] += 4.5
    view.show(progress_of(5002))
    view.show(progress_of(18_000))  # the last rollout may be larger than what was left
    view.show(EMPTY)
    hello, *rows = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"\d\d:\d\d:\d\d  \[bold\]hello\[/x\] :smile: (long ?)+\s*", hello)
    # Not one a second later; the last one in any case.
    assert [row.split(" steps")[0].split()[-1] for row in rows] == ["5,000", "5,002", "18,000"]
    assert "( 50%)" in rows[0]
    assert "(100%)" in rows[2]
    assert rows[0].endswith("left 1:01:01")
    assert "win rate (training) 75.0% (" in rows[0]
    assert "win rate (evaluation) 90.0% (85.0% to 94.0%)" in rows[0]


def test_the_first_plain_line_may_be_empty(capsys):
    PlainView().show(EMPTY)
    assert "0 steps (  0%)" in capsys.readouterr().out


def test_the_screen_is_left_with_its_last_picture(capsys):
    with Screen("mine", FIGHTS) as view:
        view.show(progress_of())
        view.say("some news")
    assert "some news" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0, "0:00"), (59.9, "0:59"), (60.0, "1:00"), (3599, "59:59"), (3661, "1:01:01")]
)
def test_durations(seconds, text):
    assert duration_text(seconds) == text


def test_rates():
    assert rate_text(0.5, 0.25, 1.0) == "50.0% (25.0% to 100.0%)"


def test_workers_are_shown_where_there_are_some():
    assert fleet_lines(progress_of()) == []
    there = {"fleet/workers": 3.0, "fleet/sent": 5000.0}
    assert fleet_lines(progress_of(metrics=there)) == [("workers", "3")]
    lost = there | {"fleet/dropped/stale": 30.0, "fleet/dropped/revoked": 4.0}
    assert fleet_lines(progress_of(metrics=lost)) == [("workers", "3, 34 of 5,000 rows dropped")]
    view = Screen("mine", FIGHTS)
    view.show(progress_of(metrics=METRICS | lost))
    assert "3, 34 of 5,000 rows dropped" in "\n".join(drawn(view, 140))
