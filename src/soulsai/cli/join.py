"""`souls join`: play for a learner elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from soulsai.cli.in_game import SPEED, GameSpeed, Launch, Pid, Stepping, game_options
from soulsai.cli.session import INTERRUPTED, PartsFiles, stopping

if TYPE_CHECKING:
    from soulsai.acting.crew import Crew
    from soulsai.cli.playing import Board
    from soulsai.config.schema import Config
    from soulsai.transport.redis.address import Address
    from soulsai.transport.welcome import Welcome
    from soulsgym.game.engine import GameOptions

LINE_EVERY_S = 5.0
LOOK_EVERY_S = 0.2
TRY_S = 2.0
"""How long a try to reach the learner lasts."""
PAUSE_S = 1.0
STOP_S = 15.0
LEARNER = "the learner's config"
"""Where a setting comes from that is refused here."""


class Backend(StrEnum):
    """What is played in."""

    SIM = "sim"
    GAME = "game"


def join(
    url: Annotated[
        str,
        typer.Argument(
            envvar="SOULS_URL",
            show_default=False,
            help="The address from the line you were sent. In the environment variable, others on this machine do not "
            "see its password.",
        ),
    ] = "",
    workers: Annotated[int, typer.Option(min=1, max=256, help="Processes that play; one for each core, say.")] = 1,
    backend: Annotated[Backend, typer.Option("--env-backend", help="Play in the simulator or in the game.")] = (
        Backend.SIM
    ),
    pace: Annotated[
        float, typer.Option(min=0.0, help="Steps a second at most, as a game has them; 0: as fast as it can.")
    ] = 0.0,
    parts: PartsFiles = None,
    ca: Annotated[Path | None, typer.Option(help="Certificate that came with the line, for rediss://.")] = None,
    game_speed: GameSpeed = SPEED,
    stepping: Stepping = "auto",
    pid: Pid = None,
    launch: Launch = "",
    patience: Annotated[
        float | None,
        typer.Option(min=0.0, metavar="MINUTES", help="How long to try to reach the learner; without it, for ever."),
    ] = None,
) -> None:
    """Join a fleet: play with the newest policy of a learner and send it what was seen, until Ctrl-C.

    Example: souls join redis://alice:PASSWORD@192.168.1.5:41234/iudex-5f3a9c --workers 4
    """
    if not url:
        raise typer.BadParameter("give the address from the line you were sent, or put it into SOULS_URL")
    game = game_options(backend is Backend.GAME, game_speed, stepping, pid, launch, flag="--env-backend game")
    if game:
        _check_game(workers, pid)
    from soulsai.transport.redis.address import Address

    address = Address.parse(url, ca.absolute() if ca else None)
    patience_s = None if patience is None else 60.0 * patience
    with stopping(_say, "leaving; sending what is left (Ctrl-C again ends at once)") as stop:
        welcome = _fetched(address, patience_s, stop)
        if welcome is None:
            raise typer.Exit(INTERRUPTED)
        config = _checked(welcome, parts or [])
        if game:
            from soulsai.learning.wiring import game_parts

            game_parts(config)  # refuses a reward that the game cannot give
        _say(f"joined {address.run} at {address.place} as {address.user}")
        words = _play(address, welcome, config, workers, pace, patience_s, game, stop)
    if stop():
        raise typer.Exit(INTERRUPTED)
    _conclude(address, words)


def _check_game(workers: int, pid: int | None) -> None:
    """One worker plays one game, and the game is there."""
    from soulsai.errors import ConfigError
    from soulsgym.game.attach import find_game

    if workers > 1:
        raise ConfigError(f"--workers {workers}: a game plays one fight at a time; run souls join once for every game")
    find_game(pid=pid)


def _say(text: str) -> None:
    typer.echo(f"{time.strftime('%H:%M:%S')}  {text}")


def _fetched(address: Address, patience_s: float | None, stop: Callable[[], bool]) -> Welcome | None:
    """What the learner says to those who join, when it can be reached; None if the user is tired of waiting."""
    from soulsai.errors import TransportError
    from soulsai.transport.redis.connection import Refused
    from soulsai.transport.redis.worker import fetch_welcome
    from soulsai.transport.welcome import unpack_welcome

    began_s, told = time.monotonic(), False
    while not stop():
        left_s = None if patience_s is None else patience_s - (time.monotonic() - began_s)
        try:
            return unpack_welcome(fetch_welcome(address, patience_s=TRY_S if left_s is None else min(TRY_S, left_s)))
        except Refused:
            raise
        except TransportError as error:
            if left_s is not None and left_s <= TRY_S:
                raise
            if not told:
                _say(f"{error} (waiting for it)")
                told = True
        time.sleep(PAUSE_S)
    return None


def _checked(welcome: Welcome, parts: list[Path]) -> Config:
    """The learner's config, if both sides are of the same make and nothing in it is out of place."""
    from dataclasses import replace

    from soulsai.config import check_names, config_from_toml
    from soulsai.errors import TransportError
    from soulsai.runs.fight_files import parts_here, unpack, with_parts
    from soulsai.transport.welcome import refuse_mismatch
    from soulsgym.packages import VERSION

    # The package first, alone: the config of another version may hold settings that this one does not know.
    refuse_mismatch(welcome, package=VERSION, environment=welcome.environment)
    config = unpack(config_from_toml(welcome.config_toml, LEARNER), welcome.files, LEARNER)
    # Never those that the config names: they may be any files of this machine.
    config = check_names(with_parts(config, parts_here(welcome.parts, parts)), LEARNER)
    if config.world == "gym" and ":" in config.gym.id:  # Gymnasium would import whatever module is named there.
        raise TransportError(f"the learner's config names an environment of another package ({config.gym.id}): refused")
    from soulsai.learning.session import compile_parts
    from soulsai.learning.wiring import environment_version

    if config.world == "fight":
        _say("compiling the simulator (about 20 s the first time, a second later on)")
        compile_parts(replace(config, run=replace(config.run, threads=1)))
    refuse_mismatch(welcome, package=VERSION, environment=environment_version(config))
    return config


def _play(
    address: Address,
    welcome: Welcome,
    config: Config,
    workers: int,
    pace: float,
    patience_s: float | None,
    game: GameOptions | None,
    stop: Callable[[], bool],
) -> list[str]:
    """Play until all workers have ended, or the user stops them; their last words."""
    from soulsai.acting.crew import Crew
    from soulsai.cli.playing import Board, Journey, play_remote
    from soulsai.config import config_to_toml
    from soulsai.transport.redis.worker import server_time

    joined_s = server_time(address, patience_s)
    # Files of the learner's were unpacked by this process, and stay as long as it does.
    text = config_to_toml(config)
    journey = Journey(address.url(), address.ca, text, welcome.package, pace, patience_s, joined_s, game)
    board = Board(workers)
    crew = Crew(play_remote, workers, arguments=lambda index: (board, journey), hang_s=config.fleet.hang_s, say=_say)
    crew.start()
    try:
        _show(crew, board, stop)
    finally:
        crew.stop(STOP_S)
    _say(line(board, crew.restarts))
    return board.words()


def _show(crew: Crew, board: Board, stop: Callable[[], bool]) -> None:
    shown_s = time.monotonic()
    while not stop() and crew.finished() < board.count:
        if time.monotonic() - shown_s >= LINE_EVERY_S:
            shown_s = time.monotonic()
            _say(line(board, crew.restarts))
        time.sleep(LOOK_EVERY_S)


def line(board: Board, restarts: Mapping[str, int] | None = None) -> str:
    """How all workers of this machine are doing."""
    from soulsai.transport.versions import ORDER

    fights, wins = board.total("fights"), board.total("wins")
    version = max(int(board.read(index)["policy"]) for index in range(board.count)) % ORDER
    parts = [
        f"{board.total('steps'):,.0f} steps, {board.total('steps_per_s'):,.0f}/s",
        f"{board.total('episodes'):,.0f} episodes",
        *([f"{wins / fights:.1%} won"] if fights else []),
        f"policy {version:,}",
        f"sent {board.total('sent'):,.0f} rows",
        *([f"{board.total('unsent'):,.0f} not sent yet"] if board.total("unsent") else []),
        *([f"{board.total('dropped'):,.0f} dropped"] if board.total("dropped") else []),
        *([f"{count} {how} and replaced" for how, count in (restarts or {}).items() if count]),
    ]
    return " | ".join(parts)


def _conclude(address: Address, words: list[str]) -> None:
    """Every worker has ended by itself: say why."""
    from soulsai.errors import TransportError
    from soulsai.transport.redis.worker import REVOKED, STOPPED

    lasting = [word for word in words if word != STOPPED]
    if REVOKED in lasting:
        raise TransportError(f"{address.user} is no longer invited to {address.run}: ask for a new invitation")
    if lasting:
        raise TransportError(lasting[0])
    _say("told to stop: the run is over, or its operator said so")
