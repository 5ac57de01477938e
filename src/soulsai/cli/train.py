"""`souls train`: train an agent."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from soulsai.cli.in_game import SPEED, GameSpeed, InGame, Launch, Pid, Stepping, game_options
from soulsai.cli.onlookers import Notify, Onlookers, Wandb
from soulsai.cli.session import (
    INTERRUPTED,
    AcceptAll,
    PartsFiles,
    Plain,
    PresetName,
    Resume,
    RunFolder,
    Settings,
    conclude,
    open_run,
    removed_if_refused,
    stopping,
)

if TYPE_CHECKING:
    from soulsai.config.schema import Config
    from soulsgym.game.engine import GameOptions

IN_GAME = ("fight.engine=game", "fight.number=1", "run.evaluate_every_steps=0", "run.final_fights=0")
"""What --game sets, before whatever the user sets."""


def train(
    preset: PresetName = "",
    settings: Settings = None,
    run: RunFolder = None,
    resume: Resume = False,
    parts: PartsFiles = None,
    workers: Annotated[
        int, typer.Option(min=0, max=256, help="Processes that play beside the one that learns; 0: it plays itself.")
    ] = 0,
    accept: AcceptAll = False,
    plain: Plain = False,
    dashboard: Annotated[bool, typer.Option("--dashboard", help="Show it in a web page on this machine.")] = False,
    notify: Notify = None,
    wandb: Wandb = "",
    in_game: InGame = False,
    game_speed: GameSpeed = SPEED,
    stepping: Stepping = "auto",
    pid: Pid = None,
    launch: Launch = "",
) -> None:
    """Train an agent: with no arguments, the full fight against Iudex Gundyr in the simulator.

    With --game it plays in the running game, one fight at a time, by default with the preset iudex-game.

    Example: souls train dddqn --set run.seed=3 --run runs/mine
    """
    onlookers = Onlookers(dashboard, tuple(notify or ()), wandb)
    onlookers.check()
    game = game_options(in_game, game_speed, stepping, pid, launch)
    given = settings or []
    if game:
        from soulsgym.game.attach import find_game

        find_game(pid=pid)  # before a folder is made for nothing
        preset = preset or ("" if resume else "iudex-game")
        given = given if resume else [*IN_GAME, *given]
    folder, config = open_run(preset, given, run, resume=resume, parts=parts or [])
    with removed_if_refused(folder, resume=resume):
        _refuse_mix(config, game, workers)
        from soulsai.cli.local_fleet import local_fleet
        from soulsai.cli.screen import make_view
        from soulsai.learning.session import run_session

        with (
            make_view(folder.name, config, plain=plain or not sys.stdout.isatty()) as view,
            stopping(view.say) as stop,
            local_fleet(folder, config, workers, view.say) if workers else nullcontext() as fleet,
            onlookers.looking(folder, config, view.say) as sinks,
        ):
            outcome = run_session(
                folder, config, resume=resume, view=view, stop=stop, check=not accept, fleet=fleet, game=game,
                sinks=sinks,
            )  # fmt: skip
            interrupted = stop()
    again = f"souls train --workers {workers}" if workers else "souls train"
    conclude(folder, outcome, again=again, exit_code=INTERRUPTED if interrupted else 0)


def _refuse_mix(config: Config, game: GameOptions | None, workers: int) -> None:
    from soulsai.errors import ConfigError

    in_game = config.world == "fight" and config.fight.engine == "game"
    if in_game and workers:
        raise ConfigError(
            f"--workers {workers}: one game plays one fight at a time; use souls serve, and join with games"
        )
    if game and not in_game:
        raise ConfigError("--game: this run trains in the simulator; leave it out, or begin a new run with it")
