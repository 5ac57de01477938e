"""What worker processes do: play, at the end of a pipe or of a Redis."""

from __future__ import annotations

import ctypes
import logging
import multiprocessing
import os
import platform
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from soulsai.config.schema import Config
    from soulsai.processes.supervisor import Control
    from soulsai.transport.links import WorkerLink
    from soulsai.transport.redis.worker import RedisWorkerLink
    from soulsgym.game.engine import GameOptions

NUMBERS = ("policy", "steps", "steps_per_s", "episodes", "wins", "fights", "unsent", "sent", "dropped")
GROWING = ("steps", "episodes", "wins", "fights", "sent", "dropped")
"""Those that the next process of a worker goes on counting."""
TOUCH_S = 1.0
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
CONFIG = "SOULS_WORKER_CONFIG"
"""The environment variable in which the process that workers are forked from finds their config."""
TRIES = 4
"""Processes of a worker whose environment fails before anything was sent, until it is given up."""


@dataclass(frozen=True)
class Assignment:
    """What a worker needs to know to play for a learner elsewhere."""

    url: str = field(repr=False)
    ca: Path | None
    config_toml: str
    package: str
    pace: float
    patience_s: float | None
    joined_s: float  # by the clock of Redis
    game: GameOptions | None = None  # of this machine; nothing of it comes from the learner
    environment: str = ""  # its version, the same on both sides


class Board:
    """What workers tell their parent: numbers, in memory that all of them see."""

    def __init__(self, count: int) -> None:
        self.count = count
        spawn: Any = multiprocessing.get_context("spawn")
        self._now, self._before = (spawn.RawArray(ctypes.c_double, count * len(NUMBERS)) for _ in range(2))

    def begin(self, index: int) -> None:
        """A new process of a worker goes on counting where the one before it has ended."""
        for at, name in enumerate(NUMBERS, index * len(NUMBERS)):
            self._before[at] += self._now[at] if name in GROWING else 0.0
            self._now[at] = 0.0

    def write(self, index: int, **numbers: float) -> None:
        """Put numbers of one worker on the board."""
        for name, value in numbers.items():
            self._now[index * len(NUMBERS) + NUMBERS.index(name)] = value

    def read(self, index: int) -> dict[str, float]:
        """The numbers of one worker."""
        return {name: self._now[at] + self._before[at] for at, name in enumerate(NUMBERS, index * len(NUMBERS))}

    def total(self, name: str) -> float:
        """The sum of a number over all workers."""
        return sum(self.read(index)[name] for index in range(self.count))


def prepare(config_toml: str) -> None:
    """Start the process that workers of this config are forked from (`soulsai.runtime.template`)."""
    from soulsai.processes.supervisor import prepare_forks

    prepare_forks("soulsai.runtime.template", {CONFIG: config_toml, **ONE_THREAD})


def tell_environment(control: Control, config_toml: str, source: str) -> None:
    """Check that the config can be played on this machine, and say which version of its environment is here."""
    from soulsai.config import check_names, config_from_toml
    from soulsai.learning.wiring import environment_version

    control.say(environment_version(check_names(config_from_toml(config_toml, source), source)))


def play_local(
    control: Control, worker: str, connection: Connection, run: str, config_toml: str, log_file: Path
) -> None:
    """A worker in a process beside its learner."""
    _use_one_thread()
    from soulsai.config import config_from_toml
    from soulsai.errors import TransportError
    from soulsai.telemetry.logfile import attach
    from soulsai.transport.local import LocalWorkerLink

    attach(log_file)
    config = config_from_toml(config_toml, "config.toml")
    link = LocalWorkerLink(connection, worker, run=run)
    control.on_stop(link.stop)
    with watched(link, control):
        _play(config, link, control)
        if link.ended == "gone" and not control.stopping:
            raise TransportError(f"the learner has hung up on worker {worker}; it is started again")


def play_remote(control: Control, board: Board, assignment: Assignment, problem: str) -> None:
    """A worker for a learner elsewhere; `problem` is why its process before this one has ended, for the learner."""
    _use_one_thread()
    logging.basicConfig(format=f"%(asctime)s  worker {control.index}: %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("soulsai").setLevel(logging.INFO)
    from soulsai.algorithms.algorithm import algorithm_of
    from soulsai.config import config_from_toml
    from soulsai.transport.redis.address import Address
    from soulsai.transport.redis.keys import worker_id
    from soulsai.transport.redis.worker import RedisWorkerLink

    config = config_from_toml(assignment.config_toml, "the learner's config")
    address = Address.parse(assignment.url, assignment.ca)
    about = {"host": platform.node(), "package": assignment.package, **({"problem": problem} if problem else {})}
    link = RedisWorkerLink(
        address,
        worker_id(address.user, control.index, secrets.token_hex(3)),
        max_chunks=config.fleet.max_chunks,
        buffer_bytes=int(config.fleet.buffer_mb * 2**20),
        waits=assignment.pace == 0.0 and assignment.game is None,
        **({"ahead": 0} if algorithm_of(config).workers_wait else {}),  # what is played meanwhile would be too old
        beat_s=config.fleet.beat_s,
        patience_s=assignment.patience_s,
        started_s=assignment.joined_s,
        about=about,
    ).start()
    board.begin(control.index)
    control.on_stop(link.stop)
    with watched(link, control, lambda: _tell(board, control.index, link)):
        _play(config, link, control, assignment.pace, assignment.game, assignment.environment)
    if link.ended and not control.stopping:
        control.say(link.ended)


def _play(
    config: Config,
    link: WorkerLink,
    control: Control,
    pace: float = 0.0,
    game: GameOptions | None = None,
    environment: str = "",
) -> None:
    """Play until the link ends; WorkerError if the environment cannot be played."""
    from soulsai.acting.worker import WorldFailed
    from soulsai.errors import WorkerError
    from soulsai.learning.wiring import build_worker

    try:
        build_worker(config, link, pace=pace, touch=control.touch, game=game, environment=environment).run()
    except WorldFailed as error:
        raise WorkerError(f"its environment cannot be played ({error})") from error


def _tell(board: Board, index: int, link: RedisWorkerLink) -> None:
    """Put on the board what a worker has done, and what of it was sent and dropped."""
    account, progress = link.account(), msgspec.structs.asdict(link.progress)
    told = {name: progress[name] for name in NUMBERS if name in progress}
    if link.is_waiting or link.stopping:
        told["steps_per_s"] = 0.0
    board.write(index, **told, sent=account.sent, dropped=sum(account.dropped.values()), unsent=link.unsent())


@contextmanager
def watched(link: WorkerLink, control: Control, tell: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Show that a worker which waits to send has not hung, and whether it has sent anything; closes its link."""
    is_over = threading.Event()

    def look() -> None:
        if link.is_waiting:
            control.touch()
        if link.has_sent:
            control.work()
        tell()

    def keep_looking() -> None:
        while not is_over.wait(TOUCH_S):
            look()

    threading.Thread(target=keep_looking, daemon=True, name="watch").start()
    try:
        yield
    finally:
        try:
            link.close()
        finally:
            is_over.set()
            look()


def _use_one_thread() -> None:
    """Before NumPy is loaded: beside each other, processes with many threads each are slower."""
    os.environ.update(ONE_THREAD)
