"""Both ends of a transport between processes of one machine, over the pipes of multiprocessing.

Everything crosses as bytes; nothing is unpickled. A worker sends a chunk, or asks for news, and sends nothing more
before the answer: the newest policy, a stop, or nothing. The learner's end has a thread for each worker, which answers
a chunk when there is room for another and the gate is open. So a worker that is frozen in the middle of a message, or
does not read, holds up nobody else, and what a killed one had begun to write was never sent.
"""

from __future__ import annotations

import logging
import multiprocessing
import struct
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

from soulsai.transport.links import Account, LearnerLink, Message, Progress
from soulsgym.errors import MisuseError

AHEAD = 4
"""Chunks of one worker that wait for the learner; then it waits itself."""
ASK_S = 0.01
"""How often a worker asks for news."""
LOOK_S = 0.1
"""How often one that waits looks whether the other end is still there, or it is to stop."""
CLOSE_S = 1.0
"""Seconds for the threads of a closed link to end."""

CHUNK_HEAD = struct.Struct("<QId")
"""Sequence, rows and the time it was sent; the frame follows."""
ASK, GOODBYE = b"?", b"G"
POLICY, STOP, NOTHING = b"V", b"S", b"-"
BROKEN = (EOFError, OSError, TypeError)
"""What a pipe raises when its other end is gone; a TypeError, when another thread closed it this moment."""

log = logging.getLogger(__name__)


@dataclass(eq=False)
class _Peer:
    """A life of a worker as the learner's end knows it, with its account."""

    worker: str
    connection: Connection
    is_there: bool = False  # it was heard, and has not left
    waiting: int = 0  # chunks the learner has not taken
    sequence: int = 0  # of the last chunk
    unsettled: dict[int, int] = field(default_factory=dict)  # rows by sequence
    sent: int = 0
    stored: int = 0
    dropped: Counter[str] = field(default_factory=Counter)

    def settle(self, sequence: int, reason: str = "") -> None:
        """Count a chunk as stored, or as dropped for a reason; the second word about the same chunk is not heard."""
        rows = self.unsettled.pop(sequence, 0)
        if reason and rows:
            self.dropped[reason] += rows
        elif rows:
            self.stored += rows


class LocalLearnerLink(LearnerLink):
    """The learner's end; `say` is called from its threads, once for each worker that is lost."""

    def __init__(
        self, *, say: Callable[[str], None] = log.warning, on_first_policy: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__()
        self._say, self._on_first_policy = say, on_first_policy
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)  # for the learner: chunks
        self._changed = threading.Condition(self._lock)  # for the threads: room, the gate, the end
        self._peers: dict[str, _Peer] = {}
        self._threads: list[threading.Thread] = []
        self._ready: deque[Message] = deque()
        self._policy: bytes | None = None
        self._is_open, self._stopping = True, False

    def add(self, worker: str) -> Connection:
        """Make room for a new life of a worker: the end to give to its process, and to close here then."""
        if worker in self._peers:
            raise MisuseError(f"worker {worker} cannot be added: each life of a worker needs a name of its own")
        ours, theirs = multiprocessing.Pipe()
        peer = self._peers[worker] = _Peer(worker, ours)
        self._threads.append(threading.Thread(target=self._serve, args=(peer,), daemon=True, name=f"{worker} link"))
        self._threads[-1].start()
        return theirs

    def receive(self, limit_s: float) -> Sequence[Message]:
        """Chunks that have come, in the order of each worker; waits for the first for `limit_s` at most."""
        with self._lock:
            self._arrived.wait_for(lambda: self._ready, limit_s)
            messages = list(self._ready)
            self._ready.clear()
            for peer in self._peers.values():
                peer.waiting = 0
            self._changed.notify_all()
        return messages

    def settle(self, stored: Sequence[Message], dropped: Sequence[tuple[Message, str]] = ()) -> None:
        """Count messages as stored or dropped."""
        with self._lock:
            for message in stored:
                self._peers[message.worker].settle(message.sequence)
            for message, reason in dropped:
                self._peers[message.worker].settle(message.sequence, reason)

    def publish(self, version: int, frame: bytes) -> None:
        """Make a policy the newest; a worker gets the newest only, with the next answer."""
        is_first, self._policy = self._policy is None, POLICY + frame
        if is_first:
            self._on_first_policy()

    def gate(self, *, is_open: bool) -> None:
        """Closed: workers wait after the chunk they have sent."""
        with self._lock:
            self._is_open = is_open
            self._changed.notify_all()

    def stop_workers(self) -> None:
        """Ask all workers to stop, those that are added later too; what they are sending now is still taken in."""
        with self._lock:
            self._stopping = True
            self._changed.notify_all()

    def describe(self, values: Mapping[str, int | float | str]) -> None:
        """Nobody looks from outside."""

    def accounts(self) -> Sequence[Account]:
        """Of all worker lives since this link was made."""
        with self._lock:
            return [Account(peer.worker, peer.sent, peer.stored, dict(peer.dropped)) for peer in self._peers.values()]

    def workers(self) -> int:
        """Workers that are there."""
        with self._lock:
            return sum(peer.is_there for peer in self._peers.values())

    def close(self) -> None:
        """Tell the workers to stop; the threads of those that have ended end. The accounts can still be read."""
        self.stop_workers()
        deadline_s = time.monotonic() + CLOSE_S
        for thread in self._threads:
            thread.join(max(deadline_s - time.monotonic(), 0.0))

    def _serve(self, peer: _Peer) -> None:
        """The thread that listens to a worker and answers it."""
        known, said_goodbye = NOTHING, False
        with suppress(*BROKEN):
            while not (said_goodbye := (message := peer.connection.recv_bytes()) == GOODBYE):
                known = self._answer(peer, message, known)
        with self._lock:
            peer.is_there, is_over = False, self._stopping
        peer.connection.close()
        if not said_goodbye and not is_over:
            self._say(f"worker {peer.worker} is gone without a goodbye")

    def _answer(self, peer: _Peer, message: bytes, known: bytes) -> bytes:
        """Take a message and answer it; the policy that the worker knows then."""
        with self._lock:
            peer.is_there = True
            if message != ASK:
                self._take(peer, message)
                while not self._stopping and not (self._is_open and peer.waiting < AHEAD):
                    self._changed.wait(LOOK_S)
                    if peer.connection.poll():  # it does not wait for the answer: it leaves, or is gone
                        break
            newest = self._policy or NOTHING
            news = STOP if self._stopping else newest if newest is not known else NOTHING
        with suppress(*BROKEN):  # what it has said before it left is read next
            peer.connection.send_bytes(news)
        return newest

    def _take(self, peer: _Peer, message: bytes) -> None:
        sequence, rows, sent_s = CHUNK_HEAD.unpack_from(message)
        if sequence > peer.sequence:  # else a repeat
            peer.sequence = sequence
            peer.sent += rows
            peer.unsettled[sequence] = rows
            peer.waiting += 1
            self._ready.append(Message(peer.worker, sequence, rows, message[CHUNK_HEAD.size :], sent_s))
            self._arrived.notify()


class LocalWorkerLink:
    """The worker's end; it ends when it is told to stop, or when the learner's end is gone."""

    def __init__(self, connection: Connection, worker: str, *, run: str) -> None:
        self.run, self.worker = run, worker
        self.is_near, self.has_sent, self.is_waiting = True, False, False
        self.ended = ""
        """Why it is over: stopped, or gone (the learner's end); empty while it is not."""
        self._connection = connection
        self._policy: bytes | None = None
        self._is_asking, self._asked_s = False, float("-inf")

    @property
    def stopping(self) -> bool:
        """Whether the worker was told to stop, or the learner's end is gone."""
        return bool(self.ended)

    def stop(self) -> None:
        """Stop, told by someone other than the learner."""
        self.ended = self.ended or "stopped"

    def send(self, message: Message) -> bool:
        """Hand a chunk over; waits until the one before it is answered: there is room, and the gate is open.

        False if the link was told to stop meanwhile.
        """
        if message.worker != self.worker:
            raise MisuseError(f"a chunk of {message.worker} cannot be sent by {self.worker}")
        if not self._hear(wait=True):
            return False
        self._ask(CHUNK_HEAD.pack(message.sequence, message.rows, time.time()) + message.frame)
        self.has_sent = self.has_sent or not self.ended
        return not self.ended

    def newest(self) -> bytes | None:
        """The frame of the newest policy, once; None if there is none newer."""
        if self._hear(wait=False) and not self._is_asking and time.monotonic() - self._asked_s >= ASK_S:
            self._ask(ASK)
        policy, self._policy = self._policy, None
        return policy

    def report(self, progress: Progress) -> None:
        """Nobody looks from outside: the learner counts what comes."""

    def close(self, patience_s: float = 5.0) -> None:
        """Say goodbye."""
        with suppress(*BROKEN):
            self._connection.send_bytes(GOODBYE)
        self.stop()
        self._connection.close()

    def _ask(self, data: bytes) -> None:
        self.is_waiting = True
        try:
            self._connection.send_bytes(data)
            self._is_asking, self._asked_s = True, time.monotonic()
        except BROKEN:
            self.ended = self.ended or "gone"
        finally:
            self.is_waiting = False

    def _hear(self, *, wait: bool) -> bool:
        """Take the answer to what was sent last, if it is there or `wait`; False if the link has ended."""
        self.is_waiting = wait and self._is_asking
        try:
            while self._is_asking and not self.ended:
                if self._connection.poll(LOOK_S if wait else 0.0):
                    answer, self._is_asking = self._connection.recv_bytes(), False
                    if answer == STOP:
                        self.stop()
                    elif answer != NOTHING:
                        self._policy = answer[len(POLICY) :]
                elif not wait:
                    break
        except BROKEN:
            self.ended = self.ended or "gone"
        finally:
            self.is_waiting = False
        return not self.ended
