"""The worker's end over Redis: one thread sends experience, the other hears of policies and beats the heart."""

from __future__ import annotations

import logging
import random
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import OutOfMemoryError, RedisError, ResponseError

from soulsai.errors import TransportError
from soulsai.transport.frames import LARGEST_FRAME
from soulsai.transport.links import Parcel, Progress
from soulsai.transport.redis.address import Address
from soulsai.transport.redis.beats import EVERYONE, LEFT, STOP, read_commands, write_beat
from soulsai.transport.redis.books import Sent, sent_field
from soulsai.transport.redis.connection import Refused, Retry, Stopped, connect
from soulsai.transport.redis.keys import Keys
from soulsai.transport.redis.outbox import WAITING_CHUNKS, Outbox

OPEN = b"open"
GATED_CHUNKS = 2
"""Chunks sent at once by a worker that may find the gate closed with the next answer."""
FRESH_S = 0.5
"""How long an answer about the room in the stream holds."""
POLL_S = (0.02, 0.05)
LONG_POLL_S = (0.1, 0.2)
LONG_WAIT_S = 10.0
"""After waiting for so long a worker asks less often."""
FULL_S = (0.2, 0.4)
"""Pause while Redis has no memory or no disk left."""
LONGEST_BLOCK_S = 2.0
IDLE_S = 1.0
FROM_START = b"0-0"
OVERSIZED = "oversized"
REFUSED = "refused"
UNSENT = "unsent"
REVOKED = "revoked"
STOPPED = "stopped by the operator"
TOO_LARGE = "invalid bulk length"
"""How Redis refuses a chunk that is larger than it may be. Then it hangs up, often before that was heard."""
ALWAYS_TAKEN = 1 << 20
"""Bytes that no server can be told to refuse."""
MOST_RESETS = 3
"""Times in a row that a server which answers hangs up on the same larger chunk, until the chunk is blamed."""
WELCOME_PAUSE_S = 0.2
SLACK_S = 1.0
"""How much longer than its patience a link may take to close."""
CUT_AGAIN_S = 0.05

log = logging.getLogger(__name__)


def fetch_welcome(address: Address, *, patience_s: float = 10.0) -> bytes:
    """The frame in which the learner says what is played; TransportError if there is none for so long."""
    keys, retry = Keys(address.run), Retry(address, patience_s)
    deadline_s = time.monotonic() + patience_s
    with connect(address, client="souls-join") as client:
        while True:
            frame: Any = retry.run("fetch the welcome", lambda: client.get(keys.welcome))
            if frame is not None:
                return bytes(frame)
            if time.monotonic() > deadline_s:
                raise TransportError(
                    f"{address.place} has no run {address.run!r} yet: see that souls serve is running, and try again"
                )
            time.sleep(WELCOME_PAUSE_S)


def server_time(address: Address, patience_s: float | None = None) -> float:
    """What time it is for Redis, in seconds."""
    with connect(address, client="souls-join") as client:
        seconds, microseconds = Retry(address, patience_s).run("ask for the time", client.time)
    return float(seconds) + float(microseconds) / 1e6


class RedisWorkerLink:
    """One worker life. Experience is kept in memory while Redis cannot be reached, up to `buffer_bytes`."""

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
        self.is_near = address.is_near
        self.ended = ""
        """Why the link has ended by itself; empty while it has not."""
        self._keys = Keys(address.run)
        self._name = self._keys.name_of(worker)
        self._ending = threading.Event()
        self._closing = threading.Event()
        self._give_up_s = float("inf")
        self._outbox = Outbox(buffer_bytes, waits=waits, ahead=ahead)
        retry = Retry(address, patience_s)
        self._sender = _Sender(address, self._keys, worker, self._outbox, retry, max_chunks, obeys_gate=waits)
        self._listener = _Listener(address, self._keys, worker, retry, beat_s, about or {}, self._outbox, started_s)
        self._threads = [
            threading.Thread(target=self._guard, args=(self._send,), name=f"{worker} sends", daemon=True),
            threading.Thread(target=self._guard, args=(self._listen,), name=f"{worker} listens", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def stopping(self) -> bool:
        """Whether the worker was told to stop, is no longer wanted, or has lost its learner for too long."""
        return self._ending.is_set()

    def stop(self) -> None:
        """Let the worker come to an end, as if the operator had asked for it."""
        self._ending.set()
        self._outbox.wake()

    def account(self) -> Sent:
        """What the worker has sent and dropped."""
        return self._outbox.account(with_hand=False)

    def unsent(self) -> int:
        """Rows that wait in the worker's memory."""
        return self._outbox.unsent

    def send(self, parcel: Parcel) -> bool:
        """Hand a chunk over; see `WorkerLink`."""
        if self._closing.is_set() or self.ended == REVOKED:
            return False
        if len(parcel.frame) > LARGEST_FRAME:
            self._outbox.drop(parcel, OVERSIZED)
            return True
        return self._outbox.put(parcel, lambda: self._ending.is_set() or self._closing.is_set())

    def newest(self) -> bytes | None:
        """The frame of the newest policy, once."""
        return self._listener.take_policy()

    def report(self, progress: Progress) -> None:
        """What the next heartbeats say."""
        self._listener.report(progress)

    def close(self, patience_s: float = 5.0) -> None:
        """Send what is left, for so long at most, and say goodbye."""
        if self._closing.is_set():
            return
        self._give_up_s = time.monotonic() + patience_s
        self._closing.set()
        self._outbox.wake()
        sender, listener = self._threads
        self._end_listening(listener)
        sender.join(max(self._give_up_s - time.monotonic(), 0.0) + SLACK_S)
        self._say_goodbye()
        self._sender.cut()
        sender.join(SLACK_S)
        self._ending.set()

    def _end_listening(self, listener: threading.Thread) -> None:
        """It may be waiting for an answer: then its connection is closed under it."""
        deadline_s = time.monotonic() + SLACK_S
        while listener.is_alive() and time.monotonic() < deadline_s:
            self._listener.cut()
            listener.join(CUT_AGAIN_S)
        self._listener.release()

    def _say_goodbye(self) -> None:
        rows = self._outbox.give_up(UNSENT)
        if rows:
            log.warning("%s leaves with %d rows that it could not send", self.worker, rows)
        if self.ended in ("", STOPPED) and not self._threads[0].is_alive():
            try:
                self._sender.say_goodbye(self._listener.last_words(), self._must_give_up)
            except (TransportError, Stopped, RedisError, OSError) as error:
                log.warning("%s leaves without a goodbye: %s", self.worker, str(error) or "there was no time")

    def _must_give_up(self) -> bool:
        return time.monotonic() > self._give_up_s

    def _end(self, reason: str) -> None:
        self.ended = self.ended or reason
        self._ending.set()
        self._outbox.wake()

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Stopped:
            pass
        except Refused as error:
            log.warning("%s: %s", self.worker, error)
            self._end(REVOKED)
        except TransportError as error:
            self._end(str(error))
        except Exception as error:
            if not self._closing.is_set():
                log.exception("%s: its link has failed", self.worker)
                self._end(f"the link has failed: {type(error).__name__}: {error}")

    def _send(self) -> None:
        while not self._must_give_up() and not (self.ended and self.ended != STOPPED):
            closing = self._closing.is_set()
            if self._outbox.wait(0.0 if closing else IDLE_S):
                self._sender.send_some(self._must_give_up, closing=closing)
            elif closing:
                break
            else:
                self._sender.tell_drops(self._must_give_up)

    def _listen(self) -> None:
        while not self._closing.is_set() and not (self.ended and self.ended != STOPPED):
            if self._listener.listen(self._closing.is_set):
                self._end(STOPPED)


class _Sender:
    """Appends chunks in their order, each batch in one transaction with the account that counts it."""

    def __init__(
        self,
        address: Address,
        keys: Keys,
        worker: str,
        outbox: Outbox,
        retry: Retry,
        max_chunks: int,
        *,
        obeys_gate: bool,
    ) -> None:
        self._client: Any = connect(address, client=f"souls-{worker}-sends")
        self._keys = keys
        self._worker = worker
        self._stream = keys.experience(keys.name_of(worker))
        self._account = keys.account(worker)
        self._outbox = outbox
        self._retry = retry
        self._max_chunks = max_chunks
        self._obeys_gate = obeys_gate
        self._line = 1
        self._is_unsure = False
        self._resets = 0
        self._written = Sent()
        self._room = 0
        self._is_open = True
        self._asked_s = -float("inf")
        self._waits_since_s: float | None = None

    def send_some(self, stop: Callable[[], bool], *, closing: bool) -> None:
        """Send a batch if there is room for it, else wait a little."""
        if time.monotonic() - self._asked_s > FRESH_S:
            self._retry.run("reach the learner", self._ask, stop)
        if self._room <= 0 or not (self._is_open or closing):
            self._wait_for_room()
            return
        self._waits_since_s = None
        batch = self._outbox.take(min(self._room, GATED_CHUNKS) if self._obeys_gate else self._room)
        if batch:
            self._append(batch, stop)

    def tell_drops(self, stop: Callable[[], bool]) -> None:
        """Write the account if something was dropped that no chunk has told of."""
        if self._outbox.account(with_hand=False) != self._written:
            self._retry.run("reach the learner", self._ask, stop)

    def _wait_for_room(self) -> None:
        now_s = time.monotonic()
        self._waits_since_s = self._waits_since_s or now_s
        time.sleep(random.uniform(*(POLL_S if now_s - self._waits_since_s < LONG_WAIT_S else LONG_POLL_S)))
        self._asked_s = -float("inf")

    def _ask(self) -> None:
        """How much room there is; drops that nothing else tells of are told on the way."""
        account = self._outbox.account(with_hand=False)
        if account == self._written:
            self._execute(self._client.pipeline(transaction=True))
            return
        try:
            self._begin_line()
            pipe = self._client.pipeline(transaction=True)
            pipe.hset(self._account, *sent_field(self._line, account))
            self._execute(pipe)
            self._written = account
        except ResponseError as error:
            if not _is_full(error):
                raise
            self._execute(self._client.pipeline(transaction=True))

    def _append(self, batch: Sequence[Parcel], stop: Callable[[], bool]) -> None:
        try:
            self._retry.run("send experience", lambda: self._try_append(batch), stop)
        except ResponseError as error:
            if TOO_LARGE not in str(error):
                raise
            self._resets = 0
            log.warning("%s: Redis does not take a chunk of %d bytes", self._worker, len(batch[0].frame))
            self._outbox.done(refused=batch, reason=OVERSIZED)

    def _try_append(self, batch: Sequence[Parcel]) -> None:
        is_large = len(batch[0].frame) > ALWAYS_TAKEN
        if is_large and self._resets:
            self._client.ping()  # What fails after this fails because of the chunk.
        pipe, account = self._transaction(batch)
        try:
            replies = self._execute(pipe)
        except RedisConnectionError as error:
            self._resets += is_large
            if self._resets > MOST_RESETS:
                raise ResponseError(f"{TOO_LARGE}, it seems: {error}") from error
            raise
        except ResponseError as error:
            if not _is_full(error):
                raise
            self._outbox.put_back()
            time.sleep(random.uniform(*FULL_S))
            return
        self._resets = 0
        self._settle_batch(batch, replies, account)

    def _transaction(self, batch: Sequence[Parcel]) -> tuple[Any, Sent]:
        self._begin_line()
        pipe = self._client.pipeline(transaction=True)
        for parcel in batch:
            fields = ("w", parcel.worker, "q", parcel.sequence, "r", parcel.rows, "f", parcel.frame)
            pipe.execute_command("XADD", self._stream, "*", *fields)
        account = self._outbox.account(with_hand=True)
        pipe.hset(self._account, *sent_field(self._line, account))
        return pipe, account

    def _settle_batch(self, batch: Sequence[Parcel], replies: Sequence[Any], account: Sent) -> None:
        refused = [parcel for parcel, reply in zip(batch, replies, strict=False) if isinstance(reply, Exception)]
        if refused:
            log.warning("%s: Redis does not take %d chunks: %s", self._worker, len(refused), replies[0])
        self._outbox.done(refused, REFUSED)
        self._written = Sent() if refused else account

    def _begin_line(self) -> None:
        """A try of which nobody knows whether it arrived may still arrive later: it must find its line left."""
        if self._is_unsure:
            self._line += 1
        self._is_unsure = True

    def _execute(self, pipe: Any) -> list[Any]:
        """Run a transaction and hear in the same answer how much room there is now."""
        pipe.xlen(self._stream)
        pipe.get(self._keys.gate)
        replies: list[Any]
        try:
            *replies, length, gate = pipe.execute(raise_on_error=False)
        except ResponseError:
            self._is_unsure = False
            raise
        self._is_unsure = False
        self._room = self._max_chunks - length if isinstance(length, int) else 0
        self._is_open = gate == OPEN or not self._obeys_gate
        self._asked_s = time.monotonic()
        return replies

    def say_goodbye(self, beat: bytes, stop: Callable[[], bool]) -> None:
        """The last word on what was sent and dropped, and a last heartbeat.

        Of what is still in hand nobody knows whether it has arrived: it is sent once more, and counted once.
        """

        def goodbye() -> None:
            pipe, _ = self._transaction(self._outbox.in_hand)
            pipe.execute_command("XADD", self._keys.beat(self._worker), "MAXLEN", "1", "*", "b", beat)
            pipe.execute()

        self._retry.run("say goodbye", goodbye, stop)

    def cut(self) -> None:
        """Close its connection."""
        self._client.connection_pool.disconnect()


def _is_full(error: ResponseError) -> bool:
    """No memory, or no disk to keep it on: the transaction was not begun."""
    return isinstance(error, OutOfMemoryError) or "MISCONF" in str(error)


class _Listener:
    """Waits for policies on a connection of its own, and between two of them beats the heart."""

    def __init__(
        self,
        address: Address,
        keys: Keys,
        worker: str,
        retry: Retry,
        beat_s: float,
        about: Mapping[str, str],
        outbox: Outbox,
        started_s: float | None,
    ) -> None:
        self._client: Any = connect(address, client=f"souls-{worker}-listens")
        self._keys = keys
        self._worker = worker
        self._name = keys.name_of(worker)
        self._retry = retry
        self._beat_s = beat_s
        self._about = dict(about)
        self._outbox = outbox
        self._lock = threading.Lock()
        self._policy: bytes | None = None
        self._version = b""
        self._seen = FROM_START
        self._progress = Progress()
        self._moved_s = time.monotonic()
        self._next_beat_s = 0.0
        self._started_s = started_s

    def take_policy(self) -> bytes | None:
        """The newest one, once."""
        if self._policy is None:  # Looked at before every step: without the lock when there is nothing.
            return None
        with self._lock:
            policy, self._policy = self._policy, None
            return policy

    def report(self, progress: Progress) -> None:
        """What the next heartbeats say."""
        if progress.steps != self._progress.steps:
            self._moved_s = time.monotonic()
        self._progress = progress

    def listen(self, stop: Callable[[], bool]) -> bool:
        """Beat if it is time, then wait for a policy until the next beat; whether the worker is to stop."""
        return self._retry.run("hear from the learner", lambda: self._try_listen(stop), stop)

    def _try_listen(self, stop: Callable[[], bool]) -> bool:
        try:
            if time.monotonic() >= self._next_beat_s and self._beat():
                return True
            self._wait_for_policy()
        except Exception:
            self._seen = FROM_START  # After a break it looks at once what the newest is.
            if stop():
                raise Stopped from None
            raise
        return False

    def _beat(self) -> bool:
        """Whether it was told to stop."""
        pipe = self._client.pipeline(transaction=False)
        pipe.execute_command("XADD", self._keys.beat(self._worker), "MAXLEN", "1", "*", "b", self._words())
        pipe.get(self._keys.to(self._name))
        pipe.time()
        beat, commands, now = pipe.execute(raise_on_error=False)
        for reply in (commands, now):
            if isinstance(reply, Exception):
                raise reply
        if isinstance(beat, Exception) and not (isinstance(beat, ResponseError) and _is_full(beat)):
            raise beat  # A Redis that is full takes no heartbeat, but the worker is well.
        self._next_beat_s = time.monotonic() + self._beat_s
        if self._started_s is None:
            self._started_s = now[0] + now[1] / 1e6
        return any(
            command.what == STOP and command.worker in (self._worker, EVERYONE) and command.time_s > self._started_s
            for command in read_commands(commands)
        )

    def _words(self) -> bytes:
        """One that waits for room does not stand still of itself."""
        waits = self._outbox.waiting
        return write_beat(
            self._progress, "waiting" if waits else self._progress.state, time.monotonic() - self._moved_s, self._about
        )

    def last_words(self) -> bytes:
        """The heartbeat of one that leaves."""
        return write_beat(self._progress, LEFT, time.monotonic() - self._moved_s, self._about)

    def _wait_for_policy(self) -> None:
        left_s = min(max(self._next_beat_s - time.monotonic(), 0.001), LONGEST_BLOCK_S)
        found = self._client.execute_command(
            "XREAD", "COUNT", "1", "BLOCK", max(1, round(left_s * 1000)), "STREAMS", self._keys.versions, self._seen
        )
        if not found:
            return
        entry, fields = found[0][1][-1]
        version = fields.get(b"v", b"")
        if version != self._version:
            frame = self._client.get(self._keys.policy)
            if frame is None:
                return
            with self._lock:
                self._policy = frame
            self._version = version
        self._seen = entry

    def cut(self) -> None:
        """End its connection under it while it waits for an answer there.

        The socket is shut, not closed: a thread that is about to wait for a closed one waits until its time is up.
        """
        for connection in list(self._client.connection_pool._in_use_connections):
            ends = connection._sock
            if ends is not None:
                with suppress(OSError):
                    ends.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        """Close its connection, when nobody waits there any more."""
        self._client.connection_pool.disconnect()
