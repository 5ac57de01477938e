"""Writes a sweep's report: one HTML file that needs nothing else, neither network nor server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import optuna
from optuna import visualization
from optuna.distributions import CategoricalDistribution
from optuna.trial import TrialState, create_trial

from soulsai.config.toml import toml_value
from soulsai.evaluation.charts import COLOURS, Chart, figure_html, new_figure
from soulsai.evaluation.report import NO_DATA, card, page_of, section
from soulsai.evaluation.tables import Bar, Cell, table, text
from soulsai.runs.files import write_atomically
from soulsai.sweeps.results import Results, TrialResult, figure, interval
from soulsai.sweeps.space import WIN_RATE, Choices, value_of
from soulsai.sweeps.study import DONE, FAILED, PRUNED, RUNNING, WAITING

HONEST = (
    "The best of many noisy trials looks better than it is: it was chosen for its luck as well. So the best few were "
    "measured again, in fights that no trial was chosen by, and only that figure counts. The intervals are wide enough "
    "to hold for all that were measured again, together, with 95 %."
)
ONE_RUN = (
    "Each figure is of one training run. The same settings trained with another seed come out differently; before you "
    "build on a small difference, train both again with a few seeds and use souls compare."
)
COUNTS = {
    DONE: "trained to the end", PRUNED: "pruned", FAILED: "failed", RUNNING: "running", WAITING: "waiting"
}  # fmt: skip
ORDER = (DONE, RUNNING, PRUNED, WAITING, FAILED)


def write_report(results: Results) -> None:
    """Write report.html into the sweep's folder."""
    parts = (_head, _best, _confirmations_html, _charts, _trials, _about)
    body = "".join(part(results) for part in parts)
    title = text(f"Sweep {results.about.name}")
    write_atomically(results.folder / "report.html", page_of(title, body, _MORE_STYLE))


def verdict(results: Results) -> str:
    """What was found, in a sentence."""
    best, metric = results.best, results.about.metric
    if best is None:
        return "No trial was trained to its end yet."
    if best.confirmed is None:
        return (
            f"Trial {best.number} is the best so far with {figure(best.value, metric)} in the search; it was not "
            "measured again yet, so expect less."
        )
    fights = results.measured[best.number]["fights"]
    found = f"{figure(best.confirmed[0], metric)} (interval {interval(best.confirmed, metric)})"
    if metric == WIN_RATE:
        return f"Trial {best.number} wins {found} of {fights:,} fresh fights."
    return f"Trial {best.number} returns {found} in {fights:,} fresh episodes."


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
        return f"The settings of {name} itself: {figure(own.value, results.about.metric)} in the search."
    scale, unit = (100.0, " points") if results.about.metric == WIN_RATE else (1.0, "")
    middle, low, high = (scale * value for value in results.better)
    found = f"{middle:+.1f}{unit} (interval {low:+.1f} to {high:+.1f})"
    if low > 0:
        return f"Better than the settings of {name} itself by {found}: the two policies really differ."
    return f"Against the settings of {name} itself: {found}, which may be chance."


def _head(results: Results) -> str:
    facts = [
        (str(number), words)
        for state, words in COUNTS.items()
        if (number := results.count(state)) or state in (DONE, PRUNED)
    ]
    facts.append((f"{sum(each.minutes or 0.0 for each in results.trials):,.1f}", "minutes of training, all trials"))
    return (
        f"<header><h1>Sweep {text(results.about.name)}</h1>"
        f'<p class="verdict">{text(verdict(results))}</p><p class="kind">{text(against_preset(results))}</p>'
        f'<div class="facts">{"".join(f"<div><b>{fact}</b><span>{words}</span></div>" for fact, words in facts)}</div>'
        "</header>"
    )


def _best(results: Results) -> str:
    best = results.best
    if best is None:
        return ""
    heads = ("setting", f"trial {best.number}", results.about.preset, "how much it matters")
    rows = [(key, toml_value(value), *_beside(results, key)) for key, value in best.settings.items()]
    return section(
        "Best settings",
        f'<div class="narrow">{table(heads, rows)}</div><p>Train them again:</p>'
        f'<pre class="command">{text(results.command(best))}</pre>'
        f"<p>The trained policy is in <code>{text(results.folder / best.folder)}</code>.</p>",
    )


def _beside(results: Results, key: str) -> tuple[Cell, Cell]:
    """The preset's value of a key, and how much of the differences between trials the key explains."""
    value, share = value_of(results.about.config, key), results.importances.get(key)
    return None if value is None else toml_value(value), None if share is None else Bar(share, f"{100 * share:.0f} %")


def _confirmations_html(results: Results) -> str:
    said, metric = f"<p>{text(HONEST)}</p>", results.about.metric
    rows: list[Sequence[Cell]] = []
    for each in results.ranked:
        if each.confirmed:
            notes = [f"{results.about.preset} itself"] * each.is_preset + ["the best"] * (each is results.best)
            name = f"trial {each.number}" + (f" ({', '.join(notes)})" if notes else "")
            fresh = figure(each.confirmed[0], metric)
            cell = Bar(each.confirmed[0], fresh) if metric == WIN_RATE else fresh
            rows.append((name, figure(each.value, metric), cell, interval(each.confirmed, metric)))
    if not rows:
        waiting = '<p class="none">not measured yet: that is done when all trials are over</p>'
        return section("Honest figures", said + waiting)
    heads = ("", "in the search", f"in fresh {'fights' if metric == WIN_RATE else 'episodes'}", "interval")
    return section("Honest figures", f'{said}<div class="narrow">{table(heads, rows)}</div><p>{text(ONE_RUN)}</p>')


def _charts(results: Results) -> str:
    """Optuna's own charts."""
    if not any(each.curve for each in results.trials):
        return section("Search", NO_DATA)
    study = _study_to_draw(results)
    name = "win rate" if results.about.metric == WIN_RATE else "mean return"
    history = visualization.plot_optimization_history(study, target_name=name)
    curves = visualization.plot_intermediate_values(study)
    curves.update_layout(xaxis_title="environment steps", yaxis_title=name)
    body = _card("History", "every trial's score in the search; luck included", history, results)
    body += _card("Learning curves", "evaluations while training; some end early: pruned", curves, results)
    slices = ""
    for one in results.about.space.dimensions if results.ranked else ():
        preset = _beside(results, one.key)[0]
        chart = visualization.plot_slice(study, params=[one.key], target_name=name)
        chart.update_traces(marker={"color": COLOURS[0], "showscale": False})
        slices += _card(one.key, f"{results.about.preset} has {preset}" if preset else "", chart, results)
    found = section("Search", f'<div class="grid">{body}</div>')
    return found + (section("Setting by setting", f'<div class="grid">{slices}</div>') if slices else "")


def _study_to_draw(results: Results) -> optuna.Study:
    """The study with the settings as people know them; it numbers trials as they are."""
    study, space = optuna.create_study(direction="maximize"), results.about.space
    for trial in results.study.get_trials(deepcopy=False):
        params = space.settings(trial.params)
        distributions: dict[str, Any] = {key: trial.distributions[key] for key in params}
        for one in space.dimensions:
            if isinstance(one, Choices) and one.key in params:
                params[one.key], distributions[one.key] = (
                    toml_value(params[one.key]),
                    CategoricalDistribution(one.texts),
                )
        state = trial.state if trial.state.is_finished() else TrialState.FAIL
        curve = trial.intermediate_values
        study.add_trial(
            create_trial(
                state=state, value=trial.value, params=params, distributions=distributions, intermediate_values=curve
            )
        )
    return study


def _card(title: str, note: str, chart: Any, results: Results) -> str:
    """A chart in the look of the reports."""
    plain = new_figure("", legend=False).layout
    chart.update_layout(
        template=plain.template, title=None, height=plain.height, width=None, margin=plain.margin, font=plain.font,
        paper_bgcolor=plain.paper_bgcolor, plot_bgcolor=plain.plot_bgcolor, showlegend=False,
    )  # fmt: skip
    chart.update_yaxes(zeroline=False, tickformat=".0%" if results.about.metric == WIN_RATE else None)
    chart.update_xaxes(zeroline=False)
    return card(Chart(title, note, figure_html(chart)))


def _trials(results: Results) -> str:
    keys = results.about.space.keys()
    heads = ("trial", "state", "score", "steps", "minutes", *keys)
    ordered = sorted(results.trials, key=lambda each: (ORDER.index(each.state), -(each.value or 0.0), each.number))
    problems = "".join(f"<li>trial {each.number}: {text(each.problem)}</li>" for each in results.trials if each.problem)
    notes = f"<ul>{problems}</ul>" if problems else ""
    if results.refused:
        notes += f"<p>{results.refused:,} drawn settings did not go together and were never trained.</p>"
    return section("All trials", table(heads, (_row(each, keys, results) for each in ordered)) + notes)


def _row(trial: TrialResult, keys: Sequence[str], results: Results) -> Sequence[Cell]:
    return (
        f"{trial.number}{' (preset)' if trial.is_preset else ''}",
        trial.state,
        figure(trial.value, results.about.metric),
        max(trial.curve) if trial.curve else None,
        None if trial.minutes is None else f"{trial.minutes:.1f}",
        *(toml_value(trial.settings[key]) if key in trial.settings else None for key in keys),
    )


def _about(results: Results) -> str:
    about = results.about
    rows = (
        ("preset", about.preset),
        ("set in every trial", " ".join(about.base_settings()) or "nothing"),
        ("score", f"{about.metric}, {about.space.plan.score}"),
        ("pruner", about.space.plan.pruner),
    )
    return section(
        "About", f'<div class="narrow words">{table(("", ""), rows)}</div><pre>{text(about.space.text)}</pre>'
    )


_MORE_STYLE = """
.narrow { max-width: 820px; }
.words td { white-space: normal; overflow-wrap: anywhere; text-align: left; }
.grid > .card:last-child:nth-child(odd) { grid-column: 1 / -1; }
.command { white-space: pre-wrap; overflow-wrap: anywhere; }
code { overflow-wrap: anywhere; }
"""
