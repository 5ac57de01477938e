"""`souls fidelity`: how far the simulator is from a recording of the game."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from soulsgym.recordings.metrics import Fidelity, Metric


def fidelity(
    file: Annotated[Path, typer.Argument(help="A recording, .npz or SoulsGym's .json.")],
    boss: Annotated[str, typer.Option(help="The boss of the recording.")] = "iudex",
    details: Annotated[bool, typer.Option(help="Show what each value is made of.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Replay a recording of the game on the simulator and print how far apart they are.

    Example: souls fidelity fight.json --json
    """
    from soulsgym.movesets import load_moveset
    from soulsgym.recordings import read_recording
    from soulsgym.recordings.fidelity import measure_fidelity

    measured = measure_fidelity(read_recording(file), load_moveset(boss))
    if as_json:
        typer.echo(json.dumps(_object(measured), indent=2))
    else:
        _print_table(measured, details=details)


def _object(measured: Fidelity) -> dict[str, Any]:
    return {
        "file": measured.source,
        "steps": measured.steps,
        "episodes": measured.episodes,
        "unbound_buttons": list(measured.unbound),
        "metrics": {
            metric.goal.id: {
                "name": metric.goal.name,
                "meaning": metric.goal.meaning,
                "unit": metric.goal.unit,
                "value": metric.value,
                "target": metric.goal.target,
                "floor": metric.goal.floor,
                "n": metric.n,
                "ok": metric.ok,
                "details": dict(metric.details),
            }
            for metric in measured.metrics
        },
    }


def _print_table(measured: Fidelity, *, details: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{Path(measured.source).name}: {measured.steps} steps, {measured.episodes} episode(s)")
    for column in ("", "metric", "value", "target", "floor", "unit", "n", ""):
        table.add_column(column, justify="right" if column in ("value", "target", "floor", "n") else "left")
    for metric in measured.metrics:
        goal = metric.goal
        target = "-" if goal.target is None else f"{'>=' if goal.higher_is_better else '<='} {goal.target:g}"
        value = "-" if metric.value is None else f"{metric.value:.3g}"
        table.add_row(goal.id, goal.name, value, target, goal.floor, goal.unit, str(metric.n), _verdict(metric))
    console = Console()
    console.print(table)
    if details:
        for metric in measured.metrics:
            parts = ", ".join(f"{name} {value:.3g}" for name, value in metric.details.items())
            console.print(f"{metric.goal.id}: {metric.goal.meaning} [{metric.goal.unit}]: {parts}", markup=False)
    if measured.unbound:
        console.print(f"Not bound in the recorded game, as no press of it did anything: {', '.join(measured.unbound)}.")


def _verdict(metric: Metric) -> str:
    if metric.ok is None:
        return ""
    return "[green]ok[/]" if metric.ok else f"[red]missed[/] {metric.fault}"
