"""The report: complete, harmless, and there even when there is nothing to say."""

import dataclasses
import re

import pytest

from soulsai.errors import RunError
from soulsai.evaluation.charts import MOST_POINTS, curve, damage_chart, metric_charts
from soulsai.evaluation.report import write_report

EVIL = "</script><img src=x onerror=alert(1)>"


def _rows(n=3):
    return [
        {
            "step": 1000 * i,
            "time": f"2026-01-01T00:{i % 60:02d}:00.000Z",
            "win_rate/training": 0.1 * i,
            "win_rate/evaluation": 0.1 * i,
            "win_rate/evaluation_low": 0.0,
            "win_rate/evaluation_high": 1.0,
            "return/training": float(i),
            "reward/dealt": 0.5,
            "loss/value": 0.2,
            "epsilon": 0.1,
            "steps_per_s": 5e4,
            "time/act": 0.4,
            "q/mean": 1.0,
        }
        for i in range(n)
    ]


@pytest.fixture
def written(tmp_path):
    """Writes a report and returns it without plotly's own JavaScript."""

    def write(**given):
        file = tmp_path / "report.html"
        plain = {"title": "a run", "config_toml": "a = 1", "versions": {}, "metrics": [], "evaluations": []}
        write_report(file, **{**plain, **given})
        text = file.read_text()
        script = re.search(r"<script>.{1000000,}?</script>\n</head>", text, re.DOTALL)
        return text.replace(script.group(), "")

    return write


def test_the_headline_comes_first(written, duels):
    page = written(evaluations=[duels], metrics=_rows(), versions={"torch": "2.13", "command": ["souls", "train"]})
    body = page[page.index("<body>") :]
    assert body.index(duels.headline) < body.index("<table")
    for expected in ("Why do I die?", "beast tail", "dodge rate", "Win rate over minutes", "souls train", "a = 1"):
        assert expected in body
    assert "no data yet" not in body


def test_without_anything(written):
    page = written(config_toml="")
    assert page.count("no data yet") == 4
    assert "No evaluation yet." in page


def test_returns_speak_for_runs_without_fights(written):
    assert "last evaluation returned 480.5 on average" in written(metrics=[{"step": 1, "return/evaluation": 480.5}])


def test_with_one_row_without_metrics(written):
    assert "no data yet" in written(metrics=[{"step": 0, "time": "2026-01-01T00:00:00.000Z"}])


def test_every_text_is_escaped(written, duels):
    attacks = (dataclasses.replace(duels.attacks[0], name=EVIL), *duels.attacks[1:])
    groups = dataclasses.replace(duels.deaths, attack={EVIL: 1}, animation={EVIL: 2})
    settings = dataclasses.replace(duels.settings, boss=EVIL, variant=EVIL)
    page = written(
        title=EVIL,
        config_toml=EVIL,
        versions={EVIL: EVIL},
        metrics=[{"step": 1, "time": EVIL, EVIL: 1.0, f"reward/{EVIL}": 1.0, "reward/b": 2.0, "epsilon": EVIL}],
        evaluations=[dataclasses.replace(duels, attacks=attacks, deaths=groups, settings=settings)],
        notes=[EVIL],
    )
    assert "<img" not in page
    assert "onerror=alert(1)&gt;" in page


def test_nothing_is_loaded_from_elsewhere(written, duels):
    page = written(evaluations=[duels], metrics=_rows())
    assert not re.search(r"(src|href)\s*=|@import|url\(", page)


def test_colours_follow_the_system_and_width_the_phone(written):
    page = written()
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page


def test_an_unwritable_place_is_one_sentence(tmp_path):
    with pytest.raises(RunError, match="cannot be written"):
        write_report(tmp_path / "nowhere" / "r.html", title="", config_toml="", versions={}, metrics=[], evaluations=[])


def test_known_metrics_have_their_charts_and_others_are_kept():
    main, others = metric_charts(_rows())
    assert [chart.title for chart in main] == [
        "Win rate over steps", "Win rate over minutes", "Return", "Terms of the reward", "loss/value", "Epsilon",
        "Steps per second", "Where the time goes",
    ]  # fmt: skip
    assert [chart.title for chart in others] == ["q/mean"]


def test_long_curves_are_thinned_and_keep_their_end():
    rows = [{"step": i, "a": float(i)} for i in range(5000)]
    found = curve(rows, "a", [float(row["step"]) for row in rows])
    assert len(found.x) == MOST_POINTS
    assert (found.x[0], found.y[-1]) == (0.0, 4999.0)


def test_what_is_no_number_is_left_out():
    rows = [{"a": 1.0}, {"a": float("nan")}, {"a": None}, {}, {"a": "x"}, {"a": 2}]
    assert curve(rows, "a", [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]).y == [1.0, 2.0]


def test_damage_over_time(written, duels):
    """A curve each of what was taken and dealt; an evaluation of an older version has none."""
    assert [chart.title for chart in damage_chart(duels)] == ["Damage over time"]
    assert "among those still going on" in damage_chart(duels)[0].note
    old = dataclasses.replace(duels, damage_over_time=None)
    assert damage_chart(old) == []
    assert "Damage over time" in written(evaluations=[duels])
    assert "Damage over time" not in written(evaluations=[old])
