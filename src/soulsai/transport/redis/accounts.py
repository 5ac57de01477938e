"""What became of every row of every worker: the learner's counts, beside what workers say they have sent.

Chunks of a worker are counted in the order of their sequence, so one number says which of them are: all up to it. A
chunk that is settled before an earlier one waits for it; if the learner dies meanwhile it comes once more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import msgspec

from soulsai.transport.links import Account, Marks
from soulsai.transport.redis.entries import Beat, Entry
from soulsai.transport.redis.keys import Keys, is_worker

LOST = "lost_by_redis"
"""Why rows are gone that a worker had sent and nobody received: Redis came back without them."""
MOST_LIVES = 2000
"""Worker lives of one name that are counted apart; the one not heard of for longest is added to a common account."""
LOSSES = "losses"
"""What the learner tells of itself: how often it found that Redis had less than before."""


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

    def add(self, entry: Entry, reason: str | None) -> None:
        """Count a chunk as stored, or as dropped for a reason; and what is missing before it as lost."""
        self.drop(LOST, entry.pushed - entry.rows - self.pushed)
        if reason is None:
            self.stored += entry.rows
        else:
            self.drop(reason, entry.rows)
        self.settled = entry.sequence
        self.pushed = max(self.pushed, entry.pushed)

    def drop(self, reason: str, rows: int) -> None:
        """Count rows as dropped."""
        if rows > 0:
            self.dropped[reason] = self.dropped.get(reason, 0) + rows

    def received(self) -> int:
        """All rows that are accounted for."""
        return self.stored + sum(self.dropped.values())


def earlier_lives(name: str) -> str:
    """The common account of lives that are long gone."""
    return f"{name}.0.000000"


def account_of(
    worker: str, counts: Counts, beat: Beat, in_flight: int | None = None, *, is_lost: bool = False
) -> Account:
    """Both sides of an account, with what was received at least; `is_lost`: rows that are nowhere count as lost."""
    pushed = max(beat.pushed, counts.pushed, counts.received() + (in_flight or 0))
    dropped = dict(beat.dropped)
    for reason, rows in counts.dropped.items():
        dropped[reason] = dropped.get(reason, 0) + rows
    lost = pushed - counts.received() - in_flight if is_lost and in_flight is not None else 0
    if lost:
        dropped[LOST] = dropped.get(LOST, 0) + lost
    return Account(worker, pushed + sum(beat.dropped.values()), counts.stored, dropped)


class Accounts:
    """The learner's side of all accounts, in memory; `changed` is what Redis has yet to be told."""

    def __init__(self) -> None:
        self.counts: dict[str, Counts] = {}
        self.changed: set[str] = set()
        self._open: dict[str, deque[Entry]] = {}
        """Chunks that came and are not counted, in the order of each worker."""
        self._decided: dict[tuple[str, int], str | None] = {}
        self._seen = Marks()
        self._lives: dict[str, dict[str, None]] = {}

    def load(self, fields: Mapping[bytes, bytes]) -> None:
        """Read what is kept in Redis; only learners write there."""
        for worker, value in fields.items():
            if is_worker(worker.decode()):
                self._note_life(worker.decode())
                self.counts[worker.decode()] = msgspec.json.decode(value, type=Counts)

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

    def settle(self, worker: str, sequence: int, reason: str | None) -> None:
        """A chunk is stored (no reason) or dropped; the second word about the same chunk is not heard."""
        waiting = self._open.get(worker)
        if not waiting or sequence <= self.counts[worker].settled:
            return
        self._decided.setdefault((worker, sequence), reason)
        while waiting and (worker, waiting[0].sequence) in self._decided:
            entry = waiting.popleft()
            self.counts[worker].add(entry, self._decided.pop((worker, entry.sequence)))
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

    def keep_beat(self, worker: str, beat: Beat) -> None:
        """A last heartbeat is removed: what the worker itself dropped stays in the account."""
        if beat.dropped:
            self._note_life(worker)
            counts = self.counts.setdefault(worker, Counts())
            for reason, rows in beat.dropped.items():
                counts.drop(reason, rows)
                counts.pushed += rows
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
                total, gone = self.counts.setdefault(common, Counts()), self.counts.pop(oldest)
                total.stored, total.pushed = total.stored + gone.stored, total.pushed + gone.pushed
                for reason, rows in gone.dropped.items():
                    total.drop(reason, rows)
                self.changed |= {common, oldest}
