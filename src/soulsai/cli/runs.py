"""`souls runs`, `save`, `pause`, `unpause` and `stop`: the runs there are, and those that are being trained."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from soulsai.cli.options import AsJson, RunsFolder, print_json, run_argument
from soulsai.cli.tables import make_table
from soulsai.errors import RunError
from soulsai.runs.files import cannot_write
from soulsai.runs.fleet_file import is_served
from soulsai.runs.requests import ask, open_requests
from soulsai.runs.run import CONFIG, VERSIONS, Run
from soulsai.runs.status import GOING, Status
from soulsai.runs.summary import ROOT, RunSummary, list_runs, open_run, run_folder

SAVE_S = 120.0
"""How long a checkpoint may take: it may be in the middle of an evaluation."""
PAUSE_S = 0.2

GoingRun = Annotated[str | None, run_argument("Folder or name of a run; the one being trained if not given.")]


class ListByDefault(TyperGroup):
    """`souls runs` and `souls runs DIR` are short for `souls runs list`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the command that is left out."""
        if not args or args[0] not in (*self.commands, "--help"):
            args = ["list", *args]
        return super().parse_args(ctx, args)


runs = typer.Typer(cls=ListByDefault, help="List the runs in a folder, or remove one.", rich_markup_mode=None)


@runs.command("list")
def list_(folder: RunsFolder = None, as_json: AsJson = False) -> None:
    """List the runs in a folder, the one changed last first. The word `list` may be left out.

    Example: souls runs
    """
    root = folder or ROOT
    if folder is not None and not root.is_dir():
        raise RunError(f"{root}: there is no such folder; give the folder in which the runs are")
    found = list_runs(root)
    if as_json:
        print_json([_object(run) for run in found])
    elif not found:
        typer.echo(f"no runs in {root}; `souls train` makes one")
    else:
        _print_table(found)


@runs.command()
def rm(
    names: Annotated[list[str], typer.Argument(metavar="RUN", help="Folder or name of a run; may be repeated.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete runs and everything in their folders, after asking. A run that is being trained is refused.

    Example: souls runs rm mine
    """
    found = [_removable(name) for name in names]
    for run in found:
        if run.is_locked() or is_served(run.folder):
            raise RunError(f"{run.folder}: is being trained now; end it first: souls stop {run.folder}")
    for run in found:
        status = run.status()
        if not yes and not typer.confirm(f"remove {run.folder} ({status.state}, {status.step:,} steps)?"):
            raise typer.Exit(1)
        _remove(run)
        typer.echo(f"removed {run.folder}")


def _removable(name: str) -> Run:
    """A run, even one whose config or versions are damaged."""
    folder = run_folder(name)
    return Run(folder) if (folder / CONFIG).exists() or (folder / VERSIONS).exists() else open_run(name)


def _remove(run: Run) -> None:
    try:
        if run.folder.is_symlink():
            run.folder.unlink()
        else:
            shutil.rmtree(run.folder)
    except OSError as error:
        raise cannot_write(run.folder, error) from error


def _object(run: RunSummary) -> dict[str, Any]:
    about = {"name": run.name, "folder": str(run.folder), "preset": run.preset, "problem": run.problem}
    return about | asdict(run.status)


def _print_table(found: list[RunSummary]) -> None:
    # Names are there to be copied: a long one, the last in its line, may leave the screen but is not cut.
    console = Console(highlight=False, width=1000)
    table = _table(found, ("preset", "state", "steps", "win rate", "changed (UTC)", "run"))
    if console.measure(table).maximum > Console().width:
        table = _table(found, ("state", "steps", "win rate", "changed", "run"))
    console.print(table)
    for run in found:
        if run.problem:
            console.print(Text(f"{run.name} is broken: {run.problem}", style="red"), soft_wrap=True)


def _table(found: list[RunSummary], columns: tuple[str, ...]) -> Table:
    rows = ([_cells(run)[column.partition(" (")[0]] for column in columns] for run in found)
    return make_table(columns, rows, left=set(columns) - {"steps"}, no_wrap=True)


def _cells(run: RunSummary) -> dict[str, str]:
    status = run.status
    return {
        "run": run.name,
        "preset": run.preset,
        "state": run.state,
        "steps": f"{status.step:,}\nof {status.steps:,}" if status.steps else "",
        "win rate": _wins(status),
        "changed": status.updated[:16].replace("T", "\n"),
    }


def _wins(status: Status) -> str:
    if status.win_rate is None or status.win_rate_low is None or status.win_rate_high is None:
        return ""
    return f"{100 * status.win_rate:.1f} %\n{100 * status.win_rate_low:.1f}-{100 * status.win_rate_high:.1f}"


def save(run: GoingRun = None) -> None:
    """Write a checkpoint of a run now.

    Example: souls save
    """
    going = _send("save", run)
    _wait_for(going, "no checkpoint", lambda: "save" not in open_requests(going))
    newest = max((path.name for path in going.checkpoints.glob("[0-9]*")), default="")
    typer.echo(f"saved {going.checkpoints / newest}")


def pause(run: GoingRun = None) -> None:
    """Save and pause a run, until `souls unpause`; its workers wait.

    Example: souls pause
    """
    going = _send("pause", run)
    _wait_for(going, "has not paused", lambda: going.status().state == "paused")
    typer.echo(f"{going.folder} is saved and paused; continue with: souls unpause {going.folder}")


def unpause(run: GoingRun = None) -> None:
    """Let a paused run continue.

    Example: souls unpause
    """
    going = _send("unpause", run)
    _wait_for(going, "is still paused", lambda: going.status().state != "paused")
    typer.echo(f"{going.folder} continues")


def stop(
    run: GoingRun = None,
    worker: Annotated[
        str, typer.Option(metavar="NAME", help="Stop only the workers of this name, or one that `souls fleet` lists.")
    ] = "",
) -> None:
    """Save and stop a run; with --worker, only some of its workers.

    Example: souls stop runs/mine
    """
    if worker:
        from soulsai.cli.fleet import stop_workers

        stop_workers(worker, run)
        return
    going = _send("stop", run)
    served = is_served(going.folder)
    typer.echo(f"asked {going.folder} to save and stop")
    _wait_for(going, "has not stopped", lambda: not going.is_locked() and not is_served(going.folder), ends=True)
    typer.echo(f"{going.folder} has stopped" + ("; its workers wait for it to continue" if served else ""))


def _send(action: str, name: str | None) -> Run:
    going = open_run(name) if name else _only_one()
    ask(going, action)
    return going


def _only_one() -> Run:
    found = [summary.folder for summary in list_runs(ROOT) if summary.state in GOING]
    if not found:
        raise RunError(f"{ROOT}: no run is being trained here; name one")
    if len(found) > 1:
        raise RunError(f"{ROOT}: several runs are being trained; name one: {', '.join(map(str, found))}")
    return Run(found[0])


def _wait_for(run: Run, what: str, done: Callable[[], bool], *, ends: bool = False) -> None:
    """RunError if it is not done in time, or the run has ended without it; `ends`: that is what is waited for."""
    if not wait_until(lambda: done() or not (ends or run.is_locked()), SAVE_S):
        raise RunError(f"{run.folder}: {what} within {SAVE_S:.0f} s; its log.txt may say why")
    if not done():
        raise RunError(f"{run.folder}: {what}: the run has ended; its log.txt may say why")


def wait_until(done: Callable[[], bool], limit_s: float) -> bool:
    """Look again and again; False if it was not done within the limit."""
    deadline_s = time.monotonic() + limit_s
    while not done():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(PAUSE_S)
    return True
