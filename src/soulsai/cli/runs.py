"""`souls runs`: the runs there are."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from soulsai.runs.summary import RunSummary

ROOT = Path("runs")


def runs(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="Where the runs are; runs/ if not given.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON array instead of a table.")] = False,
) -> None:
    """List the runs in a folder, the one changed last first.

    Example: souls runs
    """
    from soulsai.errors import RunError
    from soulsai.runs.summary import list_runs

    root = folder or ROOT
    if folder is not None and not root.is_dir():
        raise RunError(f"{root}: there is no such folder; give the folder in which the runs are")
    found = list_runs(root)
    if as_json:
        typer.echo(json.dumps([_object(run) for run in found], indent=1))
    elif not found:
        typer.echo(f"no runs in {root}; `souls train` makes one")
    else:
        _print_table(found)


def _object(run: RunSummary) -> dict[str, Any]:
    about = {"name": run.name, "folder": str(run.folder), "preset": run.preset, "problem": run.problem}
    return about | asdict(run.status)


def _print_table(found: list[RunSummary]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("run", "preset", "state", "steps", "wins", "last change (UTC)"):
        table.add_column(column, justify="right" if column == "steps" else "left", overflow="fold")
    for run in found:
        table.add_row(*map(Text, _row(run)))
    console = Console(highlight=False)
    console.print(table)
    for run in found:
        if run.problem:
            console.print(Text(f"{run.name} is broken: {run.problem}", style="red"), soft_wrap=True)


def _row(run: RunSummary) -> tuple[str, ...]:
    status = run.status
    steps = f"{status.step:,}\nof {status.steps:,}" if status.steps else ""
    changed = status.updated[:16].replace("T", "\n")
    return run.name, run.preset, run.state, steps, _wins(run), changed


def _wins(run: RunSummary) -> str:
    status = run.status
    if status.win_rate is None or status.win_rate_low is None or status.win_rate_high is None:
        return ""
    return f"{100 * status.win_rate:.1f} %\n{100 * status.win_rate_low:.1f}-{100 * status.win_rate_high:.1f}"
