"""`souls adapt`: an agent of the simulator learns the fight of the game."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from soulsai.cli.options import (
    INTERRUPTED,
    AsJson,
    InGame,
    RunName,
    Settings,
    TargetFlags,
    choose_trained,
    print_json,
)
from soulsai.cli.train import stop_on_signals
from soulsai.runs.summary import ROOT, ZOO, open_trained
from soulsgym.errors import MisuseError

if TYPE_CHECKING:
    from soulsai.adapting.adapt import Result

SHARE = 0.33
"""Of the minutes, for learning in the target itself."""


def adapt(
    run: RunName = None,
    in_game: InGame = False,
    minutes: Annotated[float, typer.Option(min=1.0, max=600.0, help="Minutes of play in the target.")] = 30.0,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the result; if not given, that of the run with -adapted.")
    ] = None,
    train_steps: Annotated[int, typer.Option(min=1, help="Steps in the simulator after each round.")] = 10_000_000,
    fights: Annotated[int, typer.Option(min=0, help="Fights in the target for each win rate at the end.")] = 100,
    fine_tune: Annotated[
        bool, typer.Option("--fine-tune", help="Use the last minutes for learning in the target itself.")
    ] = False,
    tune_share: Annotated[
        float | None,
        typer.Option(min=0.05, max=0.95, help="Share of the minutes for --fine-tune.", show_default=str(SHARE)),
    ] = None,
    settings: Settings = None,
    as_json: AsJson = False,
    *,
    flags: TargetFlags,
) -> None:
    """Adapt an agent to the game: play there, correct the simulator, train in it, play again.

    A few minutes of play at a time are recorded; the boss's numbers are estimated from all of them, and the agent
    keeps training in the simulator with that boss. The original agent is not changed. If stopped, run the same
    command again to continue. The fights that measure win rates at the end are not used for training and do not count
    as minutes.

    Example: souls adapt runs/mine --game --minutes 30
    """
    target = flags.target(in_game)
    if target is None:
        raise MisuseError("nowhere to play; give --game, or --rehearse FILE")
    if tune_share is not None and not fine_tune:
        raise MisuseError(f"--tune-share {tune_share:g} is about --fine-tune; give that too, or leave it out")
    from soulsai.adapting.adapt import Adaptation
    from soulsai.cli.screen import PlainView

    agent = open_trained(choose_trained(run)).folder
    agent = agent if agent.name else agent.resolve()
    folder = out or (ROOT / agent.name if run and run.startswith(ZOO) else agent).with_name(f"{agent.name}-adapted")
    view = PlainView()
    say, show = (partial(typer.echo, err=True), lambda progress: None) if as_json else (view.say, view.show)
    with stop_on_signals(say) as stop:
        share = (tune_share or SHARE) if fine_tune else 0.0
        result = Adaptation(
            agent, target, folder, minutes, train_steps, fights, settings or (), say, show, stop, share
        ).run()
    if result is None:
        typer.echo(f"stopped and saved in {folder}; continue with the same command", err=True)
        raise typer.Exit(INTERRUPTED)
    print_json(_object(result)) if as_json else typer.echo(_sentence(result))


def _sentence(result: Result) -> str:
    before, after = (rate or "not measured" for rate in (result.before, result.after))
    return (
        f"after {result.minutes:.1f} minutes of play: wins before {before}, after {after}\n"
        f"the adapted agent: {result.run}\n"
        f"what was corrected: souls calibrate {shlex.quote(str(result.folder))}/recordings/*.npz "
        "--out mine.toml --report mine.html"
    )


def _object(result: Result) -> dict[str, object]:
    about = {"folder": str(result.folder), "run": str(result.run), "minutes": result.minutes}
    rates = {"before": result.before, "after": result.after}
    about |= {"fine_tuned": result.fine_tuned}
    return about | {name: rate and rate.to_json() for name, rate in rates.items()}
