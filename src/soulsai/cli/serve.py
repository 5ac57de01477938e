"""`souls serve`: the learner of a fleet of workers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from soulsai.cli.invitation import how_to_join
from soulsai.cli.onlookers import Notify, Onlookers, Wandb
from soulsai.cli.opening import Wishes, open_redis, place_of
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
    from soulsai.learning.session import Outcome
    from soulsai.runs.fleet_file import FleetFile
    from soulsai.runs.run import Run
    from soulsai.transport.redis.address import Address


def serve(
    preset: PresetName = "",
    settings: Settings = None,
    run: RunFolder = None,
    resume: Resume = False,
    parts: PartsFiles = None,
    redis: Annotated[
        str,
        typer.Option(
            envvar="SOULS_REDIS",
            metavar="URL",
            help="A Redis that is running: redis://ADMIN:PASSWORD@HOST:PORT; without it the run starts its own.",
        ),
    ] = "",
    host: Annotated[
        str, typer.Option(help="Address on which the run's own Redis listens; 0.0.0.0 lets other machines in.")
    ] = "",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Its port; a free one is chosen, and kept, if not given.")
    ] = 0,
    tls: Annotated[
        bool | None, typer.Option("--tls/--no-tls", help="Encrypt; friends then need the file ca.crt of the run.")
    ] = None,
    ca: Annotated[Path | None, typer.Option(help="Certificate to check the Redis of --redis with.")] = None,
    advertise: Annotated[
        str, typer.Option(metavar="HOST", help="HOST or HOST:PORT by which friends reach it, if not as seen from here.")
    ] = "",
    accept: AcceptAll = False,
    plain: Plain = False,
    dashboard: Annotated[
        bool, typer.Option("--dashboard/--no-dashboard", help="Show it in a web page on this machine.")
    ] = True,
    notify: Notify = None,
    wandb: Wandb = "",
) -> None:
    """Learn from what others play: prints the line that they type to join, and learns from whoever is there.

    Example: souls serve rainbow --host 0.0.0.0 --tls
    """
    if redis and (host or port or tls is not None):
        raise typer.BadParameter("--host, --port and --tls are for the run's own Redis; leave them out with --redis")
    if advertise:
        place_of(advertise)  # for its mistakes, before anything is made
    wishes = Wishes(redis, host, port, tls, ca, advertise)
    onlookers = Onlookers(dashboard, tuple(notify or ()), wandb)
    onlookers.check()
    folder, config = open_run(preset, settings or [], run, resume=resume, parts=parts or [])
    from soulsai.runs.fleet_file import LOCK
    from soulsai.runs.lock import locked

    with removed_if_refused(folder, resume=resume), locked(folder.folder / LOCK):
        outcome, interrupted = _served(folder, config, wishes, onlookers, resume=resume, check=not accept, plain=plain)
    conclude(folder, outcome, again="souls serve", exit_code=INTERRUPTED if interrupted else 0)


class News:
    """Where news goes: printed, until there is a screen."""

    def __init__(self) -> None:
        self.tell: Callable[[str], None] = typer.echo

    def say(self, text: str) -> None:
        """One line of news."""
        self.tell(text)


def _served(
    run: Run, config: Config, wishes: Wishes, onlookers: Onlookers, *, resume: bool, check: bool, plain: bool
) -> tuple[Outcome, bool]:
    """Serve and learn; how it ended, and whether because of Ctrl-C."""
    from soulsai.cli.screen import make_view
    from soulsai.learning.fleet_loops import Place
    from soulsai.learning.session import Fleet, run_session
    from soulsai.transport.redis.learner import RedisLearnerLink

    news = News()
    with ExitStack() as held:
        fleet, address = open_redis(run, config, wishes, held, news.say)
        link = RedisLearnerLink(address, say=news.say, silent_after_s=config.fleet.silent_after_s)
        held.callback(link.close)
        link.welcome(_welcome(fleet.run, config))
        _tell_how_to_join(run, config, fleet)
        with (
            make_view(run.name, config, plain=plain or not sys.stdout.isatty()) as view,
            stopping(view.say) as stop,
            onlookers.looking(run, config, view.say) as sinks,
        ):
            news.tell = view.say
            place = Place(fleet.run, fleet.generation)
            outcome = run_session(
                run, config, resume=resume, view=view, stop=stop, check=check, fleet=Fleet(link, place), sinks=sinks
            )
            interrupted = stop()
        news.tell = typer.echo
        link.close()
        _end(run, address, finished=outcome.finished)
    return outcome, interrupted


def _end(run: Run, address: Address, *, finished: bool) -> None:
    """Let workers go where the run is over, and close the books. What was learned is safe, whatever happens here."""
    from redis.exceptions import RedisError

    from soulsai.cli.farewell import close_books, let_go
    from soulsai.errors import TransportError

    try:
        if finished:
            let_go(address)
        close_books(run.folder, address)
    except (RedisError, TransportError) as error:
        typer.echo(f"the books could not be closed: {error}")


def _welcome(run_id: str, config: Config) -> bytes:
    from soulsai.config import config_to_toml
    from soulsai.learning.wiring import environment_version
    from soulsai.runs.fight_files import files_of, needed_parts, with_short_names
    from soulsai.transport.welcome import Welcome, pack_welcome
    from soulsgym.packages import VERSION

    text, environment = config_to_toml(with_short_names(config)), environment_version(config)
    return pack_welcome(Welcome(run_id, text, VERSION, environment, files_of(config), needed_parts(config)))


def _tell_how_to_join(run: Run, config: Config, fleet: FleetFile) -> None:
    for name, password in fleet.passwords.items():
        for line in how_to_join(run.folder, fleet, name, password):
            typer.echo(line)
    for file in config.fight.parts:
        typer.echo(f"friends need a copy of {file} and add: --parts {Path(file).name}")
    typer.echo(f"a line of their own for each friend: souls invite NAME --run {run.folder}")
    typer.echo(f"who is there: souls fleet --run {run.folder}; Ctrl-C saves and stops")
