"""The learner's end over Redis: the one reader of all lists of a run. It outlives restarts of Redis.

Messages stay in their list until they are settled, so a learner that is killed leaves them to the next one. Whatever
is written twice does no harm: counts are absolute, and entries are removed up to a position.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from redis.exceptions import RedisError, ResponseError, WatchError

from soulsai.errors import TransportError
from soulsai.transport.links import Account, LearnerLink, Message, name_of
from soulsai.transport.redis.access import denials, forget_denials, invited, set_locked
from soulsai.transport.redis.accounts import (
    CLOCK,
    FORBIDDEN,
    HEARTBEAT,
    LOSSES,
    MOST_CHUNKS,
    QUOTA,
    TYPE,
    Accounts,
    Counts,
    account_of,
)
from soulsai.transport.redis.address import Address
from soulsai.transport.redis.connection import FIRST_PAUSE_S, LONGEST_PAUSE_S, Refused, Retry, connect
from soulsai.transport.redis.entries import HEAD, LARGEST_ENTRY, MOST_ROWS, Beat, Entry, read_entry
from soulsai.transport.redis.invitations import end_invitation
from soulsai.transport.redis.keys import Keys
from soulsai.transport.redis.quota import DEFAULT, Quota
from soulsai.transport.redis.report import EARLY_S, MOST_BEATS, SILENT_AFTER_S, Snapshot, is_beating, snapshot

OPEN, CLOSED = b"open", b"closed"
GATE_S = 2
"""How long the gate stays open without a learner that looks after it: one that is dead or busy lets no more in."""
POLICY_S = 600
"""How long a policy stays in Redis without a learner that looks after it."""
FLOOD = "flood"
"""Why the oldest messages are dropped of a name that has far more in Redis than workers send."""
REFRESH_S = 1.0
"""How often names are looked up; so long it takes at most until a new one is heard."""
LOOK_S = 2.0
"""How often heartbeats are read."""
FORGET_S = 3600.0
"""Heartbeats older than this are removed; the accounts stay."""
FORGET_SILENT_S = 600.0
"""The same of workers that never sent anything."""
OLDEST_S = 365 * 86400.0
"""No message waits for longer: one that says so has a false time."""
LARGE_DENIAL = 1 << 16
"""Bytes of a denied command that Redis may remember."""
SAME_S = 0.1
"""Moments that are no further apart are the same, as exactly as Redis tells them."""
COUNT_S = 10.0
"""How often connections are counted."""
SHORTEST_POLL_S, LONGEST_POLL_S = 0.002, 0.02
PER_READ = 512
"""Messages that are taken at once, from all names together."""
PER_DROP = 512
"""The same of a name whose messages are only counted."""
READ_BYTES = 2 * LARGEST_ENTRY
"""What messages that are taken at once from one name should not exceed, if they are as large as those before."""
MOST_GAP = 1_000_000
"""Sequence numbers that a worker may leave out at once: one that was cut off for a day has dropped its oldest."""
FIRST_BYTES = 256
"""Bytes at the beginning of an entry by which it is known again."""

GUARD = """
local owner = tonumber(redis.call('GET', KEYS[1]) or '0')
if owner > tonumber(ARGV[1]) then return redis.error_reply('FENCED ' .. owner) end
local writes = tonumber(redis.call('HGET', KEYS[2], '') or '0')
"""
"""Whether a later learner has taken over, and how often Redis was written to as far as it knows."""
FREE = "redis.call('DEL', KEYS[3])"
"""The first write frees memory, if anything: then a Redis that is full allows the others too."""
TAKE_OVER = f"""
local owner, mine = tonumber(redis.call('GET', KEYS[1]) or '0'), tonumber(ARGV[1])
if owner > mine and mine > 0 then return redis.error_reply('FENCED ' .. owner) end
if mine == 0 then mine = owner + 1 end
{FREE}
redis.call('SET', KEYS[1], mine)
return {{mine, redis.call('HINCRBY', KEYS[2], '', 1)}}
"""
LISTS = f"""{GUARD}
local found = {{}}
for i = 4, #KEYS do
  local name, from = ARGV[2 * i - 5], tonumber(ARGV[2 * i - 4])
  local kind, wrong = redis.call('TYPE', KEYS[i]).ok, 0
  if kind ~= 'list' and kind ~= 'none' then wrong = redis.call('UNLINK', KEYS[i]) end
  local removed, before = tonumber(redis.call('HGET', KEYS[2], name) or '0'), ''
  if from > removed then before = redis.call('LINDEX', KEYS[i], from - removed - 1) or '' end
  found[#found + 1] = {{removed, redis.call('LLEN', KEYS[i]), string.sub(before, 1, tonumber(ARGV[2])), wrong}}
end
return {{writes, found}}
"""
"""What was removed of each list, its length, the entry before the next, and whether something else was there in its
place; the entries are too large for a script."""
WRITE = f"""{GUARD}
if writes ~= tonumber(ARGV[2]) and writes ~= tonumber(ARGV[2]) - 1 then return redis.error_reply('BEHIND') end
{FREE}
local at = 4
for _ = 1, tonumber(ARGV[3]) do
  if ARGV[at + 1] == '' then redis.call('HDEL', KEYS[4], ARGV[at])
  else redis.call('HSET', KEYS[4], ARGV[at], ARGV[at + 1]) end
  at = at + 2
end
for i = 5, #KEYS do
  local gone = tonumber(ARGV[at + 1]) - tonumber(redis.call('HGET', KEYS[2], ARGV[at]) or '0')
  if gone > 0 then
    redis.call('LTRIM', KEYS[i], gone, -1)
    redis.call('HSET', KEYS[2], ARGV[at], ARGV[at + 1])
  end
  at = at + 2
end
redis.call('HSET', KEYS[2], '', ARGV[2])
"""
STATE = f"""{GUARD}
{FREE}
redis.call('SET', KEYS[5], ARGV[2], 'EX', ARGV[3])
redis.call('EXPIRE', KEYS[6], ARGV[4])
for i = 5, #ARGV, 2 do redis.call('HSET', KEYS[4], ARGV[i], ARGV[i + 1]) end
"""
USAGE = f"""{GUARD}
local found, most = {{}}, tonumber(ARGV[2])
for i = 4, #KEYS, 2 do
  local inbox, beats, wrong = KEYS[i], KEYS[i + 1], 0
  local kind = redis.call('TYPE', beats).ok
  if kind ~= 'hash' and kind ~= 'none' then wrong = redis.call('UNLINK', beats) end
  local length, fields = tonumber(redis.pcall('LLEN', inbox)) or 0, redis.call('HLEN', beats)
  local bytes = redis.call('MEMORY', 'USAGE', inbox, 'SAMPLES', 0) or 0
  if fields <= most then bytes = bytes + (redis.call('MEMORY', 'USAGE', beats, 'SAMPLES', 0) or 0) end
  found[#found + 1] = {{bytes, fields, length, wrong}}
end
return found
"""
"""What the keys of each name take up; what is in the place of heartbeats is removed."""
CLEAR = f"""{GUARD}
local removed = tonumber(redis.call('HGET', KEYS[2], ARGV[2]) or '0')
local length = tonumber(redis.pcall('LLEN', KEYS[4])) or 0
redis.call('UNLINK', KEYS[4], KEYS[5])
redis.call('HSET', KEYS[2], ARGV[2], removed + length)
return {{removed, length}}
"""
FORGET = f"""{GUARD}
if redis.call('SREM', KEYS[4], ARGV[2]) == 0 then return end
redis.call('UNLINK', KEYS[5], KEYS[6])
redis.call('HDEL', KEYS[2], ARGV[2])
"""

_T = TypeVar("_T")
log = logging.getLogger(__name__)


class Superseded(TransportError):
    """A later learner has taken over the run."""


class _Behind(Exception):
    """Redis does not have what it had."""


class _Read(NamedTuple):
    """An entry that was read and is still in its list."""

    position: int
    entry: Entry | None
    first_bytes: bytes


class _Inbox:
    """The list of one name, as far as it was read; positions count from the first entry there ever was."""

    def __init__(self) -> None:
        self.next: int | None = None  # unknown until Redis has told what was removed
        self.removed = self.remove_to = 0
        self.read: deque[_Read] = deque()
        self.entry_bytes = 0  # the largest of those that were read last
        self.empty_s = 0.0  # when nothing was left in it for the last time: what comes later was sent later

    def span(self, count: int) -> tuple[int, int]:
        """The first and the last of the next entries in the list as it is now."""
        if self.next is None:
            return 1, 0  # none
        at = self.next - self.removed
        return at, at + count - 1


class RedisLearnerLink(LearnerLink):
    """Nothing is sent before the first call. `stop` ends every wait; `patience_s` is for a Redis that does not answer.

    While Redis cannot be reached nothing comes, and what is settled or published is written when it is back.
    """

    has_invitations = True

    def __init__(
        self,
        address: Address,
        *,
        patience_s: float | None = None,
        say: Callable[[str], None] = log.info,
        stop: Callable[[], bool] = lambda: False,
        silent_after_s: float = SILENT_AFTER_S,
        max_chunks: int = MOST_CHUNKS,
        most_rows: int = MOST_ROWS,
        quota: Quota = DEFAULT,
        on_look: Callable[[Snapshot], None] = lambda seen: None,
    ) -> None:
        """`most_rows` is what a message of this run can hold, `quota` what a name may use.

        `on_look` gets what workers say of themselves, every few seconds.
        """
        super().__init__()
        self._keys, self._place = Keys(address.run), address.place
        self._client: Any = connect(address, client="souls-learner", keep=True)
        texts = (TAKE_OVER, LISTS, WRITE, STATE, USAGE, CLEAR, FORGET)
        self._scripts = {text: self._client.register_script(text) for text in texts}
        self._retry = Retry(address, 0.0)
        self._patience_s, self._say, self._stop = patience_s, say, stop
        self._silent_after_s, self._max_chunks, self._most_rows = silent_after_s, max_chunks, most_rows
        self._closed = threading.Event()
        self._lock = threading.RLock()
        self._generation = 0  # 0 until it has taken over
        self._writes = self._losses = 0
        self._accounts = Accounts()
        self._inboxes: dict[str, _Inbox] = {}
        self._names: list[str] = []
        self._revoked: list[str] = []
        self._flooding: set[str] = set()
        self._quota, self._on_look = quota, on_look
        self._read_of: dict[str, list[float]] = {}  # messages and bytes of each name since the last look
        self._locked: dict[str, float] = {}  # names that are locked out, and until when
        self._next_count_s = 0.0
        self._denials: dict[int, tuple[int, float]] | None = None
        """How often, and when for the last time, each command was denied that Redis remembers; None before a look."""
        self._complained: set[str] = set()
        self._welcome: bytes | None = None
        self._policy: tuple[int, bytes] | None = None
        self._gate = OPEN
        self._is_unpublished = False
        self._state: dict[str, str] = {}
        self._beats: Mapping[str, Beat] = {}
        self._beating = 0
        self._failing_since_s: float | None = None
        self._failures = 0
        self._next_refresh_s = self._next_look_s = self._looked_s = 0.0

    # What comes in

    def receive(self, limit_s: float) -> Sequence[Message]:
        """New messages. While Redis cannot be reached there are none; TransportError when patience ends."""
        deadline_s = time.monotonic() + limit_s
        pause_s = SHORTEST_POLL_S
        while True:
            messages = self._try("receive experience", self._receive, again=True)
            if messages:
                return messages
            if messages is None:
                pause_s = random.uniform(0.0, min(FIRST_PAUSE_S * 2 ** min(self._failures, 30), LONGEST_PAUSE_S))
            left_s = deadline_s - time.monotonic()
            if left_s <= 0 or self._is_stopped():
                return []
            self._closed.wait(min(pause_s, left_s))
            pause_s = min(2 * pause_s, LONGEST_POLL_S)

    def _is_stopped(self) -> bool:
        return self._closed.is_set() or self._stop()

    def _receive(self) -> list[Message]:
        if self._failing_since_s is not None or time.monotonic() >= self._next_refresh_s:
            self._refresh()
        self._write()
        messages = self._read()
        self._write()
        for name in self._revoked:
            self._forget(name)
        self._revoked = []
        return messages

    def _read(self) -> list[Message]:
        """What is next in every list."""
        names = self._names
        inboxes = [self._inboxes.setdefault(name, _Inbox()) for name in names]
        args: list[Any] = [FIRST_BYTES]
        for name, inbox in zip(names, inboxes, strict=True):
            args += [name, inbox.next or 0]
        keys = [*map(self._keys.experience, names)]
        now_s = time.time()
        with self._client.pipeline(transaction=True) as pipe:
            self._run(LISTS, keys, args, pipe)
            for name, key, inbox in zip(names, keys, inboxes, strict=True):
                count = min(max(1, PER_READ // len(names)), max(1, READ_BYTES // max(1, inbox.entry_bytes)))
                pipe.lrange(key, *inbox.span(PER_DROP if name in self._flooding else count))
            pipe.time()
            (writes, found), *lists, (redis_s, _) = self._call_script(pipe.execute)
        if writes != self._writes:
            raise _Behind
        messages: list[Message] = []
        for name, inbox, (removed, length, before, wrong), entries in zip(names, inboxes, found, lists, strict=True):
            if wrong:
                self._accounts.refuse(name, TYPE, wrong)
            if inbox.next is None:
                inbox.next = inbox.removed = inbox.remove_to = removed
                continue
            if before != (inbox.read[-1].first_bytes if inbox.read else b"") or removed != inbox.removed:
                if self._client.sismember(self._keys.revoked, name):
                    continue  # this very moment
                raise _Behind
            messages += self._drop_flood(name, self._take(name, inbox, entries, redis_s), length - len(inbox.read))
            if length == len(inbox.read):
                inbox.empty_s = now_s
        return messages

    def _take(self, name: str, inbox: _Inbox, entries: Sequence[bytes], now_s: float) -> list[Message]:
        """Those of the entries that are new, at this time of Redis."""
        messages, false_times = [], 0
        use = self._read_of.setdefault(name, [0.0, 0.0])
        use[0] += len(entries)
        use[1] += sum(map(len, entries))
        inbox.entry_bytes = max(map(len, entries), default=inbox.entry_bytes)
        for data in entries:
            assert inbox.next is not None
            entry = read_entry(name, data, self._most_rows)
            if entry and self._accounts.gap(entry) > MOST_GAP:
                entry = None
            inbox.read.append(_Read(inbox.next, entry, data[:FIRST_BYTES]))
            inbox.next += 1
            if entry is None:
                self._accounts.count_unreadable(name)
                self._complain(name, f"{name} sends messages that no worker writes: they are counted and discarded")
                continue
            false_times += not now_s - OLDEST_S < entry.sent_s < now_s + EARLY_S
            if self._accounts.take(entry):
                is_held = entry.sequence <= self._stored.get(entry.worker)
                frame, sent_s = memoryview(data)[HEAD.size :], max(entry.sent_s, inbox.empty_s)
                messages.append(Message(entry.worker, entry.sequence, entry.rows, frame, sent_s, is_held=is_held))
        if false_times:
            self._accounts.refuse(name, CLOCK, false_times)
        return messages

    def _drop_flood(self, name: str, messages: list[Message], waiting: int) -> list[Message]:
        """Not the oldest of a name that has sent far too many."""
        is_flooding = name in self._flooding
        if is_flooding:
            for message in messages:
                self._accounts.settle(message.worker, message.sequence, FLOOD)
        if waiting > self._max_chunks:
            self._flooding.add(name)
            self._complain(name, f"{name} sends more than can be read: its oldest messages are dropped")
        else:
            self._flooding.discard(name)
        return [] if is_flooding else messages

    def _complain(self, name: str, text: str) -> None:
        if name not in self._complained:
            self._complained.add(name)
            log.warning("%s", text)

    # Who takes too much

    def _check_quotas(self, passed_s: float) -> None:
        """Throw away what is beyond the quota of a name, and lock the name out for a while."""
        now_s = time.monotonic()
        if released := [name for name, until_s in self._locked.items() if now_s >= until_s]:
            self._count_denials()  # while it is known that they were locked out
        for name in released:
            del self._locked[name]
            set_locked(self._client, name, is_locked=False)
        if not self._names:
            return
        keys = [key for name in self._names for key in (self._keys.experience(name), self._keys.beats(name))]
        used = self._run(USAGE, keys, [MOST_BEATS])
        connections, buffers = self._connections()
        for name, (in_redis, fields, length, wrong) in zip(self._names, used, strict=True):
            if wrong:
                self._accounts.refuse(name, TYPE, wrong)
            messages, read = self._read_of.pop(name, (0.0, 0.0))
            too_much = self._quota.exceeded(
                memory=in_redis + buffers[name], waiting=length - self._max_chunks, workers=fields,
                connections=connections[name], messages_per_s=messages / passed_s, bytes_per_s=read / passed_s,
            )  # fmt: skip
            if too_much:
                self._lock_out(name, f"has {too_much}")

    def _connections(self) -> tuple[Counter[str], Counter[str]]:
        """How many each name has, and how much memory they hold: unfinished messages, and answers nobody takes."""
        number, memory = Counter[str](), Counter[str]()
        if time.monotonic() >= self._next_count_s:
            self._next_count_s = time.monotonic() + COUNT_S
            for client in self._client.client_list():
                number[str(client["user"])] += 1
                memory[str(client["user"])] += sum(int(client.get(part, 0)) for part in ("qbuf", "argv-mem", "omem"))
        return number, memory

    def _count_denials(self) -> None:
        """Count the commands that Redis has denied to each name since the last look, as messages, too.

        Of a name that is locked out none are: it is denied what every worker does. Redis keeps denied commands in its
        memory whatever their size, so it forgets large ones, and who sent them is locked out.
        """
        found = denials(self._client, 1)
        if found and found[0].bytes <= LARGE_DENIAL:  # else one is enough: all of them could be large
            found = denials(self._client)
        before, self._denials = self._denials, {}
        for denial in found:
            if denial.key in self._denials:
                continue  # an older one like it
            self._denials[denial.key] = denial.times, denial.last_s
            count, last_s = (before or {}).get(denial.key, (0, 0.0))
            is_again = denial.last_s > last_s + SAME_S  # after Redis had forgotten it
            new = denial.times - count if denial.times > count else denial.times if is_again else 0
            if new and before is not None and denial.name in self._names and denial.name not in self._locked:
                self._accounts.refuse(denial.name, FORBIDDEN, new)
                self._read_of.setdefault(denial.name, [0.0, 0.0])[0] += new
        large = {denial.name for denial in found if denial.bytes > LARGE_DENIAL}
        if large:
            forget_denials(self._client)
        for name in large.intersection(self._names):
            if name in self._locked:
                set_locked(self._client, name, is_locked=True)  # once more: it may log in, and try that
            else:
                self._lock_out(name, f"sent forbidden commands of more than {LARGE_DENIAL >> 10} kB")

    def _lock_out(self, name: str, why: str) -> None:
        keys = [self._keys.experience(name), self._keys.beats(name)]
        is_possible = set_locked(self._client, name, is_locked=True)
        removed, length = self._run(CLEAR, keys, [name])
        inbox = self._inboxes.setdefault(name, _Inbox())
        self._accounts.refuse(name, QUOTA, max(0, length - len(inbox.read)))
        inbox.read.clear()
        inbox.next = inbox.removed = inbox.remove_to = removed + length
        self._locked[name] = time.monotonic() + self._quota.locked_s
        locked = f"and is locked out for {self._quota.locked_s:.0f} s" if is_possible else "as often as it does"
        self._say(f"{name} {why}: its waiting messages are discarded ({length:,} messages), {locked}")

    def _forget(self, name: str) -> None:
        """Nothing is left of a name that is not invited any more, but the accounts of what was opened."""
        of_name = [self._keys.experience(name), self._keys.beats(name)]
        self._run(FORGET, [self._keys.revoked, *of_name], [name])
        for worker, beat in self._beats.items():
            if name_of(worker) == name:
                self._accounts.keep_beat(worker, beat)
        self._beats = {worker: beat for worker, beat in self._beats.items() if name_of(worker) != name}
        self._inboxes.pop(name, None)
        self._locked.pop(name, None)
        self._flooding.discard(name)
        self._say(f"{name} is not invited any more, and nothing of it is left in Redis")

    def end(self, name: str) -> str:
        """End the invitation of a name, as `souls revoke` does; why that failed, empty if it did not."""
        if self._failing_since_s is not None:
            return "Redis does not answer"
        try:
            with self._lock:
                if name in invited(self._client, self._keys):
                    end_invitation(self._client, self._keys, name, self._say)
        except (TransportError, RedisError, OSError) as error:
            return str(error)
        return ""

    # What is acknowledged

    def settle(self, stored: Sequence[Message], dropped: Sequence[tuple[Message, str]] = ()) -> None:
        """Acknowledge, in one step with the accounts; if Redis cannot be reached, as soon as it can."""
        with self._lock:
            for message in stored:
                self._accounts.settle(message.worker, message.sequence, None, message.played)
            for message, reason in dropped:
                self._accounts.settle(message.worker, message.sequence, reason)
        self._try("settle experience", self._write)

    def _write(self) -> None:
        """Write the accounts that have changed, and remove what is settled from the front of the lists."""
        for inbox in self._inboxes.values():
            while inbox.read and self._accounts.is_settled(inbox.read[0].entry):
                inbox.remove_to = inbox.read.popleft().position + 1
        shorter = [name for name, inbox in self._inboxes.items() if inbox.remove_to > inbox.removed]
        fields = self._accounts.fields()
        if not (fields or shorter):
            return
        args: list[Any] = [self._writes + 1, len(fields)]
        args += [word for pair in fields.items() for word in pair]
        args += [word for name in shorter for word in (name, self._inboxes[name].remove_to)]
        self._run(WRITE, [self._keys.accounts, *map(self._keys.experience, shorter)], args)
        self._writes += 1
        self._accounts.changed.difference_update(fields)
        for name in shorter:
            self._inboxes[name].removed = self._inboxes[name].remove_to

    # What goes out

    def welcome(self, frame: bytes) -> None:
        """What workers have to know before they play."""
        self._welcome, self._is_unpublished = frame, True
        self._try("publish the welcome", self._publish)

    def publish(self, version: int, frame: bytes) -> None:
        """Make a policy the newest; if Redis cannot be reached, as soon as it can."""
        self._policy, self._is_unpublished = (version, frame), True
        self._state["version"] = str(version)
        self._try("publish the policy", self._publish)

    def gate(self, *, is_open: bool) -> None:
        """Closed: workers that can wait do."""
        gate = OPEN if is_open else CLOSED
        if gate != self._gate:
            self._gate = gate
            self._try("move the gate", self._tell_state)

    def describe(self, values: Mapping[str, int | float | str]) -> None:
        """What `souls fleet` shows of the learner; it is written with the next look at Redis."""
        self._state |= {key: str(value) for key, value in values.items()}

    def _publish(self) -> None:
        """Not in a script, where a large policy would be copied; the owner is watched instead."""
        self._take_over()
        with self._client.pipeline(transaction=True) as pipe:
            pipe.watch(self._keys.owner)
            self._refuse_later(int(pipe.get(self._keys.owner) or 0))
            pipe.multi()
            if self._welcome is not None:
                pipe.set(self._keys.welcome, self._welcome)
            if self._policy is not None:
                pipe.set(self._keys.policy, self._policy[1], ex=POLICY_S)
                pipe.set(self._keys.version, self._policy[0], ex=POLICY_S)
            try:
                pipe.execute()
            except WatchError:
                return  # with the next look it is known who the owner is
        self._is_unpublished = False
        self._tell_state()

    def _tell_state(self) -> None:
        self._take_over()
        state = [word for pair in self._state.items() for word in pair]
        keys = [self._keys.learner, self._keys.gate, self._keys.policy]
        self._run(STATE, keys, [self._gate, GATE_S, POLICY_S, *state])

    # What the operator is shown

    def accounts(self) -> Sequence[Account]:
        """Of all worker lives; as last known while Redis cannot be reached."""
        self._try("read the accounts", self._look)
        with self._lock:
            counts, beats, in_flight = self._accounts.counts, self._beats, self._accounts.in_flight
            return [
                account_of(worker, counts.get(worker, Counts()), beats.get(worker, Beat()), in_flight(worker))
                for worker in {**dict.fromkeys(counts), **dict.fromkeys(beats)}
            ]

    def workers(self) -> int:
        """Workers whose heart beats."""
        if time.monotonic() > self._next_look_s - LOOK_S / 2:
            self._try("look for workers", self._look)
        return self._beating

    def _look(self) -> None:
        """Read what workers say of themselves."""
        before_s, self._looked_s = self._looked_s, time.monotonic()
        self._next_look_s = self._looked_s + LOOK_S
        if self._generation:
            self._check_quotas(max(self._looked_s - before_s, LOOK_S / 2))
        seen = snapshot(self._client, self._keys, entries=False, clean=bool(self._generation))
        self._beats = seen.beats
        removed = Counter(seen.removed_beats)
        for name, workers in seen.false_beats.items() if self._generation else ():
            removed[name] += self._client.hdel(self._keys.beats(name), *workers)
        for name, number in removed.items():
            self._accounts.refuse(name, HEARTBEAT, number)
        self._on_look(seen)
        self._beating = sum(is_beating(beat, seen.now_s, self._silent_after_s) for beat in seen.beats.values())
        for worker, beat in seen.beats.items():
            is_read = name_of(worker) in self._inboxes  # so that its account is known
            forget_s = FORGET_S if worker in self._accounts.counts else FORGET_SILENT_S
            if seen.now_s - beat.time_s > forget_s and is_read:
                self._accounts.keep_beat(worker, beat)
                self._client.hdel(self._keys.beats(name_of(worker)), worker)

    def close(self) -> None:
        """Write what is settled, once, and release what it holds. What is not comes to the next learner."""
        if not self._closed.is_set():
            if self._accounts.changed and self._generation:
                with suppress(TransportError):
                    self._try("settle experience", self._write, again=True)
            self._closed.set()
            self._client.connection_pool.disconnect()

    # Keeping up with what happens to Redis

    def _take_over(self) -> None:
        """Become the owner, before anything else: an older learner is refused from now on."""
        if not self._generation:
            self._generation, self._writes = self._own()
            self._accounts.load(self._client.hgetall(self._keys.accounts))
            self._losses = int(self._client.hget(self._keys.learner, LOSSES) or 0)

    def _own(self) -> tuple[int, int]:
        generation, writes = self._run(TAKE_OVER, [], [])
        return int(generation), int(writes)

    def _refresh(self) -> None:
        """Look who is invited, and show that the learner is there."""
        self._take_over()
        self._count_denials()  # first: if they fill the memory, nothing else is answered
        pipe = self._client.pipeline(transaction=True)
        pipe.hget(self._keys.removed, "")
        pipe.smembers(self._keys.names)
        pipe.smembers(self._keys.revoked)
        pipe.exists(self._keys.welcome)
        pipe.exists(self._keys.policy)
        pipe.time()
        writes, names, revoked, is_welcoming, has_policy, now = pipe.execute()
        if int(writes or 0) not in (self._writes, self._writes + 1):  # an answer may have been lost
            raise _Behind
        self._names = sorted(name.decode() for name in names)
        self._revoked = sorted(name.decode() for name in revoked - names)
        self._state["seen"] = f"{now[0] + now[1] / 1e6:.3f}"
        is_missing = (self._welcome and not is_welcoming) or (self._policy and not has_policy)
        self._publish() if self._is_unpublished or is_missing else self._tell_state()
        self._next_refresh_s = time.monotonic() + REFRESH_S
        if self._failing_since_s is not None:
            self._say(f"Redis answers again after {time.monotonic() - self._failing_since_s:.1f} s")
        self._failing_since_s, self._failures = None, 0
        if time.monotonic() >= self._next_look_s:
            self._look()

    def _make_good(self) -> None:
        """Redis was emptied, or came back as it was a while ago: read it again, and write all accounts once more."""
        if self._names:
            self._client.sadd(self._keys.names, *self._names)
        self._losses += 1
        self._state[LOSSES] = str(self._losses)
        self._publish()
        _, self._writes = self._own()
        self._inboxes.clear()
        self._accounts.changed.update(self._accounts.counts)
        what = "restarted empty" if self._writes == 1 else "restarted without its newest data"
        self._write()
        self._say(
            f"Redis {what}: welcome, policy and accounts are published again, and rows that are gone count as lost"
        )

    def _try(self, what: str, call: Callable[[], _T], *, again: bool = False) -> _T | None:
        """What it returns, or None if Redis cannot be reached; while it cannot, only `again` tries."""
        if self._failing_since_s is not None and (not again or self._is_stopped()):
            return None
        try:
            with self._lock:
                return self._retry.run(what, lambda: self._call(call))
        except (Refused, Superseded):
            raise
        except TransportError as error:
            if not self._closed.is_set():
                self._count_failure(error)
            return None

    def _call(self, call: Callable[[], _T]) -> _T | None:
        try:
            return call()
        except _Behind:
            self._make_good()
            return None

    def _run(self, text: str, keys: Sequence[str], args: Sequence[Any], client: Any = None) -> Any:
        """Run a script as this generation of the learner; in a pipeline, when that is executed."""
        keys = [self._keys.owner, self._keys.removed, self._keys.scratch, *keys]
        return self._call_script(lambda: self._scripts[text](keys=keys, args=[self._generation, *args], client=client))

    def _call_script(self, call: Callable[[], _T]) -> _T:
        """What it returns; what scripts refuse has names."""
        try:
            return call()
        except ResponseError as error:
            if "BEHIND" in str(error):
                raise _Behind from error
            if "FENCED" in str(error):
                self._refuse_later(int(str(error).partition("FENCED ")[2].split()[0]))
            raise

    def _refuse_later(self, owner: int) -> None:
        if owner > self._generation:
            raise Superseded(
                f"another learner has taken over {self._keys.run} at {self._place} (start {owner} of the run, this is "
                f"{self._generation}): only one may run; stop the other, then start this one again"
            )

    def _count_failure(self, error: TransportError) -> None:
        now_s = time.monotonic()
        self._failures += 1
        if self._failing_since_s is None:
            self._failing_since_s = now_s
            why = f" ({error.__cause__})" if error.__cause__ else ""
            self._say(f"Redis at {self._place} does not answer{why}: trying again, workers keep what they have")
        if self._patience_s is not None and now_s - self._failing_since_s > self._patience_s:
            raise error
