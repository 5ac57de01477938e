"""Writes a sweep's report: one HTML file that needs nothing else, neither network nor server."""

from __future__ import annotations

from collections.abc import Sequence

from soulsai.config.toml import toml_value
from soulsai.evaluation.charts import Chart, script
from soulsai.evaluation.report import PAGE, STYLE
from soulsai.evaluation.tables import Bar, Cell, table, text
from soulsai.runs.files import write_atomically
from soulsai.sweeps import charts
from soulsai.sweeps.results import DONE, FAILED, PRUNED, RUNNING, WAITING, Results, TrialResult

HONEST = (
    "The best of many noisy trials looks better than it is: it was chosen for its luck as well. So the best few were "
    "measured again, in fights that no trial was chosen by, and only that figure counts. The intervals are wide enough "
    "to hold for all that were measured again, together, with 95 %."
)
ONE_RUN = (
    "Each figure is of one training run. The same settings trained with another seed come out differently; before you "
    "build on a small difference, train both again with a few seeds and use souls compare."
)


def write_report(results: Results) -> None:
    """Write report.html into the sweep's folder."""
    body = "".join(
        (_head(results), _best(results), _measured_again(results), _charts(results), _trials(results), _about(results))
    )
    style = STYLE + _MORE_STYLE
    page = PAGE.format(title=text(f"Sweep {results.about.name}"), style=style, script=script(), body=body)
    write_atomically(results.folder / "report.html", page)


def figure(value: float | None, results: Results) -> str:
    """A score, for people."""
    if value is None:
        return "-"
    return f"{100 * value:.1f} %" if charts.is_rate(results) else f"{value:.1f}"


def interval(low: float, high: float, results: Results) -> str:
    """An interval, for people."""
    return f"{100 * low:.1f} to {100 * high:.1f} %" if charts.is_rate(results) else f"{low:.1f} to {high:.1f}"


def verdict(results: Results) -> str:
    """What was found, in a sentence."""
    best = results.best
    if best is None:
        return "No trial was trained to its end yet."
    if best.confirmed is None:
        return (
            f"Trial {best.number} is the best so far with {figure(best.value, results)} in the search; it was not "
            "measured again yet, so expect less."
        )
    again = best.confirmed
    found = f"{figure(again.value, results)} (interval {interval(again.low, again.high, results)})"
    if charts.is_rate(results):
        return f"Trial {best.number} wins {found} of {again.fights:,} fresh fights."
    return f"Trial {best.number} returns {found} in {again.fights:,} fresh episodes."


def _episodes(results: Results) -> str:
    return "fights" if charts.is_rate(results) else "episodes"


def _name(trial: TrialResult, results: Results) -> str:
    notes = [f"{results.about.preset} itself"] if trial.is_preset else []
    notes += ["the best"] if trial is results.best else []
    return f"trial {trial.number}" + (f" ({', '.join(notes)})" if notes else "")


def against_preset(results: Results) -> str:
    """Whether that is better than what there was, in a sentence; empty if it is not known."""
    best, own, name = results.best, results.preset_trial, results.about.preset
    if best is None:
        return ""
    if own is None:
        return f"The settings of {name} itself are not in the space or were not trained to the end: nothing to compare."
    if best is own:
        return f"These are the settings of {name} itself: no other was better."
    if results.better is None:
        return f"The settings of {name} itself: {figure(own.value, results)} in the search."
    middle, low, high = results.better
    scale, unit = (100.0, " points") if charts.is_rate(results) else (1.0, "")
    found = f"{scale * middle:+.1f}{unit} (interval {scale * low:+.1f} to {scale * high:+.1f})"
    if low > 0:
        return f"Better than the settings of {name} itself by {found}: the two policies really differ."
    return f"Against the settings of {name} itself: {found}, which may be chance."


def _section(title: str, body: str) -> str:
    return f"<section><h2>{text(title)}</h2>{body}</section>"


def _head(results: Results) -> str:
    counts = (
        (DONE, "trained to the end"),
        (PRUNED, "pruned"),
        (FAILED, "failed"),
        (RUNNING, "running"),
        (WAITING, "waiting"),
    )
    facts = "".join(
        f"<div><b>{number}</b><span>{text(words)}</span></div>"
        for state, words in counts
        if (number := results.count(state)) or state in (DONE, PRUNED)
    )
    minutes = sum(each.minutes or 0.0 for each in results.trials)
    facts += f"<div><b>{minutes:,.1f}</b><span>minutes of training, all trials</span></div>"
    return (
        f"<header><h1>Sweep {text(results.about.name)}</h1>"
        f'<p class="verdict">{text(verdict(results))}</p><p class="kind">{text(against_preset(results))}</p>'
        f'<div class="facts">{facts}</div></header>'
    )


def _best(results: Results) -> str:
    best = results.best
    if best is None:
        return ""
    rows = [
        (key, toml_value(value), _preset_text(results, key), _importance(results, key))
        for key, value in best.settings.items()
    ]
    heads = ("setting", f"trial {best.number}", results.about.preset, "how much it matters")
    return _section(
        "Best settings",
        f'<div class="narrow">{table(heads, rows)}</div><p>Train them again:</p>'
        f'<pre class="command">{text(results.command(best))}</pre>'
        f"<p>The trained policy is in <code>{text(results.folder / best.folder)}</code>.</p>",
    )


def _preset_text(results: Results, key: str) -> str:
    value = results.preset_value(key)
    return "-" if value is None else toml_value(value)


def _importance(results: Results, key: str) -> Cell:
    share = results.importances.get(key)
    return None if share is None else Bar(share, f"{100 * share:.0f} %")


def _measured_again(results: Results) -> str:
    again = [each for each in results.ranked if each.confirmed]
    said = f"<p>{text(HONEST)}</p>"
    if not again:
        waiting = '<p class="none">not measured yet: that is done when all trials are over</p>'
        return _section("Honest figures", said + waiting)
    heads = ("", "in the search", f"in fresh {_episodes(results)}", "interval")
    rows = [
        (
            _name(each, results),
            figure(each.value, results),
            _confirmed_cell(each, results),
            interval(each.confirmed.low, each.confirmed.high, results) if each.confirmed else None,
        )
        for each in again
    ]
    return _section("Honest figures", f'{said}<div class="narrow">{table(heads, rows)}</div><p>{text(ONE_RUN)}</p>')


def _confirmed_cell(trial: TrialResult, results: Results) -> Cell:
    if trial.confirmed is None:
        return None
    shown = figure(trial.confirmed.value, results)
    return Bar(trial.confirmed.value, shown) if charts.is_rate(results) else shown


def _charts(results: Results) -> str:
    found = charts.charts(results)
    if not found:
        return _section("Search", '<p class="none">no data yet</p>')
    keys = results.about.space.keys()
    main = [chart for chart in found if chart.title not in keys]
    slices = [chart for chart in found if chart.title in keys]
    together = charts.all_keys(results)
    body = _grid(main) + (f'<div class="whole">{_card(together)}</div>' if together else "")
    return _section("Search", body) + (_section("Setting by setting", _grid(slices)) if slices else "")


def _grid(found: Sequence[Chart]) -> str:
    return f'<div class="grid">{"".join(map(_card, found))}</div>'


def _card(chart: Chart) -> str:
    return f'<div class="card"><h4>{text(chart.title)}</h4><p class="note">{text(chart.note)}</p>{chart.body}</div>'


def _trials(results: Results) -> str:
    keys = results.about.space.keys()
    heads = ("trial", "state", "score", "steps", "minutes", *keys)
    order = {DONE: 0, RUNNING: 1, PRUNED: 2, WAITING: 3, FAILED: 4}
    ordered = sorted(results.trials, key=lambda each: (order[each.state], -(each.value or 0.0), each.number))
    problems = "".join(f"<li>trial {each.number}: {text(each.problem)}</li>" for each in results.trials if each.problem)
    notes = f"<ul>{problems}</ul>" if problems else ""
    if results.refused:
        notes += f"<p>{results.refused:,} drawn settings did not go together and were never trained.</p>"
    return _section("All trials", table(heads, (_row(each, keys, results) for each in ordered)) + notes)


def _row(trial: TrialResult, keys: Sequence[str], results: Results) -> Sequence[Cell]:
    return (
        f"{trial.number}{' (preset)' if trial.is_preset else ''}",
        trial.state,
        figure(trial.value, results),
        max(trial.curve) if trial.curve else None,
        None if trial.minutes is None else f"{trial.minutes:.1f}",
        *(toml_value(trial.settings[key]) if key in trial.settings else None for key in keys),
    )


def _about(results: Results) -> str:
    about = results.about
    fixed = " ".join(about.base_settings()) or "nothing"
    rows = (
        ("preset", about.preset),
        ("set in every trial", fixed),
        ("score", f"{about.metric}, {about.space.plan.score}"),
        ("pruner", about.space.plan.pruner),
    )
    return _section(
        "About", f'<div class="narrow words">{table(("", ""), rows)}</div><pre>{text(about.space.text)}</pre>'
    )


_MORE_STYLE = """
.narrow { max-width: 820px; }
.words td { white-space: normal; overflow-wrap: anywhere; text-align: left; }
.whole { margin-top: 12px; }
.grid > .card:last-child:nth-child(odd) { grid-column: 1 / -1; }
.command { white-space: pre-wrap; overflow-wrap: anywhere; }
code { overflow-wrap: anywhere; }
.js-plotly-plot .parcoords text { text-shadow: none !important; }
.js-plotly-plot .parcoords .axis path, .js-plotly-plot .parcoords .axis line { stroke: var(--faint) !important; }
"""
