"""What the learner has taken from Redis and not settled, and its side of all accounts: in memory, without Redis."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from soulsai.transport.redis.books import LOST, MALFORMED, Books, Life, Sent
from soulsai.transport.redis.ledger import Snapshot

Ticket = tuple[str, bytes]
"""The name whose stream it is, and the entry in it."""


@dataclass(frozen=True)
class Held:
    """A chunk that was handed out and is not settled; a copy of another one is counted nowhere."""

    worker: str
    sequence: int
    rows: int
    is_copy: bool


class Settling:
    """Collects acknowledgements and changed accounts until they are written; all values are absolute."""

    def __init__(self, books: Books) -> None:
        self.books = books
        self.acks: dict[str, list[bytes]] = {}
        self.changed: dict[str, str] = {}
        self._held: dict[Ticket, Held] = {}

    def is_held(self, ticket: Ticket) -> bool:
        """Whether it was handed out and is not settled."""
        return ticket in self._held

    def hold(self, ticket: Ticket, worker: str, sequence: int, rows: int) -> None:
        """It is handed out now."""
        is_first = self.books.life(worker).hold(sequence)
        self._held[ticket] = Held(worker, sequence, rows, not is_first)

    def settle(self, ticket: Ticket, reason: str | None) -> str | None:
        """Count it as stored, or as dropped for a reason; whose account has changed. Twice does no harm."""
        held = self._held.pop(ticket, None)
        if held is None:
            return None
        self.acks.setdefault(ticket[0], []).append(ticket[1])
        if held.is_copy:
            return None
        self.books.lives[held.worker].settle(held.sequence, held.rows, reason)
        return held.worker

    def change(self, workers: Collection[str]) -> None:
        """The accounts of these are to be written."""
        for worker in workers:
            self.changed |= self.books.lives[worker].fields(worker)

    def throw_away(self, name: str, entry: bytes, *, is_message: bool) -> None:
        """An entry that no worker of ours has written, or one whose contents are gone."""
        self.acks.setdefault(name, []).append(entry)
        if is_message:
            self.books.malformed[name] = self.books.malformed.get(name, 0) + 1
            self.changed[f"{name}|{MALFORMED}"] = str(self.books.malformed[name])

    def written(self) -> None:
        """Acknowledgements and accounts are in Redis."""
        self.acks.clear()
        self.changed.clear()

    def least_sent(self, worker: str, known: Sent) -> int:
        """Rows that a worker must have sent: what it was known to have, and all that has become of them."""
        life = self.books.lives.get(worker, Life())
        held = sum(held.rows for held in self._held.values() if held.worker == worker and not held.is_copy)
        here = life.stored + sum(life.dropped.values()) + held
        return max(known.sent, here + sum(known.dropped.values()))

    def balance(self, seen: Snapshot) -> dict[str, int]:
        """After a loss: what is held here and gone there is still on its way; what is nowhere is lost.

        Returns the rows by worker that are newly known to be lost. All accounts are to be written afterwards.
        """
        self._find_orphans({(entry.name, entry.id) for entry in seen.entries})
        on_their_way = replace(seen, books=self.books).in_flight()
        lost: dict[str, int] = {}
        for worker in lives_of(seen.sent, self.books):
            life = self.books.life(worker)
            before = life.dropped.get(LOST, 0)
            missing = max(0, life.missing(seen.sent.get(worker, Sent()), on_their_way.get(worker, 0)))
            if missing != before:
                life.dropped[LOST] = missing
                lost[worker] = missing - before
        self.change(self.books.lives)
        return lost

    def _find_orphans(self, there: Collection[Ticket]) -> None:
        for life in self.books.lives.values():
            life.orphaned = {}
        for ticket, held in self._held.items():
            if not held.is_copy and ticket not in there:
                self.books.lives[held.worker].orphaned[held.sequence] = held.rows

    def write_off_orphans(self) -> int:
        """A learner before this one held them and has ended: they are lost; how many rows."""
        lost = 0
        for worker, life in self.books.lives.items():
            rows = sum(life.orphaned.values())
            if rows:
                life.dropped[LOST] = life.dropped.get(LOST, 0) + rows
                life.orphaned = {}
                self.change([worker])
                lost += rows
        return lost


def lives_of(sent: Mapping[str, Sent], books: Books) -> list[str]:
    """Everyone who has an account on either side."""
    return list({**dict.fromkeys(sent), **dict.fromkeys(books.lives)})
