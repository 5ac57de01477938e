"""Views of a whole run in Redis at one moment: who is there, and what became of every row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import redis

from soulsai.transport.links import Account
from soulsai.transport.redis.beats import EVERYONE, LEFT, STOP, Beat, Command, read_beat, read_commands, write_commands
from soulsai.transport.redis.books import Books, Life, Sent, read_books, read_label, read_sent
from soulsai.transport.redis.keys import Keys, check_name, is_worker
from soulsai.transport.versions import lag_of

SILENT_AFTER_S = 10.0
HANG_S = 60.0
KNOWN_STATES = ("starting", "playing", "waiting")

SNAPSHOT = """
local prefix, with_entries = ARGV[1], ARGV[2] == '1'
local function each(pattern, read)
  local found = {}
  for _, key in ipairs(redis.call('KEYS', prefix .. pattern)) do
    local value = read(key)
    if not value.err then found[#found + 1] = {key, value} end
  end
  return found
end
local function hash(key) return redis.pcall('HGETALL', key) end
local function last(key) return redis.pcall('XREVRANGE', key, '+', '-', 'COUNT', 1) end
local function labels(key)
  local found, from = {}, '-'
  while true do
    local page = redis.pcall('XRANGE', key, from, '+', 'COUNT', 8)
    if page.err or #page == 0 then return found end
    for _, entry in ipairs(page) do
      local label = {w = '', q = '', r = ''}
      for i = 1, #entry[2], 2 do
        local name = entry[2][i]
        if label[name] then label[name] = string.sub(entry[2][i + 1], 1, 80) end
      end
      found[#found + 1] = {entry[1], label.w, label.q, label.r}
    end
    from = '(' .. page[#page][1]
  end
end
return {
  redis.call('TIME'), hash(prefix .. 'learner'), hash(prefix .. 'accounts'),
  each('from:*:account:*', hash), each('from:*:beat:*', last),
  with_entries and each('from:*:experience', labels) or {}
}
"""
"""Atomic as a transaction is, but without taking every frame through the connection to count its rows."""


@dataclass(frozen=True)
class Entry:
    """A chunk in a stream."""

    name: str
    id: bytes
    worker: str
    sequence: int
    rows: int


@dataclass(frozen=True)
class Snapshot:
    """A run at one moment."""

    now_s: float
    learner: Mapping[str, str]
    books: Books
    sent: Mapping[str, Sent]
    beats: Mapping[str, tuple[float, Beat]]
    """When by the clock of the server, and what."""
    entries: Sequence[Entry] = ()

    def lives(self) -> list[str]:
        """All worker lives that left a trace."""
        return sorted({*self.sent, *self.books.lives, *self.beats, *(entry.worker for entry in self.entries)})

    def account(self, worker: str) -> Account:
        """Both sides of the account of a worker life."""
        return merged(worker, self.sent.get(worker, Sent()), self.books.lives.get(worker, Life()))

    def in_flight(self) -> dict[str, int]:
        """Rows on their way by worker life: each chunk once, and not those that are copies of a settled one."""
        chunks = {worker: dict(life.orphaned) for worker, life in self.books.lives.items()}
        for entry in self.entries:
            life = self.books.lives.get(entry.worker)
            if not (life and life.is_settled(entry.sequence)):
                chunks.setdefault(entry.worker, {})[entry.sequence] = entry.rows
        return {worker: sum(rows.values()) for worker, rows in chunks.items()}


@dataclass(frozen=True)
class Book:
    """The account of a worker life beside the rows that were found on their way at the same moment."""

    account: Account
    measured: int

    @property
    def closes(self) -> bool:
        """Whether every row that was sent is stored, dropped for a reason, or on its way."""
        return self.account.in_flight == self.measured


@dataclass(frozen=True)
class WorkerRow:
    """One worker life, for the operator."""

    id: str
    name: str
    state: str
    """starting, playing, waiting, frozen (its steps stand still), silent (its heart does not beat) or left."""
    age_s: float
    """Of the last heartbeat; infinite where none is known."""
    lag: int
    """How many versions behind the newest policy it plays."""
    beat: Beat
    account: Account

    @property
    def host(self) -> str:
        """Where it runs, as it says."""
        return self.beat.about.get("host", "")


@dataclass(frozen=True)
class FleetView:
    """All workers and the learner, for the operator."""

    now_s: float
    workers: Sequence[WorkerRow]
    learner: Mapping[str, str]
    total: Account
    malformed: Mapping[str, int] = field(default_factory=dict)
    """Messages by name that no worker of ours has written."""


def merged(worker: str, sent: Sent, life: Life) -> Account:
    """Both sides of an account in one."""
    dropped = dict(life.dropped)
    for reason, rows in sent.dropped.items():
        dropped[reason] = dropped.get(reason, 0) + rows
    return Account(worker, sent.sent, life.stored, dropped)


def snapshot(admin: redis.Redis, keys: Keys, *, entries: bool) -> Snapshot:
    """Read everything in one atomic step; the labels of all chunks in the streams only where they are asked for."""
    client: Any = admin
    time, learner, accounts, sent, beats, streams = client.eval(SNAPSHOT, 0, keys.prefix, "1" if entries else "0")
    return Snapshot(
        now_s=int(time[0]) + int(time[1]) / 1e6,
        learner={_text(key): _text(value) for key, value in _pairs(learner).items()},
        books=read_books(_pairs(accounts)),
        sent={worker: read_sent(_pairs(value)) for worker, value in _by_worker(sent)},
        beats={worker: found for worker, value in _by_worker(beats) if (found := _last_beat(value))},
        entries=list(_entries(keys, streams)),
    )


def look(
    admin: redis.Redis, keys: Keys, *, silent_after_s: float | None = None, hang_s: float | None = None
) -> FleetView:
    """Who is there and how they are doing, by the limits that the learner has told of if none are given."""
    seen = snapshot(admin, keys, entries=False)
    silent_after_s = silent_after_s or float(seen.learner.get("silent_after_s", SILENT_AFTER_S))
    hang_s = hang_s or float(seen.learner.get("hang_s", HANG_S))
    newest = int(seen.learner.get("version", "0") or 0)
    rows = [_row(seen, worker, newest, silent_after_s, hang_s) for worker in seen.lives()]
    total = _total(row.account for row in rows)
    return FleetView(seen.now_s, rows, seen.learner, total, seen.books.malformed)


def check_books(admin: redis.Redis, keys: Keys) -> list[Book]:
    """The accounts of all worker lives and the rows on their way, counted at one moment, however much is going on."""
    seen = snapshot(admin, keys, entries=True)
    measured = seen.in_flight()
    return [Book(seen.account(worker), measured.get(worker, 0)) for worker in seen.lives()]


def stop_workers(admin: redis.Redis, keys: Keys, who: str, names: Iterable[str] = ()) -> None:
    """Tell one worker by its id, all of a name, or with `*` all of these names to stop."""
    if who == EVERYONE:
        targets = [(name, EVERYONE) for name in names]
    elif is_worker(who):
        targets = [(keys.name_of(who), who)]
    else:
        targets = [(check_name(who), EVERYONE)]
    client: Any = admin
    seconds, microseconds = client.time()
    for name, worker in targets:
        key = keys.to(name)

        def add(pipe: Any, key: str = key, worker: str = worker) -> None:
            before = read_commands(pipe.get(key))
            pipe.multi()
            pipe.set(key, write_commands([*before, Command(worker, STOP, seconds + microseconds / 1e6)]))

        client.transaction(add, key)


def is_beating(beat: Beat, age_s: float, silent_after_s: float) -> bool:
    """Whether a worker is there."""
    return age_s <= silent_after_s and beat.state != LEFT


def _row(seen: Snapshot, worker: str, newest: int, silent_after_s: float, hang_s: float) -> WorkerRow:
    beat_s, beat = seen.beats.get(worker, (-math.inf, Beat()))
    age_s = max(0.0, seen.now_s - beat_s)
    account = seen.account(worker)
    state = _state(beat, age_s, silent_after_s, hang_s)
    if state == "starting" and account.sent:
        state = "playing"  # rows may come before the beat that tells of it
    lag = lag_of(newest, beat.policy) if beat.policy else 0
    return WorkerRow(worker, Keys.name_of(worker), state, age_s, lag, beat, account)


def _state(beat: Beat, age_s: float, silent_after_s: float, hang_s: float) -> str:
    if beat.state == LEFT:
        return LEFT
    if age_s > silent_after_s:
        return "silent"
    if beat.state != "waiting" and beat.still_s + age_s > hang_s:
        return "frozen"
    return beat.state if beat.state in KNOWN_STATES else "starting"


def _total(accounts: Iterable[Account]) -> Account:
    sent = stored = 0
    dropped: dict[str, int] = {}
    for account in accounts:
        sent += account.sent
        stored += account.stored
        for reason, rows in account.dropped.items():
            dropped[reason] = dropped.get(reason, 0) + rows
    return Account(EVERYONE, sent, stored, dropped)


def _last_beat(entries: Any) -> tuple[float, Beat] | None:
    if not entries:
        return None
    beat = read_beat(_pairs(entries[0][1]).get(b"b", b""))
    return (id_seconds(entries[0][0]), beat) if beat else None


def id_seconds(entry: bytes) -> float:
    """When an entry was made, by the clock of the server."""
    return int(entry.partition(b"-")[0]) / 1000.0


def _entries(keys: Keys, streams: Any) -> Iterable[Entry]:
    """Those that are chunks; what else is there counts no rows."""
    for key, labels in streams:
        name = stream_name(keys, key)
        for entry, worker, sequence, rows in labels:
            label = read_label(name, worker, sequence, rows)
            if label:
                yield Entry(name, entry, *label)


def stream_name(keys: Keys, key: bytes) -> str:
    """Whose stream this is."""
    return _text(key).removeprefix(f"{keys.prefix}from:").rpartition(":")[0]


def _by_worker(found: Any) -> Iterable[tuple[str, Any]]:
    """Only those where the key is that of a worker's own name."""
    for key, value in found:
        worker = Keys.worker_of(key)
        parts = _text(key).rsplit(":", 3)
        if is_worker(worker, parts[-3]):
            yield worker, value


def _pairs(flat: Any) -> dict[bytes, bytes]:
    return dict(zip(flat[::2], flat[1::2], strict=False))


def _text(value: bytes) -> str:
    return value.decode(errors="replace")
