"""Writes a run's report: one HTML file that needs nothing else, neither network nor server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from soulsai.evaluation import tables
from soulsai.evaluation.charts import Chart, damage_chart, metric_charts, place_charts, script
from soulsai.evaluation.evaluation import Evaluation
from soulsai.evaluation.tables import text
from soulsai.runs.fight_files import short_name
from soulsai.runs.files import write_atomically
from soulsai.runs.metrics import MetricsReader

PAGE = Path(__file__).with_name("report.html")
NO_DATA = '<p class="none">no data yet</p>'


def write_report(
    path: Path,
    *,
    title: str,
    config_toml: str,
    versions: Mapping[str, Any],
    metrics: MetricsReader,
    evaluations: Sequence[Evaluation],
) -> None:
    """Write the report. The headline speaks of the first evaluation of each boss in which nobody else took over."""
    has_fights = bool(evaluations) or "return/evaluation" not in metrics.latest()
    sections = (
        _head(title, metrics, evaluations),
        _curves(metrics),
        _evaluations(evaluations) if has_fights else "",
        section("Config", f"<pre>{text(config_toml)}</pre>" if config_toml.strip() else NO_DATA),
        section("Versions", _versions(versions)),
    )
    write_atomically(path, page_of(text(title), "".join(sections)))


def page_of(title: str, body: str, style: str = "") -> str:
    """The page of a report, with plotly's script inside; `style` is added to that of all reports."""
    return Template(PAGE.read_text("utf-8")).substitute(title=title, body=body, style=style, script=script())


def section(title: str, body: str) -> str:
    """A part of a report under its title."""
    return f"<section><h2>{text(title)}</h2>{body}</section>"


def _head(title: str, metrics: MetricsReader, evaluations: Sequence[Evaluation]) -> str:
    own = [each for each in evaluations if not each.taken_over_by]
    verdict = _verdict(own) if own else _verdict_of(metrics)
    kind = f"{tables.kind_of(own[0])}; greedy, on seeds that training never used." if own else ""
    facts = "".join(f"<div><b>{text(value)}</b><span>{text(name)}</span></div>" for name, value in _facts(metrics))
    return (
        f'<header><h1>{text(title)}</h1><p class="verdict">{text(verdict)}</p><p class="kind">{text(kind)}</p>'
        f'<div class="facts">{facts}</div></header>'
    )


def _verdict(evaluations: Sequence[Evaluation]) -> str:
    """The first evaluation, or that against each boss."""
    first = {each.settings.boss: each for each in reversed(evaluations)}
    if len(first) == 1:
        return f"The agent {evaluations[0].headline}."
    bosses = dict.fromkeys(each.settings.boss for each in evaluations)
    return f"The agent {'; '.join(f'{first[boss].headline} against {short_name(boss)}' for boss in bosses)}."


def _verdict_of(metrics: MetricsReader) -> str:
    """Of a run without fights: what its last evaluation returned."""
    _, last = metrics.latest().get("return/evaluation", (0, None))
    return "No evaluation yet." if last is None else f"The agent's last evaluation returned {last:.1f} on average."


def _facts(metrics: MetricsReader) -> list[tuple[str, str]]:
    """The size of the training, by the last values."""
    extent, last = metrics.extent(), {name: value for name, (_, value) in metrics.latest().items()}
    last |= {"step": float(extent.step), "elapsed_s": extent.elapsed_s or 0.0} if extent.rows else {}
    return [(name, f"{last[key] / unit:,.{digits}f}") for key, name, unit, digits in _FACTS if key in last]


_FACTS = (
    ("step", "steps trained", 1, 0),
    ("elapsed_s", "minutes of training", 60, 1),
    ("game_hours", "hours of game time", 1, 1),
    ("episodes", "episodes trained", 1, 0),
)


def _evaluations(evaluations: Sequence[Evaluation]) -> str:
    if not evaluations:
        return section("Evaluation", NO_DATA)
    parts = [tables.overview(evaluations)]
    for i, each in enumerate(evaluations):
        summary = f"{text(tables.kind_of(each))}, seed {each.settings.seed}: {text(each.headline)}"
        opened = " open" if i == 0 else ""
        parts.append(f"<details{opened}><summary>{summary}</summary>{_details(each)}</details>")
    return section("Evaluation", "".join(parts))


def _details(evaluation: Evaluation) -> str:
    lost = evaluation.fights - evaluation.wins
    return (
        f"{''.join(each.html() for each in tables.tables_of(evaluation))}"
        "<p>A dodge is a blow that passed through the invulnerable player; the dodge rate is its share of the blows "
        f"that reached him.</p><h3>Causes of death</h3><p>{lost:,} of {evaluation.fights:,} fights were lost. "
        'Distance, animation and stamina are those of the step before the blow.</p><div class="stack">'
        f"{tables.why(evaluation)}</div>"
        f"<h3>Where and when</h3>{_grid([*place_charts(evaluation), *damage_chart(evaluation)])}"
    )


def _curves(metrics: MetricsReader) -> str:
    main, others = metric_charts(metrics)
    more = f"<details><summary>All other metrics</summary>{_grid(others)}</details>" if others else ""
    return section("Curves", _grid(main) + more)


def _grid(charts: Sequence[Chart]) -> str:
    return f'<div class="grid">{"".join(map(card, charts))}</div>' if charts else NO_DATA


def card(chart: Chart) -> str:
    """A chart in a grid of them."""
    return f'<div class="card"><h4>{text(chart.title)}</h4><p class="note">{text(chart.note)}</p>{chart.body}</div>'


def _versions(versions: Mapping[str, Any]) -> str:
    if not versions:
        return NO_DATA
    return tables.table(("", ""), ((str(name), _words(value)) for name, value in versions.items()))


def _words(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
