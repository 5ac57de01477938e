"""The books of one worker life: what it says it has sent, and what the learner says became of it.

A worker may send a chunk twice, when it never heard whether the first try arrived. So the learner's side also knows
which chunks it has settled, and counts each of them once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated

import msgspec

from soulsai.transport.redis.keys import is_worker

LOST = "lost_by_redis"
"""Why rows are gone that Redis had acknowledged: it came back without them."""
MOST_ROWS = 1 << 24
MOST_DIGITS = 15
MALFORMED = "malformed"
"""Messages of a name, not rows, that could not even be told whose they are."""

Count = Annotated[int, msgspec.Meta(ge=0, lt=10**MOST_DIGITS)]
Reason = Annotated[str, msgspec.Meta(pattern=r"\A[a-z0-9_-]{1,40}\Z")]
REASON = re.compile(r"[a-z0-9_-]{1,40}")


class Sent(msgspec.Struct, frozen=True):
    """Rows that a worker has sent since its life began, and those of them that it dropped itself."""

    sent: Count = 0
    dropped: Annotated[dict[Reason, Count], msgspec.Meta(max_length=32)] = msgspec.field(default_factory=dict)


def sent_field(line: int, sent: Sent) -> tuple[str, bytes]:
    """The field of a worker's account, and its value.

    Each line is one that the worker wrote to without a break. What was on its way in an earlier line may still arrive
    after a break, and must not set the account back.
    """
    return str(line), msgspec.json.encode(sent)


def read_sent(account: Mapping[bytes, bytes]) -> Sent:
    """A worker's account: the value of its newest line; nothing sent if it is not a worker's writing."""
    lines = [line for line in account if _number(line) is not None]
    try:
        return msgspec.json.decode(account[max(lines, key=int)], type=Sent)
    except (ValueError, msgspec.MsgspecError):
        return Sent()


@dataclass
class Life:
    """The learner's side of the account of one worker life."""

    stored: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    highest: int = 0
    """The highest chunk that is settled. A worker's chunks come in order, so every chunk below it has come too."""
    gaps: set[int] = field(default_factory=set)
    """Chunks below the highest that are not settled."""
    held: dict[int, None] = field(default_factory=dict)
    """Chunks that have come to this learner and are not settled, in their order."""
    orphaned: dict[int, int] = field(default_factory=dict)
    """Rows by chunk that the learner holds and that Redis has lost."""

    def is_settled(self, sequence: int) -> bool:
        """Whether a chunk is stored or dropped, and a copy of it is to be counted nowhere."""
        return sequence <= self.highest and sequence not in self.gaps

    def hold(self, sequence: int) -> bool:
        """A chunk has come; whether it is the first of its kind."""
        if sequence in self.held or self.is_settled(sequence):
            return False
        self.held[sequence] = None
        return True

    def settle(self, sequence: int, rows: int, reason: str | None) -> None:
        """Count a chunk as stored, or as dropped for this reason."""
        if reason is None:
            self.stored += rows
        else:
            self.dropped[reason] = self.dropped.get(reason, 0) + rows
        self.held.pop(sequence, None)
        self.gaps.discard(sequence)
        self.orphaned.pop(sequence, None)
        if sequence > self.highest:
            for other in self.held:
                if other > sequence:
                    break
                self.gaps.add(other)
            self.highest = sequence

    def missing(self, sent: Sent, in_flight: int) -> int:
        """Rows that were sent and are nowhere, apart from those already known to be lost."""
        dropped = sum(self.dropped.values()) - self.dropped.get(LOST, 0)
        return sent.sent - sum(sent.dropped.values()) - self.stored - dropped - in_flight

    def fields(self, worker: str) -> dict[str, str]:
        """As it is kept in Redis: every value is absolute, so writing it twice does no harm."""
        kept = {f"{worker}|dropped:{reason}": str(rows) for reason, rows in self.dropped.items()}
        kept[f"{worker}|stored"] = str(self.stored)
        kept[f"{worker}|settled"] = " ".join([str(self.highest), *_ranges(self.gaps)])
        kept[f"{worker}|orphaned"] = " ".join(f"{chunk}:{rows}" for chunk, rows in self.orphaned.items())
        return kept


@dataclass
class Books:
    """All lives, and the messages of each name that could not be read."""

    lives: dict[str, Life] = field(default_factory=dict)
    malformed: dict[str, int] = field(default_factory=dict)

    def life(self, worker: str) -> Life:
        """That of a worker; a new one if it was never heard of."""
        life = self.lives.get(worker)
        if life is None:
            life = self.lives[worker] = Life()
        return life

    def fields(self) -> dict[str, str]:
        """Everything, as it is kept in Redis."""
        kept = {f"{name}|{MALFORMED}": str(messages) for name, messages in self.malformed.items()}
        for worker, life in self.lives.items():
            kept |= life.fields(worker)
        return kept


def read_books(accounts: Mapping[bytes, bytes]) -> Books:
    """The learner's side as it is kept in Redis; only learners write there."""
    books = Books()
    for key, value in accounts.items():
        who, _, what = key.decode(errors="replace").partition("|")
        text = value.decode(errors="replace")
        if what == MALFORMED:
            books.malformed[who] = int(text)
        elif what == "stored":
            books.life(who).stored = int(text)
        elif what == "orphaned":
            pairs = (pair.split(":") for pair in text.split())
            books.life(who).orphaned = {int(chunk): int(rows) for chunk, rows in pairs}
        elif what == "settled":
            highest, *ranges = text.split()
            life = books.life(who)
            life.highest, life.gaps = int(highest), set(_from_ranges(ranges))
        elif what.startswith("dropped:"):
            books.life(who).dropped[what.removeprefix("dropped:")] = int(text)
    return books


def read_label(name: str, worker: object, sequence: object, rows: object) -> tuple[str, int, int] | None:
    """Worker, sequence and rows of an entry in the stream of a name; None if they are not what a worker writes."""
    who = _worker(name, worker) if isinstance(worker, bytes) else None
    number = _number(sequence) if isinstance(sequence, bytes) else None
    count = _number(rows) if isinstance(rows, bytes) else None
    if not who or not number or not count or count > MOST_ROWS:
        return None
    return who, number, count


@lru_cache(maxsize=4096)
def _worker(name: str, raw: bytes) -> str | None:
    worker = raw.decode(errors="replace")
    return worker if is_worker(worker, name) else None


def _number(raw: bytes) -> int | None:
    return int(raw) if raw.isdigit() and len(raw) <= MOST_DIGITS else None


def _ranges(numbers: Iterable[int]) -> list[str]:
    """As in 3-5 8."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return [f"{first}-{last}" if last > first else str(first) for first, last in found]


def _from_ranges(ranges: Iterable[str]) -> Iterable[int]:
    for text in ranges:
        first, _, last = text.partition("-")
        yield from range(int(first), int(last or first) + 1)
