"""What the processes of a crew do: play, at the end of a pipe or of a Redis."""

from __future__ import annotations

import ctypes
import logging
import multiprocessing
import os
import platform
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from soulsai.acting.crew import Life
    from soulsai.transport.links import Parcel, Progress
    from soulsai.transport.redis.worker import RedisWorkerLink
    from soulsgym.game.engine import GameOptions

NUMBERS = ("policy", "steps", "steps_per_s", "episodes", "wins", "fights", "unsent", "sent", "dropped")
GROWING = ("steps", "episodes", "wins", "fights", "sent", "dropped")
"""Those that a new life goes on counting."""
LONGEST_WORD = 600
TOUCH_S = 1.0


@dataclass(frozen=True)
class Journey:
    """What the workers of `souls join` need to know."""

    url: str = field(repr=False)
    ca: Path | None
    config_toml: str
    package: str
    pace: float
    patience_s: float | None
    joined_s: float  # by the clock of Redis
    game: GameOptions | None = None  # of this machine; nothing of it comes from the learner


class Board:
    """What the workers of a crew tell their parent: numbers and a last word each, in memory that all of them see."""

    def __init__(self, count: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.count = count
        self._numbers: Any = context.RawArray(ctypes.c_double, count * len(NUMBERS))
        self._words: Any = context.RawArray(ctypes.c_char, count * LONGEST_WORD)

    def write(self, index: int, **numbers: float) -> None:
        """Put numbers of one worker on the board."""
        for name, value in numbers.items():
            self._numbers[index * len(NUMBERS) + NUMBERS.index(name)] = value

    def read(self, index: int) -> dict[str, float]:
        """The numbers of one worker."""
        first = index * len(NUMBERS)
        return dict(zip(NUMBERS, self._numbers[first : first + len(NUMBERS)], strict=True))

    def total(self, name: str) -> float:
        """The sum of a number over all workers."""
        return sum(self.read(index)[name] for index in range(self.count))

    def say(self, index: int, text: str) -> None:
        """The last word of a worker."""
        data = text.encode()[: LONGEST_WORD - 1]
        self._words[index * LONGEST_WORD : index * LONGEST_WORD + len(data)] = data

    def words(self) -> list[str]:
        """The last words of all workers that said any."""
        parts = [self._words[i * LONGEST_WORD : (i + 1) * LONGEST_WORD] for i in range(self.count)]
        texts = [bytes(part).partition(b"\0")[0].decode(errors="replace") for part in parts]
        return [text for text in texts if text]


def play_local(life: Life, worker: str, connection: Connection, run: str, config_toml: str, log_file: Path) -> None:
    """A worker of `souls train --workers`."""
    _use_one_thread()
    from soulsai.config import config_from_toml
    from soulsai.errors import TransportError
    from soulsai.learning.wiring import build_worker
    from soulsai.telemetry.logfile import attach
    from soulsai.transport.local import LocalWorkerLink

    attach(log_file)
    config = config_from_toml(config_toml, "config.toml")
    link = LocalWorkerLink(connection, worker, run=run, beat_s=config.fleet.beat_s, touch=life.touch)
    life.on_stop(link.stop)
    try:
        build_worker(config, link, touch=life.touch).run()
        if link.ended == "gone" and not life.stopping:
            raise TransportError(f"the learner has hung up on worker {worker}; it is started again")
    finally:
        link.close()


def play_remote(life: Life, board: Board, journey: Journey) -> None:
    """A worker of `souls join`."""
    _use_one_thread()
    logging.basicConfig(format=f"%(asctime)s  worker {life.index}: %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("soulsai").setLevel(logging.INFO)
    from soulsai.config import config_from_toml
    from soulsai.learning.wiring import build_worker
    from soulsai.transport.redis.address import Address
    from soulsai.transport.redis.keys import worker_id
    from soulsai.transport.redis.worker import RedisWorkerLink

    config = config_from_toml(journey.config_toml, "the learner's config")
    address = Address.parse(journey.url, journey.ca)
    link = RedisWorkerLink(
        address,
        worker_id(address.user, life.index, secrets.token_hex(3)),
        max_chunks=config.fleet.max_chunks,
        buffer_bytes=int(config.fleet.buffer_mb * 2**20),
        waits=journey.pace == 0.0 and journey.game is None,
        **({"ahead": 0} if config.algorithm == "ppo" else {}),  # what is played meanwhile would be too old
        beat_s=config.fleet.beat_s,
        patience_s=journey.patience_s,
        started_s=journey.joined_s,
        about={"host": platform.node(), "package": journey.package},
    )
    watched = WatchedLink(link, board, life.index, life.touch)
    life.on_stop(link.stop)
    try:
        build_worker(config, watched, pace=journey.pace, touch=life.touch, game=journey.game).run()
    finally:
        watched.close()
    if link.ended and not life.stopping:
        board.say(life.index, link.ended)


class WatchedLink:
    """A link that puts on the board what goes through it, and shows that a worker which waits has not hung."""

    def __init__(self, link: RedisWorkerLink, board: Board, index: int, touch: Callable[[], None]) -> None:
        self.run, self.worker, self.is_near = link.run, link.worker, link.is_near
        self._link, self._board, self._index, self._touch = link, board, index, touch
        self._before = board.read(index)
        self._waiting, self._closed = False, threading.Event()
        threading.Thread(target=self._keep_touching, daemon=True, name="touch").start()

    @property
    def stopping(self) -> bool:
        """Whether the worker was told to stop, or is no longer wanted."""
        return self._link.stopping

    def send(self, parcel: Parcel) -> bool:
        """Hand a parcel over."""
        self._waiting = True
        try:
            return self._link.send(parcel)
        finally:
            self._waiting = False

    def newest(self) -> bytes | None:
        """The frame of the newest policy, once."""
        return self._link.newest()

    def report(self, progress: Progress) -> None:
        """What the next heartbeats say."""
        self._link.report(progress)
        told = {name: getattr(progress, name) for name in NUMBERS if hasattr(progress, name)}
        self._write(told)

    def close(self, patience_s: float = 5.0) -> None:
        """Send what is left, for so long at most, and say goodbye."""
        self._waiting = True
        try:
            self._link.close(patience_s)
        finally:
            self._closed.set()
        self._write({"steps_per_s": 0.0})

    def _write(self, told: dict[str, float]) -> None:
        sent = self._link.account()
        told |= {"sent": sent.sent, "dropped": sum(sent.dropped.values()), "unsent": self._link.unsent()}
        self._board.write(
            self._index,
            **{name: value + (self._before[name] if name in GROWING else 0.0) for name, value in told.items()},
        )

    def _keep_touching(self) -> None:
        while not self._closed.wait(TOUCH_S):
            if self._waiting:
                self._touch()
                self._write({"steps_per_s": 0.0})


def _use_one_thread() -> None:
    """Before torch is loaded: beside each other, processes with many threads each are slower."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    torch.set_num_threads(1)
