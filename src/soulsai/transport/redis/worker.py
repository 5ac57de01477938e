"""The worker's end over Redis: one thread sends experience, asks for the newest policy, and beats the heart."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from redis.exceptions import RedisError, ResponseError, TryAgainError

from soulsai.errors import TransportError
from soulsai.transport.frames import LARGEST_FRAME
from soulsai.transport.links import Account, Message, Progress
from soulsai.transport.redis.address import Address
from soulsai.transport.redis.connection import LockedOut, Refused, Retry, Stopped, Untrusted, connect
from soulsai.transport.redis.entries import (
    BUFFER_FULL,
    EVERYONE,
    LEFT,
    OVERSIZED,
    STOP,
    UNSENT,
    read_commands,
    write_beat,
    write_entry,
)
from soulsai.transport.redis.keys import Keys
from soulsgym.errors import MisuseError

OPEN = b"open"
WAITING_CHUNKS = 4
"""Chunks that a worker which can wait is ahead of Redis."""
GATED_CHUNKS = 2
"""Chunks sent at once by a worker that may find the gate closed with the next answer."""
BATCH_CHUNKS = 16
BATCH_BYTES = 1 << 20
FRESH_S = 0.5
"""How long an answer about the room in the list holds."""
POLLS_S = (0.02, 0.05, 0.2)
"""How often a worker asks for a policy: one that cannot go on without it, one that plays, and one that does not."""
BLOCKED_S = (0.02, 0.1)
"""Pause while there is no room in the list."""
FULL_S = (0.2, 0.4)
"""Pause while Redis has no memory or no disk left."""
PAUSE_S = 0.5
"""How long at most until one that waits notices that the link has ended."""
REVOKED, LOCKED_OUT = "revoked", "locked out"
STOPPED = "stopped by the operator"
SLACK_S = 1.0
"""How much longer than its patience a link may take to close."""
NOT_NOW = ("OOM", "maxmemory", "MISCONF", "WRONGTYPE")
"""Why Redis does not take a chunk for now: no memory, no disk, or a key that the learner has yet to remove."""

log = logging.getLogger(__name__)


def fetch_welcome(
    address: Address, patience_s: float | None, say: Callable[[str], None] = log.warning,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[bytes, float]:  # fmt: skip
    """The frame in which the learner says what is played, and what time it is for Redis.

    TransportError if there is none for so long, Stopped if `stop` says so first.
    """
    keys = Keys(address.run)

    def ask() -> tuple[bytes, float]:
        frame: Any = client.get(keys.welcome)
        if frame is None:
            raise TryAgainError(f"it has no run {address.run!r} yet: souls serve has to be running")
        now: Any = client.time()
        return bytes(frame), now[0] + now[1] / 1e6

    with connect(address) as client:
        return Retry(address, patience_s, say).run("join", ask, stop)


class RedisWorkerLink:
    """One worker life, once it is started. Experience is kept in memory while Redis cannot be reached.

    One that `waits` holds few chunks, and those that send wait; the other drops its oldest beyond `buffer_bytes`. One
    that may not be `ahead` at all waits until its chunk is in Redis.
    """

    def __init__(
        self,
        address: Address,
        worker: str,
        *,
        max_chunks: int,
        buffer_bytes: int,
        waits: bool,
        ahead: int = WAITING_CHUNKS,
        beat_s: float = 2.0,
        patience_s: float | None = None,
        about: Mapping[str, str] | None = None,
        started_s: float | None = None,
    ) -> None:
        """`started_s`: commands that were given before it, by the clock of Redis, are for others; now if not given."""
        self.run = address.run
        self.worker = worker
        self.is_near, self.has_sent = address.is_near, False
        self.ended = ""
        """Why the link has ended by itself; empty while it has not."""
        self.progress = Progress()
        self._keys = Keys(address.run)
        self._name = self._keys.name_of(worker)
        self._client: Any = connect(address)
        self._retry = Retry(address, patience_s)
        self._max_chunks, self._buffer_bytes, self._waits, self._ahead = max_chunks, buffer_bytes, waits, ahead
        self._beat_s, self._about, self._started_s = beat_s, dict(about or {}), started_s
        self._thread = threading.Thread(target=self._guard, name=worker, daemon=True)
        self._ending, self._closing = threading.Event(), threading.Event()
        self._give_up_s = float("inf")
        self._changed = threading.Condition()
        self._queue: deque[Message] = deque()
        self._taken = 0
        """So many at the front were sent, and nobody knows whether they are in Redis: sent again they count once."""
        self._is_unsure = False  # of those, since the connection was lost
        self._bytes = self._pushed = self._waiting = 0
        self._dropped: dict[str, int] = {}
        self._policy: bytes | None = None
        self._version: bytes | None = None
        self._moved_s = time.monotonic()
        self._next_beat_s = 0.0
        self._clock_s = time.time() - time.monotonic()  # of Redis, as soon as it was asked
        self._room, self._is_open, self._asked_s = 0, False, -float("inf")

    def start(self) -> RedisWorkerLink:
        """Begin to send and to listen."""
        self._thread.start()
        return self

    @property
    def stopping(self) -> bool:
        """Whether the worker was told to stop, is no longer wanted, or has lost its learner for too long."""
        return self._ending.is_set()

    @property
    def is_waiting(self) -> bool:
        """Whether someone waits to hand a chunk over."""
        return self._waiting > 0

    def stop(self) -> None:
        """Let the worker come to an end, as if the operator had asked for it."""
        self._end("")

    def account(self) -> Account:
        """What the worker has sent and dropped; what became of the rest the learner knows."""
        with self._changed:
            return Account(self.worker, self._pushed + sum(self._dropped.values()), 0, dict(self._dropped))

    def unsent(self) -> int:
        """Rows that wait in the worker's memory."""
        with self._changed:
            return _rows(self._queue)

    def newest(self) -> bytes | None:
        """The frame of the newest policy, once."""
        if self._policy is None:  # Looked at before every step: without the lock when there is nothing.
            return None
        with self._changed:
            policy, self._policy = self._policy, None
            return policy

    def report(self, progress: Progress) -> None:
        """What the next heartbeats say."""
        if progress.steps != self.progress.steps:
            self._moved_s = time.monotonic()
        self.progress = progress

    # What waits to be sent

    def send(self, message: Message) -> bool:
        """Hand a chunk over; see `WorkerLink`."""
        if self._thread.ident is None:
            raise MisuseError(f"the link of {self.worker} was not started: call start() before send()")
        if self._closing.is_set() or self.ended in (REVOKED, LOCKED_OUT):
            return False
        with self._changed:
            if len(message.frame) > LARGEST_FRAME:
                self._drop([message], OVERSIZED)
                return True
            if self._waits and not self._wait_while(self._is_full):
                return False
            self.has_sent = True
            self._queue.append(message)
            self._bytes += len(message.frame)
            self._drop_oldest()
            self._changed.notify_all()
            return bool(self._ahead) or not self._waits or self._wait_while(lambda: bool(self._queue))

    def _wait_while(self, holds: Callable[[], bool]) -> bool:
        while holds() and not (self._ending.is_set() or self._closing.is_set()):
            self._waiting += 1
            self._changed.wait(PAUSE_S)
            self._waiting -= 1
        return not holds()

    def _is_full(self) -> bool:
        return len(self._queue) >= max(1, self._ahead) or self._bytes >= self._buffer_bytes

    def _drop_oldest(self) -> None:
        """Those that were sent may be in Redis already, so they are left alone; and the newest is always kept."""
        while not self._waits and len(self._queue) > self._taken + 1 and self._bytes > self._buffer_bytes:
            oldest = self._queue[self._taken]
            del self._queue[self._taken]
            self._bytes -= len(oldest.frame)
            self._drop([oldest], BUFFER_FULL)

    def _drop(self, messages: Iterable[Message], reason: str) -> None:
        if rows := _rows(messages):
            self._dropped[reason] = self._dropped.get(reason, 0) + rows

    def _batch(self) -> list[Message]:
        """The oldest chunks, a few at once if they are small; those of before where nobody knows of them."""
        with self._changed:
            if not self._taken:
                size = 0
                for message in islice(
                    self._queue, max(0, min(self._room, GATED_CHUNKS if self._waits else BATCH_CHUNKS))
                ):
                    size += len(message.frame)
                    if self._taken and size > BATCH_BYTES:
                        break
                    self._taken += 1
            return list(islice(self._queue, self._taken))

    def _note_pushed(self, reply: Any) -> None:
        """What was sent is in Redis, or is certainly not."""
        if isinstance(reply, ResponseError) and any(word in str(reply) for word in NOT_NOW):
            with self._changed:
                self._taken = self._taken if self._is_unsure else 0
                self._drop_oldest()
            time.sleep(random.uniform(*FULL_S))
            return
        if isinstance(reply, Exception):
            raise reply
        with self._changed:
            for _ in range(self._taken):
                message = self._queue.popleft()
                self._pushed += message.rows
                self._bytes -= len(message.frame)
            self._taken, self._is_unsure, self._room = 0, False, self._max_chunks - reply
            self._changed.notify_all()

    # The thread

    def _guard(self) -> None:
        try:
            self._work()
        except Stopped:
            pass
        except Untrusted as error:
            self._end(str(error))
        except Refused as error:
            log.warning("%s: %s", self.worker, error)
            self._end(LOCKED_OUT if isinstance(error, LockedOut) else REVOKED)
        except TransportError as error:
            self._end(str(error))
        except Exception as error:
            if not self._closing.is_set():
                log.exception("%s: its link has failed", self.worker)
                self._end(f"the link has failed: {type(error).__name__}: {error}")
        finally:
            self._client.connection_pool.disconnect()

    def _end(self, reason: str) -> None:
        self.ended = self.ended or reason
        self._ending.set()
        with self._changed:
            self._changed.notify_all()

    def _work(self) -> None:
        while not self._closing.is_set():
            self._retry.run("reach the learner", self._turn, self._must_give_up)
            self._rest()
        try:
            while self._queue and not self._must_give_up():
                self._retry.run("send experience", self._turn, self._must_give_up)
                if self._room <= 0:
                    self._rest()
            self._give_up()
            self._retry.run("say goodbye", self._say_goodbye, self._must_give_up)
        except (TransportError, Stopped, RedisError, OSError) as error:
            self._give_up()
            log.warning("%s leaves without a goodbye: %s", self.worker, str(error) or "there was no time")

    def _must_give_up(self) -> bool:
        return time.monotonic() > self._give_up_s

    def _give_up(self) -> None:
        """Drop everything that waits, but for what was sent, of which nobody knows."""
        with self._changed:
            left = list(islice(self._queue, self._taken, None))
            if left:
                log.warning("%s leaves with %d rows that it could not send", self.worker, _rows(left))
                self._drop(left, UNSENT)
                self._queue = deque(islice(self._queue, self._taken))

    def _rest(self) -> None:
        """Until there is something to do: a chunk to send, a policy to ask for, or a beat."""
        with self._changed:
            if not self._queue:
                if not self._closing.is_set():
                    is_idle = time.monotonic() - self._moved_s > 1.0
                    poll_s = POLLS_S[0 if not self._ahead else 2 if is_idle else 1]
                    self._changed.wait(max(0.001, min(poll_s, self._next_beat_s - time.monotonic())))
                return
        if self._room <= 0 or (self._waits and not self._is_open):
            time.sleep(random.uniform(*BLOCKED_S))

    def _turn(self) -> None:
        """Send a batch if there is room for it, beat if it is time, and hear what is new: one trip to Redis."""
        now_s = time.monotonic()
        may_send = self._is_open or not self._waits or self._closing.is_set()
        is_fresh = self._room > 0 and now_s - self._asked_s < FRESH_S
        batch = self._batch() if self._taken or (may_send and is_fresh) else []
        is_beat = now_s >= self._next_beat_s
        pipe = self._client.pipeline(transaction=False)
        if batch:
            pipe.rpush(self._keys.experience(self._name), *self._entries(batch))
        if is_beat:
            pipe.hset(self._keys.beats(self._name), self.worker, self._beat())
        pipe.llen(self._keys.experience(self._name))
        pipe.get(self._keys.gate)
        pipe.get(self._keys.version)
        pipe.get(self._keys.to(self._name))
        pipe.time()
        try:
            replies = list(pipe.execute(raise_on_error=False))
        except (RedisError, OSError):
            self._is_unsure = bool(batch)
            raise
        pushed = replies.pop(0) if batch else None
        beat = replies.pop(0) if is_beat else None
        length, gate, version, commands, now = replies
        for reply in (gate, version, commands, now):
            if isinstance(reply, Exception):
                raise reply
        self._clock_s = now[0] + now[1] / 1e6 - time.monotonic()
        self._room = self._max_chunks - length if isinstance(length, int) else self._max_chunks
        self._is_open = gate == OPEN
        self._asked_s = time.monotonic()
        if is_beat:
            if isinstance(beat, Exception) and not any(word in str(beat) for word in NOT_NOW):
                raise beat  # A Redis that is full takes no heartbeat, but the worker is well.
            self._next_beat_s = now_s + self._beat_s
        self._hear(version, commands)
        if batch:
            self._note_pushed(pushed)

    def _entries(self, batch: Iterable[Message]) -> list[bytes]:
        pushed, entries, now_s = self._pushed, [], self._clock_s + time.monotonic()
        for message in batch:
            pushed += message.rows
            entries.append(write_entry(message, now_s, pushed))
        return entries

    def _beat(self, state: str = "") -> bytes:
        """One that waits for room does not stand still of itself."""
        now_s = time.monotonic()
        with self._changed:
            pushed, dropped = self._pushed, dict(self._dropped)
        state = state or ("waiting" if self._waiting else self.progress.state)
        return write_beat(
            self.progress, state, now_s - self._moved_s, self._about,
            time_s=self._clock_s + now_s, pushed=pushed, dropped=dropped,
        )  # fmt: skip

    def _hear(self, version: bytes | None, commands: bytes | None) -> None:
        if self._started_s is None:
            self._started_s = self._clock_s + time.monotonic()
        if any(
            command.what == STOP and command.worker in (self.worker, EVERYONE) and command.time_s > self._started_s
            for command in read_commands(commands)
        ):
            self._end(STOPPED)
        if version is not None and version != self._version:
            frame = self._client.get(self._keys.policy)
            if frame is not None:
                with self._changed:
                    self._policy, self._version = frame, version

    def _say_goodbye(self) -> None:
        """Once more what nobody knows of, and a last heartbeat with the account."""
        pipe = self._client.pipeline(transaction=False)
        if self._queue:
            pipe.rpush(self._keys.experience(self._name), *self._entries(self._queue))
        pipe.hset(self._keys.beats(self._name), self.worker, self._beat(LEFT))
        pipe.execute()

    def close(self, patience_s: float = 5.0) -> None:
        """Send what is left, for so long at most, and say goodbye."""
        if self._closing.is_set():
            return
        self._give_up_s = time.monotonic() + patience_s
        self._closing.set()
        with self._changed:
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join(patience_s + SLACK_S)
        self._ending.set()


def _rows(messages: Iterable[Message]) -> int:
    return sum(message.rows for message in messages)
