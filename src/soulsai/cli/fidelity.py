"""`souls fidelity`: how far the simulator is from a recording of the game, or of its own."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from soulsgym.recordings.metrics import Fidelity, Metric


def fidelity(
    file: Annotated[Path, typer.Argument(help="A recording, .npz or SoulsGym's .json.")],
    boss: Annotated[str, typer.Option(help="The boss of a recording of the game; the simulator's own tell it.")] = "",
    details: Annotated[bool, typer.Option(help="Show what each value is made of.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Replay a recording of the game on the simulator and print how far apart they are.

    A recording of the simulator itself is repeated to the last bit: any drift is a change of the simulator.

    Example: souls fidelity fight.json --json
    """
    from soulsai.config.schema import DEFAULT_BOSS
    from soulsgym.errors import MisuseError
    from soulsgym.recordings import read_recording
    from soulsgym.recordings.exact import recorded_spec
    from soulsgym.recordings.fidelity import measure_fidelity
    from soulsgym.spec import load_fight

    recording = read_recording(file)
    if boss and recording.simulation and boss != recording.simulation.settings.boss:
        raise MisuseError(
            f"--boss {boss} is not the boss of {file}, which is {recording.simulation.settings.boss}; leave it out"
        )
    measured = measure_fidelity(recording, recorded_spec(recording) or load_fight(boss or DEFAULT_BOSS))
    if as_json:
        typer.echo(json.dumps(_object(measured), indent=2))
    else:
        _print_table(measured, details=details)


def _object(measured: Fidelity) -> dict[str, Any]:
    from soulsgym.recordings.departure import earliest, median_step

    first = earliest(measured.departures)
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
        "departure": {
            "exact": measured.exact,
            "median_step": median_step(measured.departures),
            "earliest_step": first.step if first else None,
            "fights": [asdict(each) for each in measured.departures],
        },
        "note": measured.note,
    }


def _print_table(measured: Fidelity, *, details: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    title = f"{Path(measured.source).name}: {measured.steps} steps, {measured.episodes} episode(s)"
    table = Table(title=title)
    for column in ("", "metric", "value", "target", "floor", "unit", "n", ""):
        table.add_column(column, justify="right" if column in ("value", "target", "floor", "n") else "left")
    for metric in measured.metrics:
        goal = metric.goal
        target = "-" if goal.target is None else f"{'>=' if goal.higher_is_better else '<='} {goal.target:g}"
        value = "-" if metric.value is None else f"{metric.value:.3g}"
        table.add_row(goal.id, goal.name, value, target, goal.floor, goal.unit, str(metric.n), _verdict(metric))
    console = Console()
    console.print(table if measured.metrics else f"{title}; steps were skipped, so only a whole replay compares")
    if details:
        for metric in measured.metrics:
            parts = ", ".join(f"{name} {value:.3g}" for name, value in metric.details.items())
            console.print(f"{metric.goal.id}: {metric.goal.meaning} [{metric.goal.unit}]: {parts}", markup=False)
    console.print(_departure(measured), markup=False, highlight=False)
    if details and len(measured.departures) > 1:
        for each in measured.departures:
            left = "never" if each.step is None else f"step {each.step}, {each.reason}"
            console.print(f"  fight {each.fight}, {each.steps} steps: {left}", markup=False, highlight=False)
    if measured.unbound:
        console.print(f"Not bound in the recorded game, as no press of it began a move: {', '.join(measured.unbound)}.")


def _departure(measured: Fidelity) -> str:
    """Where a replay without restarts leaves the recording, in one sentence."""
    from soulsgym.recordings.departure import earliest, median_step

    if measured.note:
        return measured.note
    replay = "The exact replay" if measured.exact else "The replay without restarts"
    fights, first = len(measured.departures), earliest(measured.departures)
    if first is None:
        return f"{replay} never leaves the recording."
    if fights == 1:
        return f"{replay} leaves the recording at step {first.step} of {first.steps}: {first.reason}."
    left, middle = sum(each.step is not None for each in measured.departures), median_step(measured.departures)
    median = "" if middle is None else f"at step {middle} in the median, "
    return (
        f"{replay} leaves {left} of {fights} fights, {median}earliest at step {first.step} of fight {first.fight}: "
        f"{first.reason}."
    )


def _verdict(metric: Metric) -> str:
    if metric.ok is None:
        return ""
    return "[green]ok[/]" if metric.ok else f"[red]missed[/] {metric.fault}"
