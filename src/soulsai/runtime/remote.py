"""Workers of this machine for a learner elsewhere."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from soulsai.config import check_names, config_from_toml, config_to_toml
from soulsai.config.schema import Config
from soulsai.errors import ConfigError, TransportError, WorkerError
from soulsai.processes.supervisor import CAN_FORK, Supervisor, function
from soulsai.runs.fight_files import parts_here, unpack, with_parts
from soulsai.runtime.workers import TRIES, Assignment, Board, play_remote, prepare, tell_environment
from soulsai.transport.links import ORDER
from soulsai.transport.redis.address import Address
from soulsai.transport.redis.connection import Stopped
from soulsai.transport.redis.worker import LOCKED_OUT, REVOKED, STOPPED, fetch_welcome
from soulsai.transport.welcome import Welcome, refuse_mismatch, unpack_welcome
from soulsgym.packages import VERSION

if TYPE_CHECKING:
    from soulsgym.game.engine import GameOptions

SHOW_EVERY_S = 5.0
LOOK_EVERY_S = 0.2
STOP_S = 15.0
PREPARE_S = 600.0
"""How long the first start may take on a machine that has much else to do: it compiles."""
LEARNER = "the learner's config"
"""Where a setting comes from that is refused here."""
log = logging.getLogger(__name__)
Say = Callable[[str], None]
Stop = Callable[[], bool]


@dataclass(frozen=True)
class JoinProgress:
    """How all workers of this machine are doing."""

    policy: int = 0
    steps: int = 0
    steps_per_s: float = 0.0
    episodes: int = 0
    wins: int = 0
    fights: int = 0  # episodes among which wins are counted
    sent: int = 0  # rows
    unsent: int = 0
    dropped: int = 0
    restarts: Mapping[str, int] = field(default_factory=dict)  # of worker processes, by what became of the one before


def join(url: str, workers: int = 1, *, ca: Path | None = None, pace: float = 0.0, parts: Sequence[Path] = (),
         game: GameOptions | None = None, patience_s: float | None = None, say: Say = log.info,
         show: Callable[[JoinProgress], None] = lambda progress: None,
         stop: Stop = lambda: False) -> JoinProgress | None:  # fmt: skip
    """Play for the learner at `url`, which `souls serve` prints, until it is told to stop there or by `stop` here.

    `ca` is the certificate that came with the address, `parts` are the learner's Python files, `pace` is steps a second
    at most and `patience_s` how long to try to reach the learner, for ever without it. With `game`, one worker plays
    the running game. `say` gets lines of news, `show` the progress every few seconds.

    What was played is returned, None if `stop` came before anything was; TransportError if the learner cannot be
    reached or has ended the invitation, WorkerError if no worker can play.
    """

    if game:
        _check_game(workers, game)
    address = Address.parse(url, ca.absolute() if ca else None)
    try:
        frame, joined_s = fetch_welcome(address, patience_s, say, stop)
    except Stopped:
        return None
    welcome = unpack_welcome(frame)
    try:
        config = _check_config(welcome, parts, say, stop, in_game=game is not None)
    except Stopped:
        return None
    if game:
        from soulsai.learning.wiring import game_parts

        game_parts(config)  # refuses a reward that the game cannot give
    say(f"joined {address.run} at {address.place} as {address.user}")
    progress, words, problems = _play(
        address, welcome, joined_s, config, workers, pace, patience_s, game, say, show, stop
    )
    if not stop():
        _raise_reason(address, words, problems)
    return progress


def _check_game(workers: int, game: GameOptions) -> None:
    """One worker plays one game, and the game is there."""
    from soulsgym.game.attach import find_game

    if workers > 1:
        raise ConfigError(f"--workers {workers}: a game plays one fight at a time; run souls join once for every game")
    find_game(pid=game.pid)


def _check_config(welcome: Welcome, parts: Sequence[Path], say: Say, stop: Stop, *, in_game: bool) -> Config:
    """The learner's config, if both sides are of the same make and nothing in it is out of place.

    Where workers are forked, the process that they are forked from loads and compiles what they need, not this one.
    """
    # The package first, alone: the config of another version may hold settings that this one does not know.
    refuse_mismatch(welcome, package=VERSION, environment=welcome.environment)
    config = unpack(config_from_toml(welcome.config_toml, LEARNER), welcome.files, LEARNER)
    # Never those that the config names: they may be any files of this machine.
    config = with_parts(config, parts_here(welcome.parts, list(parts)))
    if config.world == "gym" and ":" in config.gym.id:  # Gymnasium would import whatever module is named there.
        raise TransportError(f"the learner's config names an environment of another package ({config.gym.id}): refused")
    if config.world == "fight" and not in_game:
        say("compiling the simulator (about 20 s the first time, a second later on)")
    forks = CAN_FORK and not in_game
    environment = _environment_of_fork(config_to_toml(config), stop) if forks else _environment(config)
    refuse_mismatch(welcome, package=VERSION, environment=environment)
    return config


def _environment(config: Config) -> str:
    from soulsai.learning.wiring import compile_parts, environment_version

    check_names(config, LEARNER)
    if config.world == "fight":
        compile_parts(replace(config, run=replace(config.run, threads=1)))
    return environment_version(config)


def _environment_of_fork(config_toml: str, stop: Stop) -> str:
    """The same, asked of the process that workers are forked from, which this starts."""
    prepare(config_toml)
    start = function(tell_environment, lambda index: (config_toml, LEARNER), forked=True)
    supervisor = Supervisor(start, name="the check of the fight", tries=1)
    supervisor.start()
    until_s = time.monotonic() + PREPARE_S
    try:
        while not supervisor.ended():
            if stop():
                raise Stopped
            if time.monotonic() > until_s:
                raise WorkerError(f"this machine has not prepared the fight within {PREPARE_S:.0f} s: try again later")
            time.sleep(LOOK_EVERY_S / 4)
    finally:
        supervisor.stop(0.0)
    if problems := supervisor.problems():
        raise ConfigError(problems[0])
    return supervisor.last_word(0)


def _play(address: Address, welcome: Welcome, joined_s: float, config: Config, workers: int, pace: float,
          patience_s: float | None, game: GameOptions | None, say: Say, show: Callable[[JoinProgress], None],
          stop: Stop) -> tuple[JoinProgress, list[str], list[str]]:  # fmt: skip
    """Play until all workers have ended, or are to stop: what they did, their last words, and why some cannot play."""
    # Files of the learner's were unpacked by this process, and stay as long as it does.
    text = config_to_toml(config)
    assignment = Assignment(
        address.url(), address.ca, text, welcome.package, pace, patience_s, joined_s, game, welcome.environment
    )
    board = Board(workers)
    start = function(play_remote, lambda index: (board, assignment, supervisor.last_word(index)), forked=not game)
    supervisor = Supervisor(start, workers, hang_s=config.fleet.hang_s, tries=TRIES, say=say)
    supervisor.start()
    try:
        shown_s = time.monotonic()
        while not stop() and supervisor.ended() < workers:
            if time.monotonic() - shown_s >= SHOW_EVERY_S:
                shown_s = time.monotonic()
                show(progress_of(board, supervisor))
            time.sleep(LOOK_EVERY_S)
    finally:
        supervisor.stop(STOP_S)
    progress = progress_of(board, supervisor)
    show(progress)
    words = [supervisor.last_word(index) for index in range(workers)]
    return progress, [word for word in words if word], supervisor.problems()


def progress_of(board: Board, supervisor: Supervisor) -> JoinProgress:
    """The numbers of all workers together."""
    names = ("steps", "episodes", "wins", "fights", "sent", "unsent", "dropped")
    version = max(int(board.read(index)["policy"]) for index in range(board.count)) % ORDER
    return JoinProgress(
        policy=version,
        steps_per_s=board.total("steps_per_s"),
        restarts=supervisor.restarts,
        **{name: int(board.total(name)) for name in names},
    )


def _raise_reason(address: Address, words: Sequence[str], problems: Sequence[str]) -> None:
    """Every worker has ended by itself: raise why, unless the learner has told them to stop."""
    lasting = [word for word in words if word != STOPPED and word not in problems]
    if REVOKED in lasting:
        raise TransportError(f"{address.user} is no longer invited to {address.run}: ask for a new invitation")
    if LOCKED_OUT in lasting:
        raise TransportError(
            f"{address.user} is locked out of {address.run} for a minute, for sending too much: try again later, "
            "with fewer workers"
        )
    if lasting:
        raise TransportError(lasting[0])
    if problems:
        raise WorkerError(f"this machine cannot play: {problems[0]}")
