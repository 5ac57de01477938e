"""Writes a run's report: one HTML file that needs nothing else, neither network nor server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from soulsai.evaluation import tables
from soulsai.evaluation.charts import Chart, Row, damage_chart, metric_charts, place_charts, script
from soulsai.evaluation.evaluation import Evaluation
from soulsai.evaluation.tables import text
from soulsai.runs.files import write_atomically

NO_DATA = '<p class="none">no data yet</p>'


def write_report(
    path: Path,
    *,
    title: str,
    config_toml: str,
    versions: Mapping[str, Any],
    metrics: Sequence[Row],
    evaluations: Sequence[Evaluation],
    notes: Sequence[str] = (),
) -> None:
    """Write the report. The first evaluation is the one the headline speaks of."""
    sections = (
        _head(title, metrics, evaluations, [notes] if isinstance(notes, str) else notes),
        _evaluations(evaluations),
        _curves(metrics),
        _section("Config", f"<pre>{text(config_toml)}</pre>" if config_toml.strip() else NO_DATA),
        _section("Versions", _versions(versions)),
    )
    write_atomically(path, PAGE.format(title=text(title), style=STYLE, script=script(), body="".join(sections)))


def _section(title: str, body: str) -> str:
    return f"<section><h2>{text(title)}</h2>{body}</section>"


def _head(title: str, metrics: Sequence[Row], evaluations: Sequence[Evaluation], notes: Sequence[str]) -> str:
    verdict = f"The agent {evaluations[0].headline}." if evaluations else _verdict_of(metrics)
    kind = f"{tables.kind_of(evaluations[0])}; greedy, on seeds that training never used." if evaluations else ""
    facts = "".join(f"<div><b>{text(value)}</b><span>{text(name)}</span></div>" for name, value in _facts(metrics))
    said = "".join(f"<p>{text(note)}</p>" for note in notes)
    return (
        f'<header><h1>{text(title)}</h1><p class="verdict">{text(verdict)}</p><p class="kind">{text(kind)}</p>'
        f'<div class="facts">{facts}</div>{said}</header>'
    )


def _verdict_of(metrics: Sequence[Row]) -> str:
    """Of a run without fights: what its last evaluation returned."""
    returns = [row["return/evaluation"] for row in metrics if isinstance(row.get("return/evaluation"), (int, float))]
    return f"The agent's last evaluation returned {returns[-1]:.1f} on average." if returns else "No evaluation yet."


def _facts(metrics: Sequence[Row]) -> list[tuple[str, str]]:
    """The size of the training, from the last row that knows."""
    last = {key: row[key] for row in metrics for key, *_ in _FACTS if isinstance(row.get(key), (int, float))}
    return [(name, f"{last[key] / unit:,.{digits}f}") for key, name, unit, digits in _FACTS if key in last]


_FACTS = (
    ("step", "steps trained", 1, 0),
    ("elapsed_s", "minutes of training", 60, 1),
    ("game_hours", "hours of game time", 1, 1),
    ("episodes", "episodes trained", 1, 0),
)


def _evaluations(evaluations: Sequence[Evaluation]) -> str:
    if not evaluations:
        return _section("Evaluation", NO_DATA)
    parts = [tables.overview(evaluations)]
    for i, each in enumerate(evaluations):
        summary = f"{text(tables.kind_of(each))}, seed {each.settings.seed}: {text(each.headline)}"
        opened = " open" if i == 0 else ""
        parts.append(f"<details{opened}><summary>{summary}</summary>{_details(each)}</details>")
    return _section("Evaluation", "".join(parts))


def _details(evaluation: Evaluation) -> str:
    lost = evaluation.fights - evaluation.wins
    why = tables.why(evaluation.deaths, evaluation.hits)
    drawn = f"<h3>File by file</h3>{tables.drawn_files(evaluation)}" if evaluation.drawn_files else ""
    return (
        f"{drawn}<h3>How fights end</h3>{tables.endings(evaluation)}{tables.lengths(evaluation)}"
        f"<h3>Why do I die?</h3><p>{lost:,} of {evaluation.fights:,} fights were lost. Distance, animation and stamina "
        f'are those of the step before the blow.</p><div class="stack">{why}</div>'
        "<h3>Attack by attack</h3><p>A dodge is a blow that passed through the invulnerable player; the dodge rate is "
        f"its share of the blows that reached him.</p>{tables.attacks(evaluation) if evaluation.attacks else NO_DATA}"
        f"<h3>Where and when</h3>{_grid([*place_charts(evaluation), *damage_chart(evaluation)])}"
    )


def _curves(metrics: Sequence[Row]) -> str:
    main, others = metric_charts(metrics)
    more = f"<details><summary>All other metrics</summary>{_grid(others)}</details>" if others else ""
    return _section("Curves", _grid(main) + more)


def _grid(charts: Sequence[Chart]) -> str:
    cards = (
        f'<div class="card"><h4>{text(chart.title)}</h4><p class="note">{text(chart.note)}</p>{chart.body}</div>'
        for chart in charts
    )
    return f'<div class="grid">{"".join(cards)}</div>' if charts else NO_DATA


def _versions(versions: Mapping[str, Any]) -> str:
    if not versions:
        return NO_DATA
    return tables.table(("", ""), ((str(name), _words(value)) for name, value in versions.items()))


def _words(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
<script>{script}</script>
</head>
<body>
<main>{body}</main>
<script>
// A chart takes its width from the page as far as it was read, and has none in a closed fold: so once more when all
// is there, and when a fold opens.
const fit = part => {{
  for (const chart of part.querySelectorAll(".js-plotly-plot")) if (chart.offsetParent) Plotly.Plots.resize(chart);
}};
fit(document);
document.addEventListener("toggle", event => fit(event.target), true);
</script>
</body>
</html>
"""

STYLE = """
:root { --page: #f5f5f3; --card: #fff; --ink: #1f2328; --faint: #656d76; --line: #dfe1e4; --bar: #cfe3f5; }
@media (prefers-color-scheme: dark) {
  :root { --page: #16181c; --card: #1f2227; --ink: #e4e6ea; --faint: #9aa1ab; --line: #353a42; --bar: #274864; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 16px; }
h1 { margin: 8px 0 4px; font-size: 24px; overflow-wrap: anywhere; }
h2 { margin: 32px 0 10px; font-size: 20px; }
h3 { margin: 26px 0 6px; font-size: 16px; }
h4 { margin: 0; font-size: 15px; overflow-wrap: anywhere; }
p { margin: 4px 0 10px; }
.verdict { font-size: 19px; font-weight: 600; margin-bottom: 0; }
.kind, .note, .none, .facts span { color: var(--faint); }
.note { font-size: 13px; margin: 0 0 4px; }
.facts { display: flex; flex-wrap: wrap; gap: 8px 32px; margin: 14px 0; }
.facts div { display: flex; flex-direction: column; }
.facts b { font-size: 20px; font-variant-numeric: tabular-nums; }
.facts span { font-size: 13px; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 12px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 12px; min-width: 0;
  overflow: hidden; }
.stack { columns: 420px; column-gap: 12px; }
.stack .card { break-inside: avoid; margin-bottom: 12px; }
.wide { overflow-x: auto; margin-bottom: 10px; }
.card .wide { margin: 0; }
table { border-collapse: collapse; width: 100%; font-size: 14px; font-variant-numeric: tabular-nums; }
th { color: var(--faint); font-weight: 500; font-size: 13px; vertical-align: bottom; }
th, td { padding: 4px 10px; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 2px; white-space: normal; min-width: 120px; }
td.bar { position: relative; min-width: 96px; }
td.bar i { position: absolute; left: 4px; top: 3px; bottom: 3px; max-width: calc(100% - 8px);
  background: var(--bar); border-radius: 3px; }
td.bar span { position: relative; }
@media (max-width: 600px) { th, td { padding: 4px 6px; } td.bar { min-width: 72px; } }
details { margin: 10px 0; }
summary { cursor: pointer; padding: 8px 0; font-weight: 600; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 12px; overflow-x: auto;
  font-size: 13px; line-height: 1.45; max-height: 480px; }
.js-plotly-plot text { fill: var(--ink) !important; }
.js-plotly-plot .gridlayer path, .js-plotly-plot .crisp { stroke: var(--line) !important; }
.js-plotly-plot .hoverlayer path, .js-plotly-plot .hoverlayer rect { fill: var(--card) !important;
  stroke: var(--line) !important; }
"""
