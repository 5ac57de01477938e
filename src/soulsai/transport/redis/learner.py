"""The learner's end over Redis. It outlives restarts of Redis, and closes the books whatever Redis has lost."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

import msgspec
from redis.exceptions import ResponseError

from soulsai.errors import TransportError
from soulsai.transport.links import Account, Delivery, Parcel
from soulsai.transport.redis.address import Address
from soulsai.transport.redis.books import Books, Life, Sent, read_books, read_label
from soulsai.transport.redis.connection import FIRST_PAUSE_S, LONGEST_PAUSE_S, Refused, Retry, connect
from soulsai.transport.redis.keys import CONSUMER, GROUP, Keys
from soulsai.transport.redis.ledger import (
    SILENT_AFTER_S,
    Snapshot,
    id_seconds,
    is_beating,
    merged,
    snapshot,
    stream_name,
)
from soulsai.transport.redis.settling import Settling, Ticket, lives_of
from soulsai.transport.redis.writing import Command, in_pieces, write_at_once

OPEN, CLOSED = b"open", b"closed"
GATE_S = 5
"""How long the gate stays open without a learner that looks after it: one that is dead or busy lets no more in."""
REVOKED = "revoked"
REFRESH_S = 1.0
"""How often names are looked up; so long it takes at most until a new one is heard."""
LOOK_S = 2.0
"""How often the workers' side of the accounts is read."""
FORGET_S = 3600.0
"""Heartbeats older than this are removed; the accounts stay."""
PER_STREAM = 16
PER_READ = 128
"""Chunks that are taken at once, from one stream and from all together."""
PENDING_PAGE = 1000

RAISE = """
local newest = '0'
for _, line in ipairs(redis.call('HKEYS', KEYS[1])) do
  if tonumber(line) and tonumber(line) > tonumber(newest) then newest = line end
end
local value = redis.call('HGET', KEYS[1], newest)
local is_text, account = pcall(cjson.decode, value or '{}')
if not is_text or (account.sent or 0) < tonumber(ARGV[2]) then
  redis.call('HSET', KEYS[1], newest, ARGV[1])
end
"""
"""Sets an account to more rows, never to fewer: its worker may be writing to it at the same time."""

_T = TypeVar("_T")
Say = Callable[[str], None]
log = logging.getLogger(__name__)


class RedisLearnerLink:
    """The one reader of all streams of a run: there must not be two at a time."""

    def __init__(
        self,
        address: Address,
        *,
        patience_s: float | None = None,
        say: Say = log.info,
        stop: Callable[[], bool] = lambda: False,
        silent_after_s: float = SILENT_AFTER_S,
    ) -> None:
        self._keys = Keys(address.run)
        self._place = address.place
        self._client: Any = connect(address, client="souls-learner")
        self._retry = Retry(address, patience_s)
        self._once = Retry(address, 0.0)
        self._patience_s = patience_s
        self._say = say
        self._stop = stop
        self._silent_after_s = silent_after_s
        self._closed = threading.Event()
        self._lock = threading.RLock()
        """Of the books, and of everything that is written with them."""
        self._settling = Settling(Books())
        self._names: list[str] = []
        self._revoked: list[str] = []
        self._missed: dict[str, list[bytes]] = {}
        """Entries by name that Redis has handed out and nobody holds."""
        self._complained: set[str] = set()
        self._welcome: bytes | None = None
        self._policy: tuple[int, bytes] | None = None
        self._gate = OPEN
        self._is_unpublished = False
        self._state: dict[str, str] = {}
        self._sent: dict[str, Sent] = {}
        self._beating = 0
        self._unsure: dict[str, Sent] | None = None
        """After a loss: the accounts at that time. A worker that has written since is compared again, once."""
        self._sure: set[str] = set()
        self._server = ""
        """Which life of Redis this is, in its own words."""
        self._is_broken = True
        """Whether a connection was lost since Redis was last looked at."""
        self._failing_since_s: float | None = None
        self._failures = 0
        self._next_refresh_s = self._next_look_s = 0.0
        self._retry.run("open the run", self._open, self._is_stopped)

    def _is_stopped(self) -> bool:
        return self._closed.is_set() or self._stop()

    # What comes in

    def receive(self, limit_s: float) -> Sequence[Delivery]:
        """Chunks that have come. While Redis cannot be reached there are none; TransportError when patience ends."""
        deadline_s = time.monotonic() + limit_s
        while True:
            deliveries = self._tolerate("receive experience", lambda: self._receive(deadline_s))
            if deliveries:
                return deliveries
            if deliveries is None:
                self._pause(deadline_s)
            if time.monotonic() >= deadline_s or self._is_stopped():
                return []

    def _receive(self, deadline_s: float) -> list[Delivery]:
        if self._is_broken or time.monotonic() >= self._next_refresh_s:
            self._refresh()
        for name in list(self._revoked):
            self._drain(name)
        if deliveries := self._read_missed(list(self._missed)):
            return deliveries
        left_s = max(0.0, min(deadline_s, self._next_refresh_s) - time.monotonic())
        if not self._names:
            self._closed.wait(left_s)
            return []
        try:
            return self._read_new(self._names, left_s)
        except ResponseError as error:
            if not str(error).startswith(("NOGROUP", "WRONGTYPE")):
                raise
            self._is_broken = True
            return []

    def _read_new(self, names: Sequence[str], block_s: float) -> list[Delivery]:
        count = max(1, min(PER_STREAM, PER_READ // len(names)))
        block = ("BLOCK", round(block_s * 1000)) if block_s >= 0.001 else ()
        streams = [*(self._keys.experience(name) for name in names), *(">" for _ in names)]
        found = self._client.execute_command(
            "XREADGROUP", "GROUP", GROUP, CONSUMER, "COUNT", count, *block, "STREAMS", *streams
        )
        with self._lock:
            return self._hand_out((stream_name(self._keys, key), entries) for key, entries in found or ())

    def _hand_out(self, found: Iterable[tuple[str, Iterable[tuple[bytes, Any]]]]) -> list[Delivery]:
        deliveries = []
        for name, entries in found:
            for entry, fields in entries:
                ticket = (name, entry)
                if self._settling.is_held(ticket):
                    continue
                label = read_label(name, fields.get(b"w"), fields.get(b"q"), fields.get(b"r")) if fields else None
                if label and b"f" in fields:
                    self._settling.hold(ticket, *label)
                    deliveries.append(Delivery(Parcel(*label, fields[b"f"]), ticket, id_seconds(entry)))
                else:
                    self._throw_away(name, entry, is_message=bool(fields))
        if self._settling.acks:
            self._commit()
        return deliveries

    def _throw_away(self, name: str, entry: bytes, *, is_message: bool) -> None:
        self._settling.throw_away(name, entry, is_message=is_message)
        if is_message and name not in self._complained:
            self._complained.add(name)
            log.warning("%s sends what no worker writes: it is counted and thrown away", name)

    def _tolerate(self, what: str, call: Callable[[], _T]) -> _T | None:
        """What it returns, or None if Redis cannot be reached just now."""
        try:
            return self._once.run(what, call)
        except Refused:
            raise
        except TransportError as error:
            self._is_broken = True
            if not self._closed.is_set():
                self._count_failure(error)
            return None

    def _count_failure(self, error: TransportError) -> None:
        now_s = time.monotonic()
        self._failures += 1
        if self._failing_since_s is None:
            self._failing_since_s = now_s
            self._say(f"Redis at {self._place} does not answer: it is tried again, and workers keep what they have")
        if self._patience_s is not None and now_s - self._failing_since_s > self._patience_s:
            raise error

    def _pause(self, deadline_s: float) -> None:
        longest_s = min(FIRST_PAUSE_S * 2 ** min(self._failures, 30), LONGEST_PAUSE_S)
        self._closed.wait(max(0.0, min(random.uniform(0.0, longest_s), deadline_s - time.monotonic())))

    # What was handed out to a learner before, or lost on its way to this one

    def _find_missed(self, name: str) -> None:
        """Oldest first. Only the ids are read: what is held already need not come again."""
        missed: list[bytes] = []
        start = b"-"
        while True:
            page = self._client.xpending_range(self._keys.experience(name), GROUP, start, "+", PENDING_PAGE)
            ids = [row["message_id"] for row in page]
            with self._lock:
                missed += [entry for entry in ids if not self._settling.is_held((name, entry))]
            if len(ids) < PENDING_PAGE:
                break
            start = b"(" + ids[-1]
        self._missed.pop(name, None)
        if missed:
            self._missed[name] = missed

    def _read_missed(self, names: Sequence[str]) -> list[Delivery]:
        for name in names:
            while ids := self._missed.get(name, [])[:PER_STREAM]:
                pipe = self._client.pipeline(transaction=False)
                for entry in ids:
                    pipe.execute_command("XRANGE", self._keys.experience(name), entry, entry)
                replies = pipe.execute()
                found = [reply[0] if reply else (entry, None) for entry, reply in zip(ids, replies, strict=True)]
                with self._lock:
                    deliveries = self._hand_out([(name, found)])
                del self._missed[name][:PER_STREAM]
                if deliveries:
                    return deliveries
            self._missed.pop(name, None)
        return []

    def _drain(self, name: str) -> None:
        """Drop what is left of a name that is no longer invited. What was handed out before is settled as ever."""
        rows = 0
        try:
            while deliveries := self._read_missed([name]) or self._read_new([name], 0.0):
                rows += sum(delivery.parcel.rows for delivery in deliveries)
                self.settle((), [(delivery, REVOKED) for delivery in deliveries])
        except ResponseError as error:
            if not str(error).startswith(("NOGROUP", "WRONGTYPE")):
                raise
        self._revoked.remove(name)
        if rows:
            self._say(f"{name} is not invited any more: {rows} rows on their way are dropped")

    # Settling

    def settle(
        self,
        stored: Sequence[Delivery],
        dropped: Sequence[tuple[Delivery, str]] = (),
        repeated: Sequence[Delivery] = (),
    ) -> None:
        """Acknowledge, in one step with the accounts, and again until Redis has it.

        A repeated one is counted nowhere if its chunk is settled or another copy is still held. If not, a learner
        before this one had stored it, and only the acknowledgement was lost: it is counted as stored.
        """
        with self._lock:
            settle = self._settling.settle
            workers = {settle(_ticket(delivery), None) for delivery in stored}
            workers |= {settle(_ticket(delivery), reason) for delivery, reason in dropped}
            workers |= {settle(_ticket(delivery), None) for delivery in repeated}
            self._settling.change({worker for worker in workers if worker})
            self._commit()

    def _commit(self) -> None:
        if self._settling.acks or self._settling.changed:
            self._retry.run("settle experience", self._try_commit, self._is_stopped)
            self._settling.written()

    def _try_commit(self) -> None:
        commands: list[Command] = []
        for name, entries in self._settling.acks.items():
            key = self._keys.experience(name)
            for some in in_pieces(entries):
                commands += [("XACK", key, GROUP, *some), ("XDEL", key, *some)]
        commands += [("HSET", self._keys.accounts, *pair) for pair in self._settling.changed.items()]
        try:
            self._write_now(commands)
        except BaseException:
            self._is_broken = True
            raise

    # What goes out

    def welcome(self, frame: bytes) -> None:
        """What workers have to know before they play."""
        self._welcome = frame
        self._write("publish the welcome", [("SET", self._keys.welcome, frame)])

    def publish(self, version: int, frame: bytes) -> None:
        """Make a policy the newest; if Redis cannot be reached, as soon as it can."""
        self._policy = version, frame
        self._state["version"] = str(version)
        self._write("publish the policy", self._policy_commands())

    def gate(self, *, is_open: bool) -> None:
        """Closed: workers that can wait do."""
        gate = OPEN if is_open else CLOSED
        if gate != self._gate:
            self._gate = gate
            self._write("move the gate", self._gate_commands())

    def describe(self, values: Mapping[str, int | float | str]) -> None:
        """What `souls fleet` shows of the learner; it is written with the next look at Redis."""
        self._state |= {key: str(value) for key, value in values.items()}

    def _write(self, what: str, commands: Sequence[Command]) -> None:
        def write() -> bool:
            self._write_now(commands)
            return True

        if not self._tolerate(what, write):
            self._is_unpublished = True

    def _write_now(self, commands: Sequence[Command]) -> None:
        write_at_once(self._client, self._keys.scratch, commands)

    def _publish_all(self) -> None:
        welcome = [("SET", self._keys.welcome, self._welcome)] if self._welcome is not None else []
        self._write_now([*welcome, *self._gate_commands(), *self._policy_commands()])
        self._is_unpublished = False

    def _gate_commands(self) -> list[Command]:
        """It closes by itself when no learner has opened it for a while."""
        return [("SET", self._keys.gate, self._gate, "EX", GATE_S)]

    def _policy_commands(self) -> list[Command]:
        if self._policy is None:
            return []
        version, frame = self._policy
        return [
            ("SET", self._keys.policy, frame),
            ("XADD", self._keys.versions, "MAXLEN", "1", "*", "v", version),
            ("HSET", self._keys.learner, "version", version),
        ]

    # What the operator is shown

    def accounts(self) -> Sequence[Account]:
        """Of all worker lives; as last known while Redis cannot be reached."""
        self._tolerate("read the accounts", self._look)
        with self._lock:
            books = self._settling.books
            return [
                merged(worker, self._sent.get(worker, Sent()), books.lives.get(worker, Life()))
                for worker in lives_of(self._sent, books)
            ]

    def workers(self) -> int:
        """Workers whose heart beats."""
        if time.monotonic() > self._next_look_s - LOOK_S / 2:
            self._tolerate("look for workers", self._look)
        return self._beating

    def close(self) -> None:
        """Release what it holds. What is not settled comes to the next learner."""
        self._closed.set()
        self._client.connection_pool.disconnect()

    # Keeping up with what happens to Redis

    def _open(self) -> None:
        """What a learner before this one has left."""
        with self._lock:
            self._settling = Settling(read_books(self._client.hgetall(self._keys.accounts)))
            rows = self._settling.write_off_orphans()
            self._commit()
        if rows:
            self._say(f"{rows} rows were lost by Redis, and by the learner that still had them")
        before = self._client.hget(self._keys.learner, "server")
        self._refresh(before=before.decode() if before else None)

    def _refresh(self, *, before: str | None = None) -> None:
        """Look who is invited, whether Redis is what it was, and show that the learner is there."""
        is_opening = not self._server
        pipe = self._client.pipeline(transaction=True)
        pipe.info("server")
        pipe.hexists(self._keys.learner, "server")
        pipe.exists(self._keys.welcome)
        pipe.smembers(self._keys.names)
        pipe.time()
        info, is_known, is_welcoming, names, now = pipe.execute()
        server = str(info["run_id"])
        is_empty = not is_opening and not is_known
        is_other = server != (before or server if is_opening else self._server)
        if is_empty and self._names:
            self._client.sadd(self._keys.names, *self._names)
            names = {*names, *(name.encode() for name in self._names)}
        self._follow_names(sorted(name.decode() for name in names), everything=self._is_broken or is_empty or is_other)
        if is_empty or is_other:
            self._make_good(is_empty=is_empty)
        if is_empty or is_other or self._is_unpublished or (self._welcome is not None and not is_welcoming):
            self._publish_all()
        seen = {**self._state, "server": server, "seen": f"{now[0] + now[1] / 1e6:.3f}"}
        told = [word for pair in seen.items() for word in pair]
        self._write_now([("HSET", self._keys.learner, *told), *self._gate_commands()])
        self._server = server
        self._has_answered()
        if time.monotonic() >= self._next_look_s:
            self._look()

    def _has_answered(self) -> None:
        self._is_broken = False
        self._next_refresh_s = time.monotonic() + REFRESH_S
        if self._failing_since_s is not None:
            self._say(f"Redis answers again after {time.monotonic() - self._failing_since_s:.1f} s")
        self._failing_since_s, self._failures = None, 0

    def _follow_names(self, names: Sequence[str], *, everything: bool) -> None:
        """Read the streams of these and no others; `everything`: also look what is missed or left over."""
        known = {*self._names, *(self._streams() if everything else ())}
        self._revoked = sorted({*self._revoked, *known} - set(names))
        usable = []
        for name in names:
            is_new = name not in self._names
            if not (is_new or everything) or self._has_group(name):
                usable.append(name)
        self._names = usable
        if everything:
            for name in (*self._names, *self._revoked):
                if self._has_group(name):
                    self._find_missed(name)

    def _streams(self) -> list[str]:
        return [stream_name(self._keys, key) for key in self._client.keys(self._keys.all_experience)]

    def _has_group(self, name: str) -> bool:
        """Make the group if there is none, and the stream too; False where a worker has put something else there."""
        try:
            self._client.xgroup_create(self._keys.experience(name), GROUP, id="0", mkstream=True)
        except ResponseError as error:
            if str(error).startswith("BUSYGROUP"):
                return True
            if not str(error).startswith("WRONGTYPE"):
                raise
            if name not in self._complained:
                self._complained.add(name)
                self._say(f"{name} has spoiled its stream and is not heard: revoke it, and invite it again")
            return False
        return True

    def _make_good(self, *, is_empty: bool) -> None:
        """Redis was started again, or emptied: it may have lost what it had acknowledged."""
        with self._lock:
            self._raise_accounts()
            seen, rows = self._balance()
        self._unsure, self._sure = dict(seen.sent), set()
        if is_empty:
            self._say(
                f"Redis came back empty: welcome, policy and accounts are published again, and {rows} rows that were "
                "on their way are lost so far; workers that come back may tell of more"
            )
        elif rows:
            self._say(f"Redis was started again without {rows} rows that were on their way: they are counted as lost")

    def _raise_accounts(self) -> None:
        """Put back what workers have told, for those that will not tell it again."""
        for worker in lives_of(self._sent, self._settling.books):
            known = self._sent.get(worker, Sent())
            sent = self._settling.least_sent(worker, known)
            account = msgspec.json.encode(Sent(sent, known.dropped))
            self._client.eval(RAISE, 1, self._keys.account(worker), account, sent)

    def _balance(self) -> tuple[Snapshot, int]:
        seen = snapshot(self._client, self._keys, entries=True)
        lost = self._settling.balance(seen)
        self._commit()
        return seen, sum(lost.values())

    def _look(self) -> None:
        """Read what workers say of themselves."""
        self._next_look_s = time.monotonic() + LOOK_S
        seen = snapshot(self._client, self._keys, entries=False)
        with self._lock:
            for worker, sent in seen.sent.items():
                if sent.sent >= self._sent.get(worker, Sent()).sent:
                    self._sent[worker] = sent
        ages = {worker: seen.now_s - beat_s for worker, (beat_s, _) in seen.beats.items()}
        self._beating = sum(is_beating(seen.beats[who][1], age_s, self._silent_after_s) for who, age_s in ages.items())
        forgotten = [self._keys.beat(worker) for worker, age_s in ages.items() if age_s > FORGET_S]
        if forgotten:
            self._client.unlink(*forgotten)
        self._compare_again(seen)

    def _compare_again(self, seen: Snapshot) -> None:
        """Workers that write for the first time since a loss say by that how much of theirs is gone."""
        if self._unsure is None:
            return
        back = {worker for worker, sent in seen.sent.items() if sent != self._unsure.get(worker)} - self._sure
        if back:
            self._sure |= back
            with self._lock:
                _, rows = self._balance()
            if rows:
                self._say(f"Redis has lost {rows} rows of {', '.join(sorted(back))}: they are counted as lost")


def _ticket(delivery: Delivery) -> Ticket:
    return cast(Ticket, delivery.ticket)
