"""What became of every row of every worker, as the learner has counted it.

What workers say of themselves is compared with it and shown beside it, but never counted: whoever says more than came
has an open account, and nothing else. Of what workers drop themselves there is only their word, so it is believed as
far as it fits what they sent.

Chunks of a worker are counted in the order of their sequence, so one number says which of them are: all up to it. A
chunk that is settled before an earlier one waits for it; if the learner dies meanwhile it comes once more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import msgspec

from soulsai.transport.links import Account, Marks, Played
from soulsai.transport.redis.entries import WORKER_REASONS, Beat, Entry
from soulsai.transport.redis.keys import Keys, is_worker

LOST = "lost_by_redis"
"""Why rows are gone that a worker had sent and nobody received: Redis came back without them."""
MOST_LIVES = 2000
"""Worker lives of one name that are counted apart; the one not heard of for longest is added to a common account."""
LOSSES = "losses"
"""What the learner tells of itself: how often it found that Redis had less than before."""
MOST_CHUNKS = 8192
"""Messages of one name that may wait; workers keep to a smaller number by themselves."""
OWN_DROPS = 100
"""How many times as many rows as came a worker may have dropped itself: one may be cut off for long."""
REFUSED = {
    "quota": "messages discarded unread (quota)",
    "clock": "messages with a false time",
    "heartbeat": "false heartbeats",
    "type": "keys of a wrong type",
    "forbidden": "forbidden commands",
}
"""What is counted of a name beside its rows, by reason."""
QUOTA, CLOCK, HEARTBEAT, TYPE, FORBIDDEN = REFUSED
FEW_ROWS = 100_000
"""Rows that a worker may have dropped, or Redis lost, before any came."""


class Counts(msgspec.Struct):
    """The learner's side of the account of one worker life."""

    settled: int = 0
    """The highest sequence that is stored or dropped; so are all below it."""
    stored: int = 0
    pushed: int = 0
    """Rows that the worker said it had sent, in the newest chunk that is settled."""
    dropped: dict[str, int] = msgspec.field(default_factory=dict)
    unreadable: int = 0
    """Messages of a name that no worker of ours has written, in the common account of the name."""
    refused: dict[str, int] = msgspec.field(default_factory=dict)
    """What was refused of a name, by the reasons of `REFUSED`, in the same account."""
    largest: int = 0
    """Rows of the largest chunk that is stored."""
    steps: int = 0
    episodes: int = 0
    fights: int = 0
    wins: int = 0

    def add(self, entry: Entry, reason: str | None, played: Played | None = None) -> None:
        """Count a chunk as stored, or as dropped for a reason; and what is missing before it as lost.

        No more can be missing than the chunks whose sequence is, as large as the largest that came.
        """
        missing = min(entry.sequence - self.settled - 1, MOST_CHUNKS) * max(self.largest, entry.rows)
        self.drop(LOST, min(entry.pushed - entry.rows - self.pushed, missing))
        if reason is None:
            self.stored += entry.rows
            self.largest = max(self.largest, entry.rows)
        else:
            self.drop(reason, entry.rows)
        if played is not None:
            self.steps += played.steps
            self.episodes += played.episodes
            self.fights += played.fights
            self.wins += played.wins
        self.settled = entry.sequence
        self.pushed = max(self.pushed, entry.pushed)

    def merge(self, other: Counts) -> None:
        """Add the account of a life that is long gone."""
        for name in ("stored", "pushed", "steps", "episodes", "fights", "wins"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for reason, rows in other.dropped.items():
            self.drop(reason, rows)

    def own_drops(self, beat: Beat) -> dict[str, int]:
        """What a worker says it has dropped itself, as far as that is believed."""
        most = OWN_DROPS * self.received() + FEW_ROWS
        return {reason: min(rows, most) for reason, rows in beat.dropped.items() if reason in WORKER_REASONS}

    def drop(self, reason: str, rows: int) -> None:
        """Count rows as dropped."""
        if rows > 0:
            self.dropped[reason] = self.dropped.get(reason, 0) + rows

    def received(self) -> int:
        """All rows that are accounted for."""
        return self.stored + sum(self.dropped.values())


NOTHING = Counts()


def earlier_lives(name: str) -> str:
    """The common account of lives that are long gone."""
    return f"{name}.0.000000"


def account_of(worker: str, counts: Counts, beat: Beat, in_flight: int, *, is_lost: bool = False) -> Account:
    """The account with so many rows on their way; `is_lost`: rows that are nowhere, though sent, count as lost."""
    own, dropped = counts.own_drops(beat), dict(counts.dropped)
    for reason, rows in own.items():
        dropped[reason] = dropped.get(reason, 0) + rows
    nowhere = max(0, beat.pushed - counts.received() - in_flight)
    lost = min(nowhere, max(FEW_ROWS, MOST_CHUNKS * counts.largest)) if is_lost else 0
    if lost:
        dropped[LOST] = dropped.get(LOST, 0) + lost
    return Account(worker, counts.stored + sum(dropped.values()) + in_flight, counts.stored, dropped)


class Accounts:
    """The learner's side of all accounts, in memory; `changed` is what Redis has yet to be told."""

    def __init__(self) -> None:
        self.counts: dict[str, Counts] = {}
        self.changed: set[str] = set()
        self._open: dict[str, deque[Entry]] = {}
        """Chunks that came and are not counted, in the order of each worker."""
        self._decided: dict[tuple[str, int], tuple[str | None, Played | None]] = {}
        self._seen = Marks()
        self._lives: dict[str, dict[str, None]] = {}

    def load(self, fields: Mapping[bytes, bytes]) -> None:
        """Read what is kept in Redis; only learners write there."""
        for worker, value in fields.items():
            if is_worker(worker.decode()):
                self._note_life(worker.decode())
                self.counts[worker.decode()] = msgspec.json.decode(value, type=Counts)

    def gap(self, entry: Entry) -> int:
        """Sequence numbers that a worker of whom others came has left out before this chunk."""
        known = max(self._seen.get(entry.worker), self.counts.get(entry.worker, NOTHING).settled)
        return entry.sequence - known - 1 if known else 0

    def take(self, entry: Entry) -> bool:
        """Note a chunk that came; False if it came before."""
        counts = self.counts.get(entry.worker, Counts())
        if entry.sequence <= max(counts.settled, self._seen.get(entry.worker)):
            return False
        self._seen.move(entry.worker, entry.sequence)
        self._note_life(entry.worker)
        self.counts.setdefault(entry.worker, counts)
        self._open.setdefault(entry.worker, deque()).append(entry)
        return True

    def in_flight(self, worker: str) -> int:
        """Rows that came and are not counted."""
        return sum(entry.rows for entry in self._open.get(worker, ()))

    def settle(self, worker: str, sequence: int, reason: str | None, played: Played | None = None) -> None:
        """A chunk is stored (no reason) or dropped; the second word about the same chunk is not heard."""
        waiting = self._open.get(worker)
        if not waiting or sequence <= self.counts[worker].settled:
            return
        self._decided.setdefault((worker, sequence), (reason, played))
        while waiting and (worker, waiting[0].sequence) in self._decided:
            entry = waiting.popleft()
            self.counts[worker].add(entry, *self._decided.pop((worker, entry.sequence)))
            self.changed.add(worker)
        if not waiting:
            del self._open[worker]

    def is_settled(self, entry: Entry | None) -> bool:
        """Whether a chunk is counted, or one after it of the same worker is, or it was none."""
        counts = self.counts.get(entry.worker) if entry else None
        return entry is None or counts is None or entry.sequence <= counts.settled

    def count_unreadable(self, name: str) -> None:
        """A message came that no worker has written."""
        self.counts.setdefault(earlier_lives(name), Counts()).unreadable += 1
        self.changed.add(earlier_lives(name))

    def refuse(self, name: str, reason: str, number: int) -> None:
        """So much of a name was refused, for one of the reasons of `REFUSED`."""
        refused = self.counts.setdefault(earlier_lives(name), Counts()).refused
        refused[reason] = refused.get(reason, 0) + number
        self.changed.add(earlier_lives(name))

    def keep_beat(self, worker: str, beat: Beat) -> None:
        """A last heartbeat is removed: what the worker itself dropped stays in the account."""
        counts = self.counts.get(worker)
        if counts is not None and (own := counts.own_drops(beat)):  # of one that never sent anything, nothing stays
            for reason, rows in own.items():
                counts.drop(reason, rows)
            self.changed.add(worker)

    def fields(self) -> dict[str, bytes]:
        """What is to be written; an empty value is to be removed."""
        kept = {worker: self.counts.get(worker) for worker in self.changed}
        return {worker: msgspec.json.encode(counts) if counts else b"" for worker, counts in kept.items()}

    def _note_life(self, worker: str) -> None:
        """Note who was heard of last; beyond the limit the oldest with nothing on its way is added to the others."""
        name = Keys.name_of(worker)
        lives = self._lives.setdefault(name, {})
        lives.pop(worker, None)
        lives[worker] = None
        if len(lives) > MOST_LIVES:
            common = earlier_lives(name)
            oldest = next((who for who in lives if who not in self._open and who != common), None)
            if oldest is not None and oldest in self.counts:
                del lives[oldest]
                self.counts.setdefault(common, Counts()).merge(self.counts.pop(oldest))
                self.changed |= {common, oldest}
