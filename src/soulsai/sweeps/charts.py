"""Charts of a sweep, as plotly figures in pieces of HTML; the look is that of a run's report."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

from soulsai.config.toml import toml_value
from soulsai.evaluation.charts import COLOURS, Chart, drawn, new_figure
from soulsai.sweeps.dimension import Choices, Dimension, Range
from soulsai.sweeps.results import DONE, PRUNED, Results, TrialResult

FAINT = "rgba(140, 140, 140, 0.45)"
SCALE = ((0.0, "#3b5f8a"), (0.5, "#3b8ed0"), (1.0, "#e58606"))
"""From bad to good; all of it is seen on light and on dark."""
MOST_CURVES = 200
BEST_CURVES = 3


def charts(results: Results) -> list[Chart]:
    """All charts there is data for."""
    found = [history(results), curves(results), importances(results)]
    found += [one_key(results, dimension) for dimension in results.about.space.dimensions]
    return [chart for chart in found if chart]


def is_rate(results: Results) -> bool:
    """Whether the scores are shares."""
    return results.about.metric.startswith("win_rate/")


def _score_axis(figure: Any, results: Results) -> None:
    name = "win rate" if is_rate(results) else "mean return"
    figure.update_yaxes(title={"text": name, "standoff": 6})
    if is_rate(results):
        figure.update_yaxes(tickformat=".0%")


def _hover(results: Results) -> str:
    return "%{y:.1%}" if is_rate(results) else "%{y:.2f}"


def history(results: Results) -> Chart | None:
    """Scores in the order of the trials, and the best so far."""
    done = [each for each in results.trials if each.state == DONE and each.value is not None]
    pruned = [each for each in results.trials if each.state == PRUNED and each.value is not None]
    if not done and not pruned:
        return None
    figure = new_figure("trial", legend=True)
    for name, trials, colour, symbol in (
        ("pruned, at its last evaluation", pruned, FAINT, "x"),
        ("trained to the end", done, COLOURS[0], "circle"),
    ):
        if trials:
            figure.add_scatter(
                x=[each.number for each in trials], y=[each.value for each in trials], name=name, mode="markers",
                marker={"color": colour, "size": 8, "symbol": symbol},
                hovertemplate=f"trial %{{x}}: {_hover(results)}<extra></extra>",
            )  # fmt: skip
    if done:
        highest = [max(each.value or -math.inf for each in done[: i + 1]) for i in range(len(done))]
        figure.add_scatter(
            x=[each.number for each in done], y=highest, name="best so far", mode="lines",
            line={"color": COLOURS[1], "width": 2, "shape": "hv"}, hoverinfo="skip",
        )  # fmt: skip
    figure.update_layout(hovermode="closest")
    _score_axis(figure, results)
    return Chart("History", "every trial's score in the search; luck included", drawn(figure))


def curves(results: Results) -> Chart | None:
    """Learning curves of all trials, the best in colour."""
    known = [each for each in results.trials if each.curve]
    if not known:
        return None
    best = [each.number for each in results.ranked[:BEST_CURVES]]
    chosen = [each for each in known if each.number not in best][-MOST_CURVES:]
    figure = new_figure("environment steps", legend=True)
    for i, each in enumerate(chosen):
        dash = "dot" if each.state == PRUNED else "solid"
        _add_curve(figure, each, results, {"color": FAINT, "width": 1.2, "dash": dash}, "the others", shown=i == 0)
    for i, number in enumerate(best):
        each = results.trials[[one.number for one in results.trials].index(number)]
        if each.curve:
            line = {"color": COLOURS[(1, 0, 2)[i]], "width": 2.5}
            _add_curve(figure, each, results, line, f"trial {number}", shown=True)
    figure.update_layout(hovermode="closest")
    _score_axis(figure, results)
    note = "evaluations while training; pruned trials are dotted"
    return Chart("Learning curves", note, drawn(figure))


def _add_curve(
    figure: Any, trial: TrialResult, results: Results, line: dict[str, Any], name: str, *, shown: bool
) -> None:
    figure.add_scatter(
        x=list(trial.curve), y=list(trial.curve.values()), mode="lines+markers", line=line, name=name,
        marker={"size": 4}, showlegend=shown, legendgroup=name,
        hovertemplate=f"trial {trial.number}, %{{x:,}} steps: {_hover(results)}<extra></extra>",
    )  # fmt: skip


def importances(results: Results) -> Chart | None:
    """How much of the differences between trials each key explains."""
    if not results.importances:
        return None
    items = sorted(results.importances.items(), key=lambda item: item[1])
    figure = new_figure("share", legend=False)
    figure.add_bar(
        x=[value for _, value in items], y=[html.escape(key) for key, _ in items], orientation="h",
        marker={"color": COLOURS[0]}, hovertemplate="%{y}: %{x:.0%}<extra></extra>",
    )  # fmt: skip
    figure.update_layout(hovermode="closest", bargap=0.4)
    figure.update_xaxes(tickformat=".0%", rangemode="tozero")
    return Chart("Which settings matter", "an estimate (PED-ANOVA) from trials trained to the end", drawn(figure))


def one_key(results: Results, dimension: Dimension) -> Chart | None:
    """Scores over one key's values."""
    trials = [each for each in results.trials if each.value is not None and dimension.key in each.settings]
    trials = [each for each in trials if each.state in (DONE, PRUNED)]
    if not trials:
        return None
    figure = new_figure(dimension.key, legend=False)
    for state, colour, symbol in ((PRUNED, FAINT, "x"), (DONE, COLOURS[0], "circle")):
        some = [each for each in trials if each.state == state]
        if some:
            figure.add_scatter(
                x=[_shown(each.settings[dimension.key], dimension) for each in some], y=[each.value for each in some],
                mode="markers", marker={"color": colour, "size": 8, "symbol": symbol},
                text=[str(each.number) for each in some],
                hovertemplate=f"trial %{{text}}: %{{x}}, {_hover(results)}<extra></extra>",
            )  # fmt: skip
    figure.update_layout(hovermode="closest", height=240, showlegend=False)
    if isinstance(dimension, Choices):
        names = [toml_value(option) for option in dimension.options]
        figure.update_xaxes(type="category", categoryorder="array", categoryarray=names, range=[-0.5, len(names) - 0.5])
    elif dimension.log:
        ticks = _log_ticks(dimension)
        figure.update_xaxes(type="log", tickvals=ticks, ticktext=[f"{one:g}" for one in ticks])
    _score_axis(figure, results)
    return Chart(dimension.key, _key_note(results, dimension), drawn(figure))


def _key_note(results: Results, dimension: Dimension) -> str:
    value = results.preset_value(dimension.key)
    return "" if value is None else f"{results.about.preset} has {toml_value(value)}"


def _shown(value: Any, dimension: Dimension) -> Any:
    return toml_value(value) if isinstance(dimension, Choices) else value


def all_keys(results: Results) -> Chart | None:
    """All keys side by side: a line is a trial."""
    trials = [each for each in results.trials if each.value is not None and each.state in (DONE, PRUNED)]
    trials = [each for each in trials if len(each.settings) == len(results.about.space.dimensions)]
    if len(trials) < 2:
        return None
    values = [float(each.value or 0.0) for each in trials]
    axes = [_axis(dimension, trials) for dimension in results.about.space.dimensions]
    name = "win rate" if is_rate(results) else "return"
    axes.append({"label": name, "values": values, "tickformat": ".0%" if is_rate(results) else ".3~s"})
    figure = new_figure("", legend=False)
    figure.add_parcoords(
        dimensions=axes, line={"color": values, "colorscale": SCALE, "showscale": False},
        labelfont={"size": 12}, tickfont={"size": 11}, rangefont={"size": 1, "color": "rgba(0, 0, 0, 0)"},
        unselected={"line": {"opacity": 0.08}}, labelangle=0 if len(axes) < 7 else -15,
    )  # fmt: skip
    figure.update_layout(height=340, margin={"l": 70, "r": 60, "t": 60 if len(axes) < 7 else 90, "b": 24})
    note = "a line is a trial, the better the warmer its colour; drag along an axis to see only a part of it"
    return Chart("All settings at once", note, drawn(figure))


def _axis(dimension: Dimension, trials: Sequence[TrialResult]) -> dict[str, Any]:
    label = dimension.key.partition(".")[2] or dimension.key
    values = [each.settings[dimension.key] for each in trials]
    if isinstance(dimension, Choices):
        texts = [toml_value(option) for option in dimension.options]
        places = list(range(len(texts)))
        return {
            "label": label, "values": [texts.index(toml_value(value)) for value in values], "tickvals": places,
            "ticktext": texts, "range": [0, len(texts) - 1],
        }  # fmt: skip
    if not dimension.log:
        return {"label": label, "values": values, "range": [dimension.low, dimension.high]}
    ticks = _log_ticks(dimension)
    return {
        "label": label,
        "values": [math.log10(value) for value in values],
        "tickvals": [math.log10(one) for one in ticks],
        "ticktext": [f"{one:g}" for one in ticks],
        "range": [math.log10(dimension.low), math.log10(dimension.high)],
    }


def _log_ticks(dimension: Range) -> list[float]:
    """Round numbers in the range: 1, 2, 5, 10, ..., or its ends if there are hardly any."""
    low, high = dimension.low, dimension.high
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    digits = (1, 2, 5) if high / low < 1000 else (1,)
    ticks = [float(f"{digit}e{power}") for power in powers for digit in digits]
    inside = [one for one in ticks if low <= one <= high]
    return inside if len(inside) > 1 else [low, high]
