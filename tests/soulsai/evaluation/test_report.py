"""The report: complete, harmless, and there even when there is nothing to say."""

import dataclasses
import re

import pytest

from soulsai.errors import RunError
from soulsai.evaluation.charts import COLOURS, damage_chart, metric_charts
from soulsai.evaluation.report import write_report
from soulsai.runs.metrics import MetricsReader, MetricsWriter

EVIL = "</script><img src=x onerror=alert(1)>"


def _rows(n=3):
    return [
        {
            "step": 1000 * i,
            "elapsed_s": 60.0 * i,
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
def metrics_of(tmp_path):
    """A function that gives the metrics of a run with these rows."""

    def make(rows):
        writer = MetricsWriter.new(tmp_path)
        for row in rows:
            names = row.keys() - {"step", "elapsed_s"}
            writer.write(row["step"], row.get("elapsed_s", 0.0), {name: row[name] for name in names})
        writer.close()
        return MetricsReader(tmp_path)

    return make


@pytest.fixture
def written(tmp_path, metrics_of):
    """Writes a report and returns it without plotly's own JavaScript."""

    def write(**given):
        file = tmp_path / "report.html"
        plain = {"title": "a run", "config_toml": "a = 1", "versions": {}, "metrics": [], "evaluations": []}
        told = {**plain, **given}
        write_report(file, **told | {"metrics": metrics_of(told["metrics"])})
        text = file.read_text()
        script = re.search(r"<script>.{1000000,}?</script>\n</head>", text, re.DOTALL)
        return text.replace(script.group(), "")

    return write


def test_the_headline_comes_first(written, duels):
    page = written(evaluations=[duels], metrics=_rows(), versions={"torch": "2.13", "command": ["souls", "train"]})
    body = page[page.index("<body>") :]
    assert body.index(duels.headline) < body.index("<table")
    for expected in ("Causes of death", "Tail swipe", "dodge\nrate", "Win rate over minutes", "souls train", "a = 1"):
        assert expected in body
    assert "no data yet" not in body


def test_curves_come_before_evaluations_and_these_have_dates(written, duels):
    page = written(evaluations=[dataclasses.replace(duels, made="2026-11-18T07:53:07.123Z")], metrics=_rows())
    assert page.index("Win rate over steps") < page.index("2026-11-18 07:53")


def test_good_is_green_and_bad_is_red(metrics_of):
    rows = [{"step": 1, **{f"reward/{term}": 1.0 for term in ("dealt", "far", "taken", "win")}}]
    (chart,), _ = metric_charts(metrics_of(rows))
    lines = re.findall(r'"line":{"color":"(#\w+)".*?"name":"(\w+)"', chart.body)
    assert {name: colour for colour, name in lines} == {
        "dealt": COLOURS[0],
        "far": COLOURS[1],
        "taken": COLOURS[3],
        "win": COLOURS[2],
    }


def test_health_left_is_in_percent_with_names_to_read(metrics_of):
    names = ("boss_health_left/all", "boss_health_left/phase_1", "episode/length", "episode/length_evaluation")
    health, length = metric_charts(metrics_of([{"step": 1, **dict.fromkeys(names, 0.5)}]))[0]
    assert [name in health.body for name in ('"all fights"', '"ended in phase 1"', '".0%"')] == [True] * 3
    assert [name in length.body for name in ('"training"', '"evaluation"')] == [True] * 2


def test_without_anything(written):
    page = written(config_toml="")
    assert page.count("no data yet") == 4
    assert "No evaluation yet." in page


def test_returns_speak_for_runs_without_fights(written):
    page = written(metrics=[{"step": 1, "return/evaluation": 480.5}])
    assert "last evaluation returned 480.5 on average" in page
    assert "<h2>Evaluation</h2>" not in page  # there are no fights
    assert "0.1 s" not in page  # a step of another environment


def test_with_one_row_without_metrics(written):
    assert "no data yet" in written(metrics=[{"step": 0}])


def test_every_text_is_escaped(written, duels):
    attacks = (dataclasses.replace(duels.attacks[0], name=EVIL), *duels.attacks[1:])
    groups = dataclasses.replace(duels.deaths, attack={EVIL: 1}, animation={EVIL: 2})
    settings = dataclasses.replace(duels.settings, boss=EVIL, variant=EVIL)
    page = written(
        title=EVIL,
        config_toml=EVIL,
        versions={EVIL: EVIL},
        metrics=[{"step": 1, EVIL: 1.0, f"reward/{EVIL}": 1.0, "reward/b": 2.0}],
        evaluations=[dataclasses.replace(duels, attacks=attacks, deaths=groups, settings=settings)],
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


def test_an_unwritable_place_is_one_sentence(tmp_path, metrics_of):
    about = {"title": "", "config_toml": "", "versions": {}, "metrics": metrics_of([]), "evaluations": []}
    with pytest.raises(RunError, match="cannot be written"):
        write_report(tmp_path / "nowhere" / "r.html", **about)


def test_known_metrics_have_their_charts_and_others_are_kept(metrics_of):
    main, others = metric_charts(metrics_of(_rows()))
    assert [chart.title for chart in main] == [
        "Win rate over steps", "Win rate over minutes", "Return", "Terms of the reward", "Loss of the value", "Epsilon",
        "Steps per second", "Where the time goes",
    ]  # fmt: skip
    assert [chart.title for chart in others] == ["q/mean"]


def test_what_is_no_number_is_left_out(metrics_of):
    values = (1.0, float("nan"), 2.0)
    (chart,) = metric_charts(metrics_of({"step": i, "a": value} for i, value in enumerate(values)))[1]
    assert '"x":[0.0,2.0],"y":[1.0,2.0]' in chart.body


def test_damage_over_time(written, duels):
    """A curve each of what was taken and dealt; an evaluation of an older version has none."""
    assert [chart.title for chart in damage_chart(duels)] == ["Damage over time"]
    assert "among fights still running" in damage_chart(duels)[0].note
    old = dataclasses.replace(duels, damage_over_time=None)
    assert damage_chart(old) == []
    assert "Damage over time" in written(evaluations=[duels])
    assert "Damage over time" not in written(evaluations=[old])
