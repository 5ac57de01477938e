"""A fleet as the operator sees it: who plays, what became of every row, who gave how much."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import redis

from soulsai.transport.frames import HEADER_AT, LARGEST_HEADER
from soulsai.transport.links import Account, Marks, lag_of, name_of
from soulsai.transport.redis.accounts import LOSSES, REFUSED, Counts, account_of
from soulsai.transport.redis.entries import (
    EVERYONE,
    HEAD,
    LARGEST_BEAT,
    LEFT,
    MOST_ROWS,
    STOP,
    Beat,
    Command,
    read_beat,
    read_commands,
    read_entry,
    write_commands,
)
from soulsai.transport.redis.keys import Keys, check_name, is_worker

LAST = "fleet_last.json"
"""What the fleet of a run looked like when it was last stopped."""
SILENT_AFTER_S = 10.0
HANG_S = 60.0
KNOWN_STATES = ("starting", "playing", "waiting")
BUSY = ("playing", "waiting")
MOST_BEATS = 2000
"""Workers of one name that are looked at."""
RATES, MOST_ROWS_OF_RUN = "rates", "most_rows"
"""What the learner tells: the steps a second that it receives from each worker, and the rows of a message at most."""
NEWCOMERS, ENDED = "newcomers", "ended"
"""The same: names on probation with their fights that were played again, and names found out with how."""
EARLY_S = 60
"""How far a heartbeat may be ahead of the clock of Redis."""
PARTS = ("learner", "workers", "names", "total", "unreadable")

T = TypeVar("T")
Report = dict[str, Any]
"""With these parts, and `open` where the rows on their way were counted."""

SNAPSHOT = """
local with_entries, most, longest, first_bytes = ARGV[1] == '1', tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local function beats(key)
  local found, removed = {}, 0
  local workers = redis.pcall('HRANDFIELD', key, most)
  if workers.err then return found, removed end
  for _, worker in ipairs(workers) do
    if #worker < 64 and redis.call('HSTRLEN', key, worker) <= longest then
      found[#found + 1] = {worker, redis.call('HGET', key, worker)}
    elseif ARGV[5] == '1' then
      removed = removed + redis.call('HDEL', key, worker)
    end
  end
  return found, removed
end
local function entries(key)
  local found = {}
  while true do
    local page = redis.pcall('LRANGE', key, #found, #found + 7)
    if page.err or #page == 0 then return found end
    for _, entry in ipairs(page) do found[#found + 1] = string.sub(entry, 1, first_bytes) end
  end
end
local names = {}
for i = 3, #KEYS, 2 do
  local length, told, removed = redis.pcall('LLEN', KEYS[i + 1]), beats(KEYS[i])
  names[#names + 1] = {told, with_entries and entries(KEYS[i + 1]) or {}, tonumber(length) or 0, removed}
end
return {redis.call('TIME'), redis.call('HGETALL', KEYS[1]), redis.call('HGETALL', KEYS[2]), names}
"""
"""Atomic as a transaction is, but without taking every frame through the connection to count its rows. The learner has
heartbeats removed that are too long to be any."""


@dataclass(frozen=True)
class Snapshot:
    """A run at one moment."""

    now_s: float
    learner: Mapping[str, str]
    counts: Mapping[str, Counts]
    beats: Mapping[str, Beat]
    unreadable: Mapping[str, int]
    refused: Mapping[str, Mapping[str, int]]
    """What was refused of a name, by reason."""
    in_flight: Mapping[str, int]
    """Rows on their way by worker, each chunk once. Where they were not counted, what workers say of them, and no more
    than the entries of their name can hold."""
    is_counted: bool
    rates: Mapping[str, float]
    """Steps a second of each worker, as the learner receives them."""
    false_beats: Mapping[str, Sequence[bytes]] = field(default_factory=dict)
    """Where each name has heartbeats that no worker writes."""
    removed_beats: Mapping[str, int] = field(default_factory=dict)
    """How many of a name were removed."""

    def lives(self) -> list[str]:
        """All worker lives that left a trace."""
        counted = (worker for worker, counts in self.counts.items() if counts.received() or counts.pushed)
        return sorted({*counted, *self.beats, *self.in_flight})

    def account(self, worker: str) -> Account:
        """The account of a worker life."""
        counts, beat = self.counts.get(worker, Counts()), self.beats.get(worker, Beat())
        is_lost = self.is_counted and LOSSES in self.learner
        return account_of(worker, counts, beat, self.in_flight.get(worker, 0), is_lost=is_lost)

    def missing(self, worker: str) -> int:
        """Rows that a worker says are in Redis, and that neither came nor are there nor were lost."""
        account, beat = self.account(worker), self.beats.get(worker, Beat())
        own = self.counts.get(worker, Counts()).own_drops(beat)
        return max(0, beat.pushed - (account.sent - sum(own.values())))


def snapshot(admin: redis.Redis, keys: Keys, *, entries: bool, clean: bool = False) -> Snapshot:
    """Read everything in one step; the rows on their way are counted only where that is asked for.

    With `clean` heartbeats that are too long are removed.
    """
    client: Any = admin
    names = sorted(_text(name) for name in client.sunion(keys.names, keys.revoked))
    of_names = [key for name in names for key in (keys.beats(name), keys.experience(name))]
    limits = (MOST_BEATS, LARGEST_BEAT, HEAD.size + HEADER_AT + LARGEST_HEADER)
    time, state, accounts, found = client.register_script(SNAPSHOT)(
        keys=[keys.learner, keys.accounts, *of_names], args=[int(entries), *limits, int(clean)]
    )
    learner = {_text(key): _text(value) for key, value in _pairs(state).items()}
    most_rows = int(learner.get(MOST_ROWS_OF_RUN, MOST_ROWS))
    counts = {_text(who): msgspec.json.decode(value, type=Counts) for who, value in _pairs(accounts).items()
              if is_worker(_text(who))}  # fmt: skip
    beats, false_beats = dict[str, Beat](), dict[str, list[bytes]]()
    seen, in_flight = Marks({worker: one.settled for worker, one in counts.items()}), dict[str, int]()
    for name, (told, lists, length, _) in zip(names, found, strict=True):
        latest_s = int(time[0]) + EARLY_S  # a heartbeat of tomorrow would be there for ever
        own = {
            _text(who): beat
            for who, value in told
            if is_worker(_text(who), name) and (beat := read_beat(value)) and beat.time_s < latest_s
        }
        beats |= own
        if len(own) < len(told):
            false_beats[name] = [who for who, _ in told if _text(who) not in own]
        for entry in (read_entry(name, data, most_rows) for data in lists):
            if entry and seen.move(entry.worker, entry.sequence):
                in_flight[entry.worker] = in_flight.get(entry.worker, 0) + entry.rows
        if not entries and length:
            in_flight |= {
                who: min(said, length * most_rows)
                for who, beat in own.items()
                if (said := beat.pushed - counts.get(who, Counts()).received()) > 0
            }
    return Snapshot(
        now_s=int(time[0]) + int(time[1]) / 1e6,
        learner=learner,
        counts=counts,
        beats=beats,
        unreadable={name_of(who): one.unreadable for who, one in counts.items() if one.unreadable},
        refused={name_of(who): one.refused for who, one in counts.items() if one.refused},
        in_flight=in_flight,
        is_counted=entries,
        rates=_read_map(learner, RATES, float),
        false_beats=false_beats,
        removed_beats={name: removed for name, (*_, removed) in zip(names, found, strict=True) if removed},
    )


def _read_map(learner: Mapping[str, str], key: str, kind: type[T]) -> dict[str, T]:
    """What the learner tells of each worker or name."""
    try:
        return msgspec.json.decode(learner.get(key, ""), type=dict[str, kind])  # type: ignore[valid-type]
    except msgspec.MsgspecError:
        return {}  # of another version, or none yet


def look_at(admin: redis.Redis, keys: Keys, *, check: bool = False, **limits: float) -> Report:
    """The fleet of a run as it is now; with `check` the rows on their way are counted. Limits as for `report_of`."""
    return report_of(snapshot(admin, keys, entries=check), **limits)


def report_of(seen: Snapshot, *, silent_after_s: float = 0.0, hang_s: float = 0.0) -> Report:
    """Everything `souls fleet` tells; who is silent or frozen goes by the learner's limits if none are given."""
    silent_after_s = silent_after_s or float(seen.learner.get("silent_after_s", SILENT_AFTER_S))
    hang_s = hang_s or float(seen.learner.get("hang_s", HANG_S))
    accounts = [seen.account(worker) for worker in seen.lives()]
    workers = [_worker(seen, account, silent_after_s, hang_s) for account in accounts]
    report: Report = {
        "learner": {key: value for key, value in seen.learner.items() if key not in (RATES, NEWCOMERS, ENDED)},
        "workers": workers,
        "names": _names(workers),
        "total": _account(_sum(accounts)),
        "unreadable": dict(seen.unreadable),
        "refused": {name: dict(refused) for name, refused in seen.refused.items()},
        NEWCOMERS: _read_map(seen.learner, NEWCOMERS, int),
        ENDED: _read_map(seen.learner, ENDED, str),
    }
    if seen.is_counted:
        report["open"] = {
            account.worker: {"expected": account.in_flight + missing, "found": account.in_flight}
            for account in accounts
            if (missing := seen.missing(account.worker))
        }
    return report


def playing(report: Report) -> list[Report]:
    """The workers that are there."""
    return [worker for worker in report["workers"] if worker["state"] not in (LEFT, "silent")]


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


def is_beating(beat: Beat, now_s: float, silent_after_s: float) -> bool:
    """Whether a worker is there."""
    return now_s - beat.time_s <= silent_after_s and beat.state != LEFT


def keep_last(folder: Path, report: Report) -> None:
    """Remember how the fleet was, for when its Redis no longer runs."""
    from soulsai.runs.files import write_atomically

    write_atomically(folder / LAST, json.dumps(report, indent=1))


def last(folder: Path) -> Report | None:
    """How the fleet was when its run was last stopped; None if that is not known."""
    try:
        kept = json.loads((folder / LAST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return kept if isinstance(kept, dict) and set(PARTS) <= set(kept) else None


def books_line(total: Mapping[str, Any]) -> str:
    """The accounting in a line."""
    dropped = total["dropped"]
    why = f" ({reasons(dropped)})" if dropped else ""
    lost = f"dropped {sum(dropped.values()):,}{why}"
    return f"sent {total['sent']:,} = stored {total['stored']:,} + {lost} + in flight {total['in_flight']:,}"


def open_lines(report: Report) -> list[str]:
    """What does not close, if anything."""
    return [
        f"{worker}: the counts do not add up: it says {rows['expected']:,} rows are on their way, not {rows['found']:,}"
        for worker, rows in report.get("open", {}).items()
    ]


def refused_lines(report: Report) -> list[str]:
    """What was refused of each name, or could not be read."""
    unreadable = [f"{name}: {count:,} unreadable messages" for name, count in report["unreadable"].items()]
    return unreadable + [
        f"{name}: {count:,} {REFUSED.get(reason, reason)}"
        for name, refused in report.get("refused", {}).items()
        for reason, count in refused.items()
    ]


def reasons(dropped: Mapping[str, int]) -> str:
    """Dropped rows by reason, in a line."""
    return ", ".join(f"{reason} {rows:,}" for reason, rows in sorted(dropped.items()))


def _state(beat: Beat, age_s: float, silent_after_s: float, hang_s: float) -> str:
    if beat.state == LEFT:
        return LEFT
    if age_s > silent_after_s:
        return "silent"
    if beat.state != "waiting" and beat.still_s + age_s > hang_s:
        return "frozen"
    return beat.state if beat.state in KNOWN_STATES else "starting"


def _worker(seen: Snapshot, account: Account, silent_after_s: float, hang_s: float) -> Report:
    beat = seen.beats.get(account.worker, Beat(time_s=-math.inf))
    age_s = max(0.0, seen.now_s - beat.time_s)
    state = _state(beat, age_s, silent_after_s, hang_s)
    if state == "starting" and account.sent:
        state = "playing"  # rows may come before the beat that tells of it
    newest = int(seen.learner.get("version", "0") or 0)
    counts = seen.counts.get(account.worker, Counts())
    return {
        "worker": account.worker,
        "name": name_of(account.worker),
        "host": beat.about.get("host", ""),
        "problem": beat.about.get("problem", ""),
        "state": state,
        "lag": lag_of(newest, beat.policy) if newest and beat.policy else None,
        "steps": counts.steps,
        "steps_per_s": seen.rates.get(account.worker, 0.0) if state in BUSY else 0.0,
        "episodes": counts.episodes,
        "wins": counts.wins,
        "fights": counts.fights,
        "win_rate": counts.wins / counts.fights if counts.fights else None,
        "seen_s": age_s if math.isfinite(age_s) else None,
        "restarts": beat.restarts,
        **_account(account),
    }


def _account(account: Account) -> Report:
    return {
        "sent": account.sent,
        "stored": account.stored,
        "dropped": dict(account.dropped),
        "in_flight": account.in_flight,
    }


def _sum(accounts: Iterable[Account]) -> Account:
    sent, stored, dropped = 0, 0, dict[str, int]()
    for account in accounts:
        sent, stored = sent + account.sent, stored + account.stored
        for reason, rows in account.dropped.items():
            dropped[reason] = dropped.get(reason, 0) + rows
    return Account(EVERYONE, sent, stored, dropped)


def _names(workers: Sequence[Report]) -> Report:
    """Who gave how much."""
    names: Report = {}
    for worker in workers:
        total = names.setdefault(worker["name"], {"lives": 0, "steps": 0, "episodes": 0, "sent": 0, "stored": 0})
        total["lives"] += 1
        for key in ("steps", "episodes", "sent", "stored"):
            total[key] += worker[key]
    stored = sum(name["stored"] for name in names.values())
    for name in names.values():
        name["share"] = name["stored"] / stored if stored else 0.0
    return names


def _pairs(flat: Any) -> dict[bytes, bytes]:
    return dict(zip(flat[::2], flat[1::2], strict=False))


def _text(value: bytes) -> str:
    return value.decode(errors="replace")
