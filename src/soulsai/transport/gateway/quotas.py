"""How much a name may send through a gateway, and what happens to what is beyond.

A name that sends too fast is slowed: its answers come later. What would have to wait for too long is dropped, with a
count and a reason; a worker keeps such a chunk and sends it again. A name of which much is dropped is locked out for a
while.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from soulsai.transport.frames import LARGEST_FRAME
from soulsai.transport.gateway import counts

LONGEST_WAIT_S = 2.0
"""Slower than this, a chunk is dropped instead."""
STRIKES_WINDOW_S = 60.0
MOST_NAMES = 10_000
"""Names whose counts are kept; those without a connection are forgotten first."""

CHUNKS, BYTES, MEMORY, INVALID, TOO_LONG, LOCKED = "chunks", "bytes", "memory", "invalid", "too_long", "locked_out"
"""Why a chunk is dropped."""


@dataclass(frozen=True)
class Limits:
    """For each name, all its connections together."""

    chunks_per_s: float = 50.0
    bytes_per_s: float = 8 << 20
    burst_s: float = 4.0  # so much may come at once
    answers_per_s: float = 1000.0
    answer_bytes_per_s: float = 32 << 20  # policies, most of all
    memory: int = 256 << 20  # bytes that wait for the learner
    connections: int = 32
    all_connections: int = 1024  # of everybody
    message: int = LARGEST_FRAME + (2 << 20)  # bytes of one message: the largest chunk, or some small ones
    strikes: int = 20  # chunks dropped within a minute until the name is locked out
    locked_s: float = 120.0


class Bucket:
    """Fills by `rate` a second up to `size`; taking more than there is leaves a debt that has to be waited for."""

    def __init__(self, rate: float, size: float, now_s: float) -> None:
        self._rate, self._size, self._level, self._at_s = rate, size, size, now_s

    def wait_s(self, amount: float, now_s: float) -> float:
        """How long so much would have to wait; nothing is taken."""
        self._level = min(self._size, self._level + (now_s - self._at_s) * self._rate)
        self._at_s = now_s
        return max(0.0, (min(amount, self._size) - self._level) / self._rate)

    def take(self, amount: float) -> None:
        """Take it."""
        self._level -= amount


@dataclass
class Name:
    """One invited name at the door."""

    chunks: Bucket
    bytes: Bucket
    answers: Bucket
    answer_bytes: Bucket
    connections: int = 0
    machines: Counter[str] = field(default_factory=Counter)  # connections by address
    passed: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    strikes: deque[float] = field(default_factory=deque)
    locked_until_s: float = 0.0
    waiting: deque[int] = field(default_factory=deque)  # sizes of the entries that wait for the learner


class Quotas:
    """The quotas of all names."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits, self._clock = limits, clock
        self.totals = counts.Counts()
        self._names: dict[str, Name] = {}

    def of(self, name: str) -> Name:
        """What is known of a name."""
        if name not in self._names:
            for other in [key for key, known in self._names.items() if not known.connections][: len(self._names)]:
                if len(self._names) < MOST_NAMES:
                    break
                del self._names[other]
            limits, now_s = self.limits, self._clock()
            chunks, size, answers, answer_bytes = (
                Bucket(rate, rate * limits.burst_s, now_s)
                for rate in (
                    limits.chunks_per_s, limits.bytes_per_s, limits.answers_per_s, limits.answer_bytes_per_s
                )
            )  # fmt: skip
            self._names[name] = Name(chunks, size, answers, answer_bytes)
        return self._names[name]

    def refusal(self, name: str) -> tuple[str, str]:
        """Why a name may not come in now, in a word and in a sentence; empty if it may."""
        known, limits = self.of(name), self.limits
        if (left_s := known.locked_until_s - self._clock()) > 0.0:
            return counts.LOCKED, f"{name} has sent too much and is locked out for another {left_s:.0f} s"
        if known.connections >= limits.connections:
            return counts.CROWDED, f"{name} has {known.connections} connections already, which is the limit"
        if sum(each.connections for each in self._names.values()) >= limits.all_connections:
            return counts.FULL, "this gateway has no room for another connection"
        return "", ""

    def is_locked(self, name: str) -> bool:
        """Whether a name is locked out."""
        return self.of(name).locked_until_s > self._clock()

    def pass_or_drop(self, name: str, sizes: list[int]) -> tuple[str, float]:
        """Why these chunks are dropped, or an empty reason and how long they have to wait."""
        known, now_s, total = self.of(name), self._clock(), sum(sizes)
        waits = {CHUNKS: known.chunks.wait_s(len(sizes), now_s), BYTES: known.bytes.wait_s(total, now_s)}
        reason, wait_s = max(waits.items(), key=lambda item: item[1])
        if known.locked_until_s > now_s:
            reason = LOCKED
        elif sum(known.waiting) + total > self.limits.memory:
            reason = MEMORY
        elif wait_s <= LONGEST_WAIT_S:
            known.chunks.take(len(sizes))
            known.bytes.take(total)
            return "", wait_s
        self.drop(name, reason, len(sizes))
        return reason, 0.0

    def wait_s(self, name: str) -> float:
        """How long a name has to wait for its next answer; asking costs as much as being answered."""
        known, now_s = self.of(name), self._clock()
        wait_s = max(known.answers.wait_s(1.0, now_s), known.answer_bytes.wait_s(1.0, now_s))
        known.answers.take(1.0)
        return wait_s

    def note_answer(self, name: str, size: int) -> None:
        """A name gets an answer of so many bytes."""
        self.of(name).answer_bytes.take(size)

    def drop(self, name: str, reason: str, chunks: int) -> None:
        """Count what was dropped; a learner that is slow is nobody's fault, everything else is a strike."""
        known, now_s = self.of(name), self._clock()
        known.dropped[reason] += chunks
        self.totals.dropped[reason] += chunks
        if reason in (MEMORY, LOCKED):
            return
        known.strikes.extend([now_s] * min(chunks, self.limits.strikes))
        while known.strikes and known.strikes[0] < now_s - STRIKES_WINDOW_S:
            known.strikes.popleft()
        if len(known.strikes) >= self.limits.strikes:
            known.locked_until_s = now_s + self.limits.locked_s
            known.strikes.clear()

    def note_passed(self, name: str, sizes: list[int], length: int) -> None:
        """These are in Redis, where so many entries of the name wait now."""
        known = self.of(name)
        known.passed += len(sizes)
        self.totals.passed += len(sizes)
        known.waiting.extend(sizes)
        self.note_waiting(name, length)

    def note_waiting(self, name: str, length: int) -> None:
        """So many entries of the name wait: the learner has taken the oldest."""
        waiting = self.of(name).waiting
        while len(waiting) > length:
            waiting.popleft()

    def counts(self) -> dict[str, dict[str, int]]:
        """Chunks of every name that came through, and that were dropped, by reason."""
        return {name: {"passed": known.passed, **known.dropped} for name, known in self._names.items()}
