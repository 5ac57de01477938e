"""Curves of a run and maps of its fights, as plotly figures in pieces of HTML."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsai.evaluation.evaluation import Evaluation
from soulsai.evaluation.tally import GRID_CELLS, GRID_M
from soulsai.runs.metric_queries import Series
from soulsai.runs.metrics import MetricsReader

Found = Mapping[str, Series]
"""Curves by metric."""
HEIGHT_PX = 300
COLOURS = ("#3b8ed0", "#e58606", "#2a9d8f", "#cc503e", "#8e6bbf", "#b8970a", "#d45fa0", "#7f8c8d")
BAND = "rgba(59, 142, 208, 0.2)"
"""Colour of the interval around the evaluations."""
OWN_COLOURS = {
    **{f"{kind}/{when}": i for kind in ("win_rate", "return") for i, when in enumerate(("evaluation", "training"))},
    "episode/length_evaluation": 0, "episode/length": 1, "reward/win": 2, "reward/taken": 3, "reward/dealt": 0,
    "reward/far": 1, "reward/death": 7,
}  # fmt: skip
"""Good is green and bad is red; evaluations and training have the same colours everywhere, as on the live page."""
LABELS = {
    "episode/length": "training",
    "episode/length_evaluation": "evaluation",
    "boss_health_left/all": "all fights",
}
SEE_THROUGH = "rgba(0, 0, 0, 0)"
"""The page's own colours, light or dark, show through; so do those of text and lines, which its style sheet sets."""


@dataclass(frozen=True)
class Chart:
    """A title and pieces of HTML that draw it."""

    title: str
    note: str
    body: str


def metric_charts(metrics: MetricsReader) -> tuple[list[Chart], list[Chart]]:
    """The charts everybody asks for, and those of all other metrics; those without data are left out."""
    names = metrics.names()
    wins = [name for name in ("win_rate/training", "win_rate/evaluation") if name in names]  # drawn in this order
    returns, terms = _family(names, "return/"), _family(names, "reward/")
    losses, times = _family(names, "loss/"), _family(names, "time/")
    left = _family(names, "boss_health_left/")
    lengths = [name for name in ("episode/length_evaluation", "episode/length") if name in names]
    single = [name for name in ("policy/entropy", "epsilon", "steps_per_s") if name in names]
    shown = {*wins, *_BOUNDS, *left, *lengths, *returns, *terms, *losses, *times, *single}
    found = metrics.series(names)
    main = [
        _win_chart("Win rate over steps", "steps", found, wins, 1.0),
        _win_chart("Win rate over minutes", "minutes of training", metrics.series(names, "elapsed_s"), wins, 60.0),
        _lines("Boss health left", "mean at the end of evaluated fights", found, left, is_share=True),
        _lines("Length of an episode", "steps", found, lengths),
        _lines("Return", "sum of rewards of an episode", found, returns),
        _lines("Terms of the reward", "mean sum of each over an episode, weighted", found, terms),
        *(_lines(_TITLES.get(name, name), _NOTES.get(name, ""), found, [name]) for name in (*losses, *single)),
        _lines("Where the time goes", "share of the loop's time by phase", found, times, is_share=True, stacked=True),
    ]
    others = [_lines(name, "", found, [name]) for name in names if name not in shown]
    return [chart for chart in main if chart], [chart for chart in others if chart]


_BOUNDS = ("win_rate/evaluation_low", "win_rate/evaluation_high")
_TITLES = {
    "policy/entropy": "Entropy of the policy",
    "epsilon": "Epsilon",
    "steps_per_s": "Steps per second",
    "loss/policy": "Loss of the policy",
    "loss/value": "Loss of the value",
    "loss/q": "Loss of the Q values",
}
_NOTES = {"policy/entropy": "nat", "epsilon": "share of random actions", "steps_per_s": "environment steps"}


def _family(names: Sequence[str], prefix: str) -> list[str]:
    return [name for name in names if name.startswith(prefix)]


def _short(name: str) -> str:
    """A metric's name for legends: without its family."""
    family, _, rest = name.partition("/")
    if family == "boss_health_left" and rest != "all":
        return f"ended in {rest.replace('_', ' ')}"
    return LABELS.get(name) or rest or name


def _curves(found: Found, names: Sequence[str]) -> dict[str, tuple[list[float], list[float]]]:
    """The finite values of the metrics that have any."""
    curves = {name: (found[name].x, found[name].y) for name in names if name in found}
    finite = {name: (x[np.isfinite(y)].tolist(), y[np.isfinite(y)].tolist()) for name, (x, y) in curves.items()}
    return {name: curve for name, curve in finite.items() if curve[0]}


def _lines(
    title: str, note: str, found: Found, names: Sequence[str], *, is_share: bool = False, stacked: bool = False
) -> Chart | None:
    """A line for each metric; shares of a whole lie on top of each other."""
    curves = _curves(found, names)
    if not curves:
        return None
    figure = new_figure("steps", legend=is_share or len(curves) > 1)
    for i, (name, (x, y)) in enumerate(curves.items()):
        style = _line(_short(name), OWN_COLOURS.get(name, i), few=len(x) < 40 and not stacked)
        figure.add_scatter(x=x, y=y, stackgroup="all" if stacked else None, **style)
    if is_share:
        figure.update_yaxes(range=[0, 1] if stacked else [-0.02, 1.02], tickformat=".0%")
    return Chart(title, note, figure_html(figure))


def _line(name: str, i: int, *, few: bool) -> dict[str, Any]:
    # Plotly reads a little HTML in names, so they are escaped for it too.
    return {
        "name": html.escape(name),
        "mode": "lines+markers" if few else "lines",
        "line": {"color": COLOURS[i % len(COLOURS)], "width": 2},
        "marker": {"size": 5},
    }


def _win_chart(title: str, axis: str, found: Found, names: Sequence[str], unit: float) -> Chart | None:
    curves = {name: ([place / unit for place in x], y) for name, (x, y) in _curves(found, [*names, *_BOUNDS]).items()}
    if not curves.keys() & set(names):
        return None
    figure = new_figure(axis, legend=True)
    low, high = (curves.pop(name, None) for name in _BOUNDS)
    if low and high:
        edge = {"mode": "lines", "line": {"width": 0}}
        figure.add_scatter(x=high[0], y=high[1], hoverinfo="skip", showlegend=False, **edge)
        figure.add_scatter(x=low[0], y=low[1], fill="tonexty", fillcolor=BAND, name="95 % interval", **edge)
    for name, (x, y) in curves.items():
        is_training = name == "win_rate/training"
        style = _line(_short(name), OWN_COLOURS[name], few=not is_training)
        figure.add_scatter(x=x, y=y, opacity=0.5 if is_training else 1.0, **style)
    figure.update_yaxes(range=[-0.02, 1.02], tickformat=".0%")
    note = "greedy evaluations on unseen seeds, and training fights from the standard start"
    return Chart(title, note, figure_html(figure))


def place_charts(evaluation: Evaluation) -> list[Chart]:
    """Where the player was, and where he was hit, as the boss sees it."""
    grids = (
        ("Where the player is", "seen from above, the boss in the middle looking up", evaluation.places, COLOURS[0]),
        ("Where the player is hit", "one step before the blow", evaluation.hit_places, COLOURS[3]),
    )
    return [Chart(title, note, figure_html(_map(grid, colour))) for title, note, grid, colour in grids if grid.any()]


def damage_chart(evaluation: Evaluation) -> list[Chart]:
    """How much damage is taken and dealt as the fight goes on; nothing where old files do not tell."""
    found = evaluation.damage_over_time
    if found is None or not found.seconds:
        return []
    figure = new_figure("seconds since the fight began", legend=True)
    stretch_s = found.seconds[1] - found.seconds[0] if len(found.seconds) > 1 else 0.0
    middles = [second + stretch_s / 2.0 for second in found.seconds]
    for name, values, colour in (("dealt", found.dealt, 0), ("taken", found.taken, 3)):
        style = _line(name, colour, few=len(middles) < 40)
        figure.add_scatter(x=middles, y=list(values), customdata=list(found.fights), **style)
    note = f"mean of a fight within {stretch_s:g} s, among fights still running" if stretch_s else "mean of a fight"
    return [Chart("Damage over time", note, figure_html(figure))]


def _map(grid: npt.NDArray[np.int64], colour: str) -> Any:
    cell_m = 2 * GRID_M / GRID_CELLS
    centres = [round(-GRID_M + (i + 0.5) * cell_m, 3) for i in range(GRID_CELLS)]
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    figure = new_figure("metres to the right of the boss", legend=False)
    figure.add_heatmap(
        # The root, so that rare places are seen beside the usual one.
        x=centres, y=centres, z=np.sqrt(grid).round(2).tolist(), showscale=False,
        customdata=(grid / grid.sum()).tolist(),
        colorscale=[[0.0, f"rgba({red}, {green}, {blue}, 0)"], [1.0, f"rgb({red}, {green}, {blue})"]],
        hovertemplate="%{y} m ahead, %{x} m right: %{customdata:.2%}<extra></extra>",
    )  # fmt: skip
    figure.add_scatter(
        x=[0], y=[0], mode="markers", marker={"symbol": "triangle-up", "size": 13, "color": "#888"}, hoverinfo="skip"
    )
    figure.update_layout(hovermode="closest", height=380, showlegend=False)
    figure.update_xaxes(range=[-GRID_M, GRID_M], constrain="domain")
    figure.update_yaxes(range=[-GRID_M, GRID_M], scaleanchor="x", title={"text": "metres ahead", "standoff": 4})
    return figure


def new_figure(x_title: str, *, legend: bool) -> Any:
    """An empty plotly figure in the look of the reports."""
    import plotly.graph_objects as go  # type: ignore[import-untyped]

    figure = go.Figure()
    figure.update_layout(
        template="none", height=HEIGHT_PX, margin={"l": 52, "r": 12, "t": 8, "b": 44},
        paper_bgcolor=SEE_THROUGH, plot_bgcolor=SEE_THROUGH, showlegend=legend, hovermode="x unified",
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "bgcolor": SEE_THROUGH},
        font={"family": "system-ui, sans-serif", "size": 12},
    )  # fmt: skip
    figure.update_xaxes(title={"text": x_title, "standoff": 8}, zeroline=False, automargin=True, exponentformat="SI")
    figure.update_yaxes(zeroline=False, automargin=True)
    return figure


def figure_html(figure: Any) -> str:
    """A figure as a piece of HTML; the page has plotly's script."""
    import plotly.io  # type: ignore[import-untyped]

    settings = {"responsive": True, "displayModeBar": False}
    piece: str = plotly.io.to_html(figure, include_plotlyjs=False, full_html=False, config=settings)
    return piece


def script() -> str:
    """Plotly's JavaScript, so that the report needs no network."""
    import plotly.offline  # type: ignore[import-untyped]

    text: str = plotly.offline.get_plotlyjs()
    return text
