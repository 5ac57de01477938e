"""Chunks that wait in a worker's memory until they are in Redis, and the count of those that were dropped there."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

from soulsai.transport.links import Parcel
from soulsai.transport.redis.books import Sent

WAITING_CHUNKS = 4
"""Chunks that a worker which can wait is ahead of Redis."""
BATCH_BYTES = 1 << 20
BATCH_CHUNKS = 16
BUFFER_FULL = "buffer_full"
PAUSE_S = 0.5
"""How long at most until one that waits notices that the link has ended."""


class Outbox:
    """Bounded in bytes. One that waits is bounded in chunks too; the other drops its oldest chunks for newer ones.

    One that may not be `ahead` at all waits until its chunk has been sent.
    """

    def __init__(self, most_bytes: int, *, waits: bool, ahead: int = WAITING_CHUNKS) -> None:
        self._most_bytes = most_bytes
        self._waits = waits
        self._ahead = ahead
        self._changed = threading.Condition()
        self._queue: deque[Parcel] = deque()
        self._queued_bytes = 0
        self._in_hand: Sequence[Parcel] = ()
        self._in_hand_bytes = 0
        self._accepted = 0
        self._queued_rows = 0
        self._dropped: dict[str, int] = {}
        self._waiting = 0

    @property
    def waiting(self) -> bool:
        """Whether someone waits for room right now."""
        return self._waiting > 0

    @property
    def unsent(self) -> int:
        """Rows that are not in Redis for sure."""
        with self._changed:
            return self._queued_rows + sum(parcel.rows for parcel in self._in_hand)

    def put(self, parcel: Parcel, stop: Callable[[], bool]) -> bool:
        """Add a chunk; False if `stop` said so before there was room."""
        with self._changed:
            if self._waits and not self._wait_for_room(stop):
                return False
            self._accepted += parcel.rows
            self._queue.append(parcel)
            self._queued_bytes += len(parcel.frame)
            self._queued_rows += parcel.rows
            if not self._waits:
                self._drop_oldest()
            self._changed.notify_all()
            return bool(self._ahead) or not self._waits or self._wait_while(self._holds_something, stop)

    def _wait_for_room(self, stop: Callable[[], bool]) -> bool:
        return self._wait_while(self._is_full, stop)

    def _wait_while(self, holds: Callable[[], bool], stop: Callable[[], bool]) -> bool:
        while holds() and not stop():
            self._waiting += 1
            self._changed.wait(PAUSE_S)
            self._waiting -= 1
        return not holds()

    def _is_full(self) -> bool:
        chunks = len(self._queue) + len(self._in_hand)
        return chunks >= max(1, self._ahead) or self._queued_bytes + self._in_hand_bytes >= self._most_bytes

    def _holds_something(self) -> bool:
        return bool(self._queue or self._in_hand)

    def _drop_oldest(self) -> None:
        """Those in hand may be in Redis already, so they are left alone; and the newest is always kept."""
        while len(self._queue) > 1 and self._queued_bytes + self._in_hand_bytes > self._most_bytes:
            self._count_dropped(self._pop(), BUFFER_FULL)

    def _pop(self) -> Parcel:
        parcel = self._queue.popleft()
        self._queued_bytes -= len(parcel.frame)
        self._queued_rows -= parcel.rows
        return parcel

    def _count_dropped(self, parcel: Parcel, reason: str) -> None:
        self._dropped[reason] = self._dropped.get(reason, 0) + parcel.rows

    def wait(self, limit_s: float) -> bool:
        """Whether there is something to send; waits for it for so long at most, or until woken."""
        with self._changed:
            if not self._queue:
                self._changed.wait(limit_s)
            return bool(self._queue)

    def wake(self) -> None:
        """Let everyone who waits look again."""
        with self._changed:
            self._changed.notify_all()

    def take(self, most: int) -> Sequence[Parcel]:
        """The oldest chunks, a few at once if they are small; they stay counted until they are done or put back."""
        with self._changed:
            batch: list[Parcel] = []
            size = 0
            while self._queue and len(batch) < min(most, BATCH_CHUNKS):
                size += len(self._queue[0].frame)
                if batch and size > BATCH_BYTES:
                    break
                batch.append(self._pop())
            self._in_hand = batch
            self._in_hand_bytes = sum(len(parcel.frame) for parcel in batch)
            return batch

    @property
    def in_hand(self) -> Sequence[Parcel]:
        """What was taken and is neither done nor put back: it may be in Redis or not."""
        return self._in_hand

    def put_back(self) -> None:
        """What was taken is certainly not in Redis: it waits again, in front of all others."""
        with self._changed:
            self._queue.extendleft(reversed(self._in_hand))
            self._queued_bytes += self._in_hand_bytes
            self._queued_rows += sum(parcel.rows for parcel in self._in_hand)
            self._empty_hand()
            if not self._waits:
                self._drop_oldest()

    def done(self, refused: Sequence[Parcel] = (), reason: str = "") -> None:
        """What was taken is in Redis, but for those that were refused: they are dropped."""
        with self._changed:
            for parcel in refused:
                self._count_dropped(parcel, reason)
            self._empty_hand()
            self._changed.notify_all()

    def _empty_hand(self) -> None:
        self._in_hand, self._in_hand_bytes = (), 0

    def drop(self, parcel: Parcel, reason: str) -> None:
        """Count a chunk as dropped that was never here."""
        with self._changed:
            self._accepted += parcel.rows
            self._count_dropped(parcel, reason)

    def give_up(self, reason: str) -> int:
        """Drop everything that waits; how many rows. Of those in hand nobody knows."""
        with self._changed:
            rows = self._queued_rows
            while self._queue:
                self._count_dropped(self._pop(), reason)
            return rows

    def account(self, *, with_hand: bool) -> Sent:
        """What the worker has sent if those in hand arrive, or without them."""
        with self._changed:
            hand = 0 if with_hand else sum(parcel.rows for parcel in self._in_hand)
            return Sent(self._accepted - self._queued_rows - hand, dict(self._dropped))
