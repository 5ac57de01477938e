"""`souls train`: train an agent."""

from __future__ import annotations

import shutil
import sys
from contextlib import nullcontext
from typing import Annotated

import typer

from soulsai.cli.session import AcceptAll, Plain, PresetName, Resume, RunFolder, Settings, conclude, open_run, stopping


def train(
    preset: PresetName = "",
    settings: Settings = None,
    run: RunFolder = None,
    resume: Resume = False,
    workers: Annotated[
        int, typer.Option(min=0, max=256, help="Processes that play beside the one that learns; 0: it plays itself.")
    ] = 0,
    accept: AcceptAll = False,
    plain: Plain = False,
) -> None:
    """Train an agent: with no arguments, the full fight against Iudex Gundyr in the simulator.

    Example: souls train dddqn --set run.seed=3 --run runs/mine
    """
    folder, config = open_run(preset, settings or [], run, resume=resume)
    from soulsai.cli.local_fleet import local_fleet
    from soulsai.cli.screen import make_view
    from soulsai.errors import PreflightError
    from soulsai.learning.session import run_session

    try:
        with (
            make_view(folder.name, config, plain=plain or not sys.stdout.isatty()) as view,
            stopping(view.say) as stop,
            local_fleet(folder, config, workers, view.say) if workers else nullcontext() as fleet,
        ):
            outcome = run_session(folder, config, resume=resume, view=view, stop=stop, check=not accept, fleet=fleet)
    except PreflightError:
        if not resume:
            shutil.rmtree(folder.folder, ignore_errors=True)  # made a moment ago, with nothing in it but the config
        raise
    conclude(folder, outcome, again=f"souls train --workers {workers}" if workers else "souls train")
