"""`souls save`, `pause`, `resume` and `stop`: for whoever has a run going on."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from soulsai.cli.runs import ROOT

if TYPE_CHECKING:
    from soulsai.runs.run import Run

SAVE_S = 120.0
"""How long a checkpoint may take: it may be in the middle of an evaluation."""
PAUSE_S = 0.2

GoingRun = Annotated[
    Path | None, typer.Option("--run", help="Folder of the run; the one that is going on under runs/ if not given.")
]


def save(run: GoingRun = None) -> None:
    """Have a run write a checkpoint now, and wait until it is there.

    Example: souls save
    """
    from soulsai.runs.requests import asked

    going = _asked_for("save", run)
    _wait_for(going, "no checkpoint", lambda: "save" not in asked(going))
    newest = max((path.name for path in going.checkpoints.glob("[0-9]*")), default="")
    typer.echo(f"saved {going.checkpoints / newest}")


def pause(run: GoingRun = None) -> None:
    """Have a run save and stand still, until `souls resume`; its workers wait.

    Example: souls pause
    """
    going = _asked_for("pause", run)
    _wait_for(going, "has not paused", lambda: going.status().state == "paused")
    typer.echo(f"{going.folder} is saved and stands still; go on with: souls resume --run {going.folder}")


def resume(run: GoingRun = None) -> None:
    """Let a paused run go on.

    Example: souls resume
    """
    going = _asked_for("resume", run)
    _wait_for(going, "does not go on", lambda: going.status().state != "paused")
    typer.echo(f"{going.folder} goes on")


def stop(
    worker: Annotated[
        str, typer.Argument(metavar="[WORKER]", help="A name, or one worker as `souls fleet` lists it.")
    ] = "",
    run: GoingRun = None,
) -> None:
    """Stop a run after it has saved; with WORKER, stop only those workers of it.

    Example: souls stop alice
    """
    if worker:
        from soulsai.cli.fleet import stop_workers

        stop_workers(worker, run)
        return
    from soulsai.runs.fleet_file import is_served

    going = _asked_for("stop", run)
    served = is_served(going.folder)
    typer.echo(f"asked {going.folder} to save and stop")
    _wait_for(going, "has not stopped", lambda: not going.is_locked() and not is_served(going.folder), ends=True)
    typer.echo("it has stopped; its workers wait for its return" if served else "it has stopped")


def _asked_for(action: str, folder: Path | None) -> Run:
    from soulsai.runs.requests import ask
    from soulsai.runs.run import Run

    going = Run.open(folder) if folder else _only_one()
    ask(going, action)
    return going


def _only_one() -> Run:
    from soulsai.errors import RunError
    from soulsai.runs.run import Run
    from soulsai.runs.status import GOING
    from soulsai.runs.summary import list_runs

    found = [summary.folder for summary in list_runs(ROOT) if summary.state in GOING]
    if not found:
        raise RunError(f"{ROOT}: no run is going on here; give its folder with --run")
    if len(found) > 1:
        names = ", ".join(str(folder) for folder in found)
        raise RunError(f"{ROOT}: several runs are going on ({names}); say which with --run")
    return Run(found[0])


def _wait_for(run: Run, what: str, done: Callable[[], bool], *, ends: bool = False) -> None:
    """RunError if it is not done in time, or the run has ended without it; `ends`: that is what is waited for."""
    from soulsai.errors import RunError

    if not wait_until(lambda: done() or not (ends or run.is_locked()), SAVE_S):
        raise RunError(f"{run.folder}: {what} within {SAVE_S:.0f} s; its log.txt may say why")
    if not done():
        raise RunError(f"{run.folder}: {what}, for it has ended meanwhile; its log.txt may say why")


def wait_until(done: Callable[[], bool], limit_s: float) -> bool:
    """Look again and again; False if it was not done within the limit."""
    deadline_s = time.monotonic() + limit_s
    while not done():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(PAUSE_S)
    return True
