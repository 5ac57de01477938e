"""Both ends of a transport between processes of one machine, over the pipes of multiprocessing.

Everything crosses as bytes, in messages of this module around the frames of the transport; nothing is unpickled. A
parcel is sent when the learner's end has received it completely: what a killed worker had begun to write never was.
The learner's end has two threads for each worker, because a worker that is frozen in the middle of a message, or does
not read, must hold up nobody else.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import socket
import struct
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

import msgspec

from soulsai.errors import TransportError
from soulsai.transport.frames import LARGEST_BODY, LARGEST_FRAME
from soulsai.transport.links import Account, Delivery, Parcel, Progress
from soulsgym.errors import MisuseError

AHEAD = 4
"""Parcels of one worker that wait for the learner; then its pipe fills, and it waits itself."""
BEAT_S = 2.0
SILENT_AFTER_S = 10.0
TOUCH_S = 0.25
"""Seconds after which a worker that waits shows again that it has not hung."""
CLOSE_S = 1.0
"""Seconds for the threads of a closed link to end."""

PARCEL, BEAT, GOODBYE = b"P", b"B", b"G"
POLICY, OPEN, CLOSED, STOP = b"V", b"O", b"C", b"S"
PARCEL_HEAD = struct.Struct("<cQId")
"""Kind, sequence, rows and the time it was sent; the frame follows."""
POLICY_HEAD = struct.Struct("<cQ")
"""Kind and version; the frame follows."""
LARGEST_PARCEL = LARGEST_FRAME + PARCEL_HEAD.size
LARGEST_POLICY = LARGEST_BODY + POLICY_HEAD.size
LARGEST_BEAT = 4096
BROKEN = (EOFError, OSError, TypeError)
"""What a pipe raises when its other end is gone; a TypeError, when another thread closed it this moment."""

log = logging.getLogger(__name__)
_beats = msgspec.msgpack.Decoder(Progress)


class _Malformed(Exception):
    """A message that is not one of this module."""


@dataclass
class _Book:
    """The account of a worker, while it changes."""

    sent: int = 0
    stored: int = 0
    dropped: Counter[str] = field(default_factory=Counter)


@dataclass(eq=False)
class _Peer:
    """A worker as the learner's end knows it."""

    worker: str
    connection: Connection
    heard_s: float | None = None
    progress: Progress | None = None
    waiting: int = 0  # parcels the learner has not taken
    parked: bool = False  # not read because of them: its silence is ours
    left: str = ""  # why it is no longer there
    policy: bytes | None = None  # what it was told last
    is_open: bool = True
    told_to_stop: bool = False
    threads: list[threading.Thread] = field(default_factory=list)

    def beats(self, silent_after_s: float) -> bool:
        """Whether it was heard lately."""
        if self.left or self.heard_s is None:
            return False
        return self.parked or time.monotonic() - self.heard_s < silent_after_s


class LocalLearnerLink:
    """The learner's end; `say` is called from its threads, once for each worker that is lost."""

    def __init__(self, *, silent_after_s: float = SILENT_AFTER_S, say: Callable[[str], None] = log.warning) -> None:
        self._silent_after_s = silent_after_s
        self._say = say
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)  # for the learner: parcels
        self._room = threading.Condition(self._lock)  # for those that read: parcels were taken
        self._news = threading.Condition(self._lock)  # for those that write: a policy, the gate, the end
        self._peers: dict[str, _Peer] = {}
        self._books: dict[str, _Book] = {}
        self._ready: deque[Delivery] = deque()
        self._unsettled: dict[int, Parcel] = {}
        self._tickets = 0
        self._policy: bytes | None = None
        self._is_open = True
        self._stopping = False
        self._closed = False
        self._removed: Counter[str] = Counter()

    def add(self, worker: str) -> Connection:
        """Make room for a new life of a worker: the end to give to its process, and to close here then."""
        ours, theirs = multiprocessing.Pipe()
        peer = _Peer(worker, ours)
        with self._lock:
            if self._closed or worker in self._books:
                ours.close()
                theirs.close()
                why = "the link is closed" if self._closed else "each life of a worker needs a name of its own"
                raise MisuseError(f"worker {worker} cannot be added: {why}")
            self._peers[worker] = peer
            self._books[worker] = _Book()
            for task in (self._write, self._read):
                peer.threads.append(threading.Thread(target=task, args=(peer,), daemon=True, name=f"{worker} link"))
        for thread in peer.threads:
            thread.start()
        return theirs

    def remove(self, worker: str) -> None:
        """Hang up on a worker; parcels that have come stay."""
        with self._lock:
            peer = self._peers.get(worker)
            if peer is not None:
                self._leave(peer, "removed")
                _hang_up(peer.connection)

    def receive(self, limit_s: float) -> Sequence[Delivery]:
        """Parcels that have come, in the order of each worker; waits for the first for `limit_s` at most."""
        with self._lock:
            self._arrived.wait_for(lambda: self._ready or self._closed, limit_s)
            deliveries = list(self._ready)
            self._ready.clear()
            for peer in self._peers.values():
                peer.waiting = 0
            self._room.notify_all()
        return deliveries

    def settle(self, stored: Sequence[Delivery], dropped: Sequence[tuple[Delivery, str]] = (),
               repeated: Sequence[Delivery] = ()) -> None:  # fmt: skip
        """Close the books on parcels; a repeated one is counted nowhere, so not as sent either."""
        reasons = dict(_by_ticket((delivery, reason) for delivery, reason in dropped))
        kept = dict(_by_ticket((delivery, "") for delivery in stored))
        again = dict(_by_ticket((delivery, "") for delivery in repeated))
        with self._lock:
            tickets = {*reasons, *kept, *again}
            if len(tickets) < len(stored) + len(dropped) + len(repeated) or not tickets <= self._unsettled.keys():
                raise MisuseError("a parcel was settled twice, or is not one of this link")
            for ticket in tickets:
                parcel = self._unsettled.pop(ticket)
                book = self._books[parcel.worker]
                if ticket in reasons:
                    book.dropped[reasons[ticket]] += parcel.rows
                elif ticket in kept:
                    book.stored += parcel.rows
                else:
                    book.sent -= parcel.rows

    def publish(self, version: int, frame: bytes) -> None:
        """Make a policy the newest; a worker that does not read gets the newest only, once it does."""
        _check_size(frame, LARGEST_BODY, f"policy {version}")
        with self._lock:
            self._policy = POLICY_HEAD.pack(POLICY, version) + frame
            self._news.notify_all()

    def gate(self, *, is_open: bool) -> None:
        """Closed: workers wait before they send."""
        with self._lock:
            self._is_open = is_open
            self._news.notify_all()

    def stop_workers(self) -> None:
        """Ask all workers to stop, those that are added later too; what they are sending now is still taken in."""
        with self._lock:
            self._stopping = True
            self._room.notify_all()
            self._news.notify_all()

    def describe(self, values: Mapping[str, int | float | str]) -> None:
        """Nobody looks from outside."""

    def accounts(self) -> Sequence[Account]:
        """Of all worker lives since this link was made."""
        with self._lock:
            return [Account(worker, book.sent, book.stored, dict(book.dropped)) for worker, book in self._books.items()]

    def workers(self) -> int:
        """Workers whose heart beats."""
        with self._lock:
            return sum(peer.beats(self._silent_after_s) for peer in self._peers.values())

    def progress(self) -> Mapping[str, Progress]:
        """What the last heartbeats said, of the workers that are there."""
        with self._lock:
            return {peer.worker: peer.progress for peer in self._peers.values() if peer.progress is not None}

    def removed(self) -> Mapping[str, int]:
        """Workers that are no longer there, by reason: goodbye, gone, malformed, removed."""
        with self._lock:
            return dict(self._removed)

    def close(self) -> None:
        """Tell the workers to stop and hang up; the accounts can still be read."""
        with self._lock:
            peers = list(self._peers.values())
            self._stopping = True
            self._room.notify_all()
            self._news.notify_all()
        deadline_s = time.monotonic() + CLOSE_S / 2  # a frozen worker cannot be told anything
        _join((peer.threads[0] for peer in peers), deadline_s)
        with self._lock:
            self._closed = True
            for condition in (self._arrived, self._room, self._news):
                condition.notify_all()
            for peer in peers:
                _hang_up(peer.connection)
        _join((peer.threads[1] for peer in peers), deadline_s + CLOSE_S / 2)

    def _read(self, peer: _Peer) -> None:
        """The thread that listens to a worker; it closes the pipe, when nobody uses it any more."""
        why, trouble = "gone", ""
        try:
            while self._has_room(peer):
                if self._take(peer, peer.connection.recv_bytes(LARGEST_PARCEL)):
                    why = "goodbye"
                    break
        except _Malformed as error:
            why, trouble = "malformed", str(error)
        except BROKEN:
            if not peer.connection.readable:  # so it is marked after a message beyond the limit
                why, trouble = "malformed", "a message that is too long"
        with self._lock:
            is_news = self._leave(peer, why)
            _hang_up(peer.connection)
        peer.threads[0].join()  # hanging up ended what it writes
        with self._lock:
            peer.connection.close()
        if is_news and why == "malformed":
            self._say(f"worker {peer.worker} sent what no worker sends ({trouble}): hung up on it")
        elif is_news and why == "gone":
            self._say(f"worker {peer.worker} is gone without a goodbye")

    def _has_room(self, peer: _Peer) -> bool:
        """Wait until another parcel may come from it; False when nothing is wanted any more."""
        with self._lock:
            if peer.waiting >= AHEAD and not self._stopping:
                peer.parked = True
                self._room.wait_for(lambda: peer.waiting < AHEAD or self._stopping or peer.left)
                peer.parked = False
                peer.heard_s = time.monotonic()
            return not (self._closed or peer.left)

    def _take(self, peer: _Peer, message: bytes) -> bool:
        """Take in a message; True for a goodbye."""
        kind = message[:1]
        if kind == PARCEL:
            self._take_parcel(peer, message)
        elif kind == BEAT:
            progress = _progress_of(message)
            with self._lock:
                peer.heard_s, peer.progress = time.monotonic(), progress
        elif message != GOODBYE:
            raise _Malformed(f"a message of kind {kind!r}")
        return kind == GOODBYE

    def _take_parcel(self, peer: _Peer, message: bytes) -> None:
        if len(message) <= PARCEL_HEAD.size:
            raise _Malformed("a parcel that is too short")
        _, sequence, rows, sent_s = PARCEL_HEAD.unpack_from(message)
        if rows == 0 or sequence == 0:
            raise _Malformed(f"a parcel with {rows} rows and sequence {sequence}")
        parcel = Parcel(peer.worker, sequence, rows, message[PARCEL_HEAD.size :])
        with self._lock:
            self._tickets += 1
            self._unsettled[self._tickets] = parcel
            self._books[peer.worker].sent += rows
            self._ready.append(Delivery(parcel, self._tickets, sent_s))
            peer.heard_s = time.monotonic()
            peer.waiting += 1
            self._arrived.notify()

    def _leave(self, peer: _Peer, why: str) -> bool:
        """Note that a worker is no longer there, under the lock; False if that is known, or all is over."""
        if peer.left:
            return False
        peer.left = why
        peer.policy = None
        self._peers.pop(peer.worker)
        self._room.notify_all()
        self._news.notify_all()
        if self._closed:
            return False
        self._removed[why] += 1
        return True

    def _write(self, peer: _Peer) -> None:
        """The thread that talks to a worker; what it says is always the newest."""
        with suppress(*BROKEN):  # the one that reads finds out as well, and tells
            while (message := self._next_message(peer)) is not None:
                peer.connection.send_bytes(message)

    def _next_message(self, peer: _Peer) -> bytes | None:
        with self._lock:
            self._news.wait_for(lambda: peer.left or peer.told_to_stop or self._has_news(peer))
            if peer.left or peer.told_to_stop:  # nothing comes after a stop
                return None
            if self._stopping:
                peer.told_to_stop = True
                return STOP
            if peer.is_open != self._is_open:
                peer.is_open = self._is_open
                return OPEN if peer.is_open else CLOSED
            peer.policy = self._policy
            return peer.policy

    def _has_news(self, peer: _Peer) -> bool:
        return self._stopping or peer.is_open != self._is_open or peer.policy is not self._policy


class LocalWorkerLink:
    """The worker's end; it ends when it is told to stop, or when the learner's end is gone.

    `touch` is called while a parcel waits, for whoever watches that this process does not hang.
    """

    def __init__(self, connection: Connection, worker: str, *, run: str, beat_s: float = BEAT_S,
                 touch: Callable[[], None] = lambda: None) -> None:  # fmt: skip
        self.run = run
        self.worker = worker
        self.is_near = True
        self.ended = ""
        """Why it is over: stopped, or gone (the learner's end); empty while it is not."""
        self._connection = connection
        self._beat_s = beat_s
        self._touch = touch
        self._changed = threading.Condition()
        self._outgoing: bytes | None = None
        self._policy: bytes | None = None
        self._is_open = True
        self._closing = False
        self._broken = False
        self._progress = Progress()
        self._beat_at_s = time.monotonic()
        self._writer = threading.Thread(target=self._write, daemon=True, name="link writer")
        self._reader = threading.Thread(target=self._read, daemon=True, name="link reader")
        self._writer.start()
        self._reader.start()

    @property
    def stopping(self) -> bool:
        """Whether the worker was told to stop, or the learner's end is gone."""
        return bool(self.ended)

    def stop(self) -> None:
        """Stop, told by someone other than the learner."""
        self._end("stopped")

    def send(self, parcel: Parcel) -> bool:
        """Hand a parcel over; waits while the gate is closed and until it is in the pipe completely.

        False if the link was told to stop while it waited; a parcel that was begun may still be sent by `close`.
        """
        if parcel.worker != self.worker:
            raise MisuseError(f"a parcel of {parcel.worker} cannot be sent by {self.worker}")
        _check_size(parcel.frame, LARGEST_FRAME, f"chunk {parcel.sequence} of {parcel.worker}")
        with self._changed:
            self._wait_for(lambda: self._is_open and self._outgoing is None)
            if self.stopping:
                return False
            head = PARCEL_HEAD.pack(PARCEL, parcel.sequence, parcel.rows, time.time())
            self._outgoing = head + parcel.frame
            self._changed.notify_all()
            self._wait_for(lambda: self._outgoing is None)
            return self._outgoing is None

    def newest(self) -> bytes | None:
        """The frame of the newest policy, once; None if there is none newer."""
        with self._changed:
            policy, self._policy = self._policy, None
        return policy

    def report(self, progress: Progress) -> None:
        """What the next heartbeats say."""
        with self._changed:
            self._progress = progress

    def close(self, patience_s: float = 5.0) -> None:
        """Finish the parcel that is being sent, for so long at most, and say goodbye."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        deadline_s = time.monotonic() + patience_s
        _join([self._writer], deadline_s)
        _hang_up(self._connection)
        self._end("stopped")
        _join([self._writer, self._reader], time.monotonic() + CLOSE_S)
        self._connection.close()

    def _wait_for(self, ready: Callable[[], bool]) -> None:
        while not (ready() or self.stopping):
            self._changed.wait(TOUCH_S)
            self._touch()

    def _end(self, why: str) -> None:
        with self._changed:
            self.ended = self.ended or why
            self._changed.notify_all()

    def _read(self) -> None:
        try:
            while True:
                self._take(self._connection.recv_bytes(LARGEST_POLICY))
        except (*BROKEN, _Malformed):
            with self._changed:
                self._broken = True
            self._end("gone")

    def _take(self, message: bytes) -> None:
        kind = message[:1]
        if kind == STOP:
            self._end("stopped")
        elif kind in (OPEN, CLOSED):
            with self._changed:
                self._is_open = kind == OPEN
                self._changed.notify_all()
        elif kind == POLICY and len(message) > POLICY_HEAD.size:
            with self._changed:
                self._policy = message[POLICY_HEAD.size :]
        else:
            raise _Malformed

    def _write(self) -> None:
        try:
            while (message := self._next_message()) is not None:
                self._connection.send_bytes(message)
                with self._changed:
                    if message is self._outgoing:
                        self._outgoing = None
                        self._changed.notify_all()
        except BROKEN:
            self._end("gone")

    def _next_message(self) -> bytes | None:
        """A beat when it is time, before a parcel: what is sent is then never silent for longer than a parcel takes."""
        with self._changed:
            while True:
                left_s = self._beat_at_s - time.monotonic()
                if self._broken:
                    return None
                if left_s <= 0:
                    self._beat_at_s = time.monotonic() + self._beat_s
                    return BEAT + msgspec.msgpack.encode(self._progress)
                if self._outgoing is not None:
                    return self._outgoing
                if self._closing:
                    self._broken = True
                    return GOODBYE
                self._changed.wait(left_s)


def _by_ticket(deliveries: Iterable[tuple[Delivery, str]]) -> Iterable[tuple[int, str]]:
    for delivery, reason in deliveries:
        if not isinstance(delivery.ticket, int):
            raise MisuseError(f"chunk {delivery.parcel.sequence} of {delivery.parcel.worker} came by another link")
        yield delivery.ticket, reason


def _progress_of(message: bytes) -> Progress:
    if len(message) > LARGEST_BEAT:
        raise _Malformed("a heartbeat that is too long")
    try:
        return _beats.decode(message[1:])
    except msgspec.MsgspecError as error:
        raise _Malformed("a heartbeat that cannot be read") from error


def _check_size(frame: bytes, largest: int, what: str) -> None:
    if not 0 < len(frame) <= largest:
        raise TransportError(f"{what} has {len(frame)} bytes: between 1 and {largest} can be sent")


def _hang_up(connection: Connection) -> None:
    """End whatever waits on a pipe, here and at the other end; the handle stays ours until nobody uses it."""
    with suppress(OSError):
        if sys.platform == "win32":
            connection.close()
        else:
            with socket.socket(fileno=os.dup(connection.fileno())) as pipe:
                pipe.shutdown(socket.SHUT_RDWR)


def _join(threads: Iterable[threading.Thread], deadline_s: float) -> None:
    for thread in threads:
        thread.join(max(deadline_s - time.monotonic(), 0.0))
