"""Where experience comes from: an actor in this process, or workers in others."""

from __future__ import annotations

import itertools
import json
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from soulsai.acting.actor import Actor
from soulsai.acting.world import seed_of
from soulsai.algorithms.algorithm import Algorithm, Counters, Learner, Parts
from soulsai.checkpoints.store import Checkpoint
from soulsai.config.schema import Config
from soulsai.errors import DivergedError
from soulsai.experience import Chunk, Limits, Schema
from soulsai.learning.checks import Checks
from soulsai.networks.parallel import Threads
from soulsai.replay import Givers
from soulsai.transport.chunks import unpack_chunk
from soulsai.transport.frames import BadFrame, Header
from soulsai.transport.links import LearnerLink, Message, Played, lag_of, name_of, version_of
from soulsai.transport.policies import Policy, arrays_of, pack_policy

WAIT_S = 0.2
"""How long to wait for experience before looking up."""
LEARN_S = 0.2
"""How long to learn before looking for experience again, which some workers cannot wait to send."""
OPEN_S = 0.02
"""The same while workers that can wait are let in: they play much in little time."""
LOOK_EVERY_S = 1.0
"""Between looks at the accounts of the fleet, and between reports to those who look at it."""
HALF_S = 3.0
"""After so long, steps that came in count half for the rate of a worker."""
SLOWEST = 0.05
"""Steps a second below which a worker is not spoken of."""
MOST_RATES = 4096
SHARE = "share"
"""Why rows are dropped of a name that has its share of what is learned from."""
PROBATION = "probation"
"""Why rows are dropped of names on probation, which have their share together."""
WRONG = "wrong"
"""Why rows are dropped that are not what was played, with everything else of their name."""
NEW, KNOWN = "new", "known"
ACTIVE_S = 60.0
"""For so long after its last chunk a name counts as one of those who give."""
WINDOW_UPDATES = 10
"""Updates over which shares are counted where there is no replay."""
MOST_WAITING = 16_384
"""Rows that may wait for a learner that is behind; of more it takes some, though it cannot learn as much from them.

It was four times as much: then rows of 100 games, which bring twice what a core learns from, waited for over a minute.
"""
AT_ONCE = 32
"""Chunks that a learner takes at once when it has learned from everything before."""
UNSAVED_BYTES = 64 << 20
"""Experience that is stored but in no checkpoint stays with the transport; so much of it calls for one."""


class Source(ABC):
    """Gives experience and takes policies. Without more, nobody waits for it and it remembers nothing."""

    limit_s = float("inf")
    """How long the learner may learn at a time."""
    stop: Callable[[], bool] = staticmethod(lambda: False)
    """Whether `next` is to end soon, if need be by `Stopped`."""
    is_from_others = False
    """Whether others decide what comes: then training that has diverged is worth another try."""

    @property
    def saving_is_due(self) -> bool:
        """Whether a checkpoint should be written now, whatever the time since the last."""
        return False

    @abstractmethod
    def begin(self, learner: Learner) -> None:
        """Start from nothing."""

    @abstractmethod
    def next(self, learner: Learner) -> Sequence[Chunk]:
        """The next experience; nothing if none came in a moment."""

    @abstractmethod
    def notes(self) -> dict[str, Any]:
        """What decides how it goes on and fits in text; the rest is in `parts`."""

    @abstractmethod
    def restore(self, saved: Checkpoint, learner: Learner) -> None:
        """Go on from a checkpoint; the learner is restored before."""

    def publish(self, learner: Learner) -> None:  # noqa: B027 (not every source has something to do)
        """The learner has taken what `next` gave and perhaps learned: go on with its networks."""

    def pause(self) -> None:  # noqa: B027 (not every source has something to do)
        """Until `next` is called again the time goes to something else."""

    def metrics(self, counters: Counters) -> dict[str, float]:
        """What there is to tell about it."""
        return {}

    def parts(self) -> Parts:
        """Arrays that decide how it goes on."""
        return {}

    def start_saving(self) -> Callable[[], None]:
        """A checkpoint with everything up to now is being written: call what this gives when it is."""
        return lambda: None

    def forget(self, name: str, learner: Learner) -> int:
        """Remove from the learner what a name gave; the number of rows."""
        return 0

    def names_to_forget(self) -> Sequence[str]:
        """Names that were found out since the last time: what they gave is to be forgotten."""
        return ()

    def discard(self, reason: str) -> None:  # noqa: B027 (not every source has something to do)
        """The learner goes back to a checkpoint: what came since is not learned from."""

    def close(self) -> None:  # noqa: B027 (not every source has something to do)
        """Release what it holds."""


class ActorSource(Source):
    """Actors in this process, a thread each, with the learner's own networks."""

    def __init__(self, actors: Sequence[Actor], threads: Threads, seed: int) -> None:
        self.actors, self._threads, self._seed = actors, threads, seed

    def begin(self, learner: Learner) -> None:
        """Begin all episodes."""
        self._begin(self._seed)

    def next(self, learner: Learner) -> Sequence[Chunk]:
        """Play on."""
        for actor in self.actors:
            actor.steps, actor.stop = learner.counters.steps, self.stop
        with learner.clock.phase("act"):
            return self._threads.run([actor.play for actor in self.actors])

    def parts(self) -> Parts:
        """Worlds, running episodes, randomness."""
        return {
            f"{name}.{number}": dict(state)
            for number, actor in enumerate(self.actors)
            for name, state in actor.state().items()
        }

    def notes(self) -> dict[str, Any]:
        """How many actors there are."""
        return {"actors": len(self.actors)}

    def restore(self, saved: Checkpoint, learner: Learner) -> None:
        """Go on from a checkpoint. With another number of actors, as on another machine, new episodes begin."""
        seed = self._seed + learner.counters.steps
        if saved.state["source"].get("actors") != len(self.actors):
            self._begin(seed)
            return
        for number, actor in enumerate(self.actors):
            states = {name: saved.arrays(f"{name}.{number}") for name in ("world", "running", "actor")}
            actor.restore(states, seed_of(seed, number))

    def close(self) -> None:
        """Close the worlds."""
        for actor in self.actors:
            actor.world.close()

    def _begin(self, seed: int) -> None:
        for number, actor in enumerate(self.actors):
            actor.begin(seed_of(seed, number))


@dataclass(frozen=True)
class Start:
    """The run that a learner serves, and how often it was started before."""

    run: str
    generation: int


@dataclass(frozen=True)
class Arrival:
    """A chunk that may be learned from, and how it came; the message knows what was played."""

    message: Message
    header: Header
    chunk: Chunk


class Rates:
    """Steps a second of each worker, as they come in: of the last half minute, the newest seconds count most."""

    def __init__(self) -> None:
        self._steps: Counter[str] = Counter()
        self._rates: dict[str, float] = {}
        self._since_s = time.monotonic()

    def add(self, worker: str, steps: int) -> None:
        """Steps of a worker came in."""
        self._steps[worker] += steps

    def take(self) -> dict[str, float]:
        """The rates now, once in a while."""
        passed_s = max(time.monotonic() - self._since_s, 1e-3)
        kept = 0.5 ** (passed_s / HALF_S)
        for worker in {*self._rates, *self._steps}:
            now = self._steps[worker] / passed_s
            before = self._rates.get(worker, now)
            self._rates[worker] = kept * before + (1.0 - kept) * now
        self._rates = {worker: rate for worker, rate in self._rates.items() if rate > SLOWEST}
        self._steps.clear()
        self._since_s = time.monotonic()
        return dict(itertools.islice(self._rates.items(), MOST_RATES))


class FleetSource(Source):
    """Workers at the other end of a link.

    An algorithm with a replay gets chunks as they come; they are acknowledged when a checkpoint holds them, so that a
    learner that was killed gets the others once more. Any other gets as many as an update uses up; they are
    acknowledged when it has used them. The link belongs to whoever made it.
    """

    limit_s = LEARN_S
    is_from_others = True

    def __init__(
        self,
        config: Config,
        algorithm: Algorithm,
        schema: Schema,
        link: LearnerLink,
        start: Start,
        say: Callable[[str], None],
        limits: Limits,
        checks: Checks | None = None,
    ) -> None:
        self.checks = checks
        self.link, self._config, self._start, self._say = link, config, start, say
        self._schema, self._limits, self._max_lag = schema, limits, algorithm.max_lag(config)
        self._rows_of_update, self._workers_wait = algorithm.rows_of_update(config), algorithm.workers_wait
        self._told: set[str] = set()
        self._waiting: deque[Arrival] = deque()
        self._waiting_rows = 0
        self._taken: deque[Arrival] = deque()  # given to the learner, not yet acknowledged
        self._taken_bytes = 0
        self._rates = Rates()
        self._heard_s: dict[str, float] = {}  # when something came of a name for the last time
        self.givers = Givers(WINDOW_UPDATES * self._rows_of_update or config.replay.capacity)
        self._apart = Givers(self.givers.capacity)  # rows of names on probation, and of all others
        self._ended: dict[str, str] = {}  # names that were found out, and how
        self._refused: set[str] = set()  # those of them that could not be revoked yet
        self._to_forget: list[str] = []
        self._number = self._workers = 0  # of the newest policy; of live workers when last looked at
        self._published_updates = self._first_updates = -1
        self._published_s = self._reported_s = self._looked_s = float("-inf")
        self._is_open: bool | None = None
        self._lags: list[int] = []
        self._ages_s: list[float] = []

    @property
    def version(self) -> int:
        """Of the newest policy."""
        return version_of(self._start.generation, self._number)

    @property
    def saving_is_due(self) -> bool:
        """Much that came is in no checkpoint yet."""
        if self._rows_of_update:
            return False
        return self._taken_bytes > UNSAVED_BYTES or 2 * len(self._taken) > self._config.fleet.max_chunks

    def begin(self, learner: Learner) -> None:
        """Publish the first policy."""
        self._first_updates = learner.counters.updates
        self._publish(learner)

    def next(self, learner: Learner) -> Sequence[Chunk]:
        """What came; for an update that uses up its experience, nothing before there is enough of it."""
        with learner.clock.phase("receive"):
            self._gate(is_open=not learner.is_behind and (not self._waiting or self._rows_of_update > 0))
            self._receive(0.0 if learner.is_due or self._has_enough() else WAIT_S)
        self._drop_stale()
        if not self._has_enough():
            return ()
        if self._rows_of_update:
            self._gate(is_open=False)
        given, rows, steps = list[Arrival](), 0, 0
        active = {name for name, heard_s in self._heard_s.items() if time.monotonic() - heard_s < ACTIVE_S}
        dropped: list[tuple[Message, str]] = []
        first = learner.store.added if learner.store is not None else self.givers.added
        while self._waiting and (not self._rows_of_update or rows < self._rows_of_update):
            if self._is_enough(learner, len(given), steps):
                break
            arrival = self._waiting.popleft()
            name, count, fleet = name_of(arrival.message.worker), arrival.header.rows, self._config.fleet
            self._waiting_rows -= count
            if self.givers.is_over(name, count, fleet.largest_share, fleet.share_names, active):
                dropped.append((arrival.message, SHARE))
                continue
            self.givers.add(name, count, first + rows)
            given.append(arrival)
            rows, steps = rows + count, steps + arrival.chunk.steps
            self._lags.append(lag_of(self.version, arrival.header.policy))
            self._taken_bytes += len(arrival.message.frame)
        if dropped:
            self.link.settle((), dropped)
        self._taken += given
        self.link.mark_stored([arrival.message for arrival in given])
        is_first = learner.counters.updates == self._first_updates  # the first gradient step takes long
        is_full = learner.is_due and (bool(self._waiting) or not learner.has_room(steps))
        if not self._rows_of_update and (is_first or is_full):
            self._gate(is_open=False)
        return [arrival.chunk for arrival in given]

    def publish(self, learner: Learner) -> None:
        """Publish what was learned, as often as the config allows; acknowledge what is used up; report how it goes."""
        pace_s = 0.0 if self._rows_of_update else self._config.fleet.publish_every_s
        if learner.counters.updates != self._published_updates and time.monotonic() - self._published_s >= pace_s:
            self._publish(learner)
        if self._rows_of_update:
            self._acknowledge(len(self._taken))
        if time.monotonic() - self._reported_s >= LOOK_EVERY_S:
            self._report(learner.counters)

    def pause(self) -> None:
        """Ask workers to wait."""
        self._gate(is_open=False)

    def metrics(self, counters: Counters) -> dict[str, float]:
        """About the fleet, once a second; lags and ages are those since the last time."""
        if time.monotonic() - self._looked_s < LOOK_EVERY_S:
            return {}
        self._looked_s = time.monotonic()
        accounts = self.link.accounts()
        values = {
            "fleet/version": float(self._number),
            "fleet/workers": float(self._workers),
            "fleet/sent": float(sum(account.sent for account in accounts)),
            "fleet/stored": float(sum(account.stored for account in accounts)),
            "fleet/in_flight": float(sum(account.in_flight for account in accounts)),
            "fleet/updates_skipped": counters.updates_skipped,
        }
        for account in accounts:
            for reason, rows in account.dropped.items():
                values[f"fleet/dropped/{reason}"] = values.get(f"fleet/dropped/{reason}", 0.0) + rows
        if self.checks is not None:
            values |= {"fleet/checked": float(self.checks.held), "fleet/ended": float(len(self._ended)),
                       "fleet/newcomers": float(len(self._newcomers()))}  # fmt: skip
        if self._ages_s:
            values |= {"fleet/age_s": float(np.mean(self._ages_s)), "fleet/oldest_s": max(self._ages_s)}
        if self._lags:
            values["fleet/lag"] = float(np.mean(self._lags))
        self._ages_s, self._lags = [], []
        return values

    def notes(self) -> dict[str, Any]:
        """The version, and the last message of every worker that the checkpoint holds."""
        notes = {"number": self._number, "marks": self.link.marks(), "givers": self.givers.state()[0]}
        return notes | ({"checked": self.checks.notes()} if self.checks is not None else {})

    def parts(self) -> Parts:
        """Who gave which rows."""
        return {"givers": dict(self.givers.state()[1])}

    def forget(self, name: str, learner: Learner) -> int:
        """Remove what a name gave from the replay; the number of rows."""
        if learner.store is None:
            return 0
        rows = len(learner.store)
        gone = self.givers.of_name(name, learner.store.added - rows, rows)
        learner.remove(gone)
        self.givers.remove(name)
        return int(gone.sum())

    def names_to_forget(self) -> Sequence[str]:
        """Names that were found out since the last time."""
        names, self._to_forget = self._to_forget, []
        return names

    def restore(self, saved: Checkpoint, learner: Learner) -> None:
        """Go on from a checkpoint."""
        notes: Mapping[str, Any] = saved.state["source"]
        self._first_updates = learner.counters.updates
        marks: Mapping[str, Any] = notes.get("marks", {})  # none of a run that played by itself until now
        self._number = max(self._number, int(notes.get("number", 0)))  # versions never repeat
        self.link.restore(marks)
        self._restore_givers(saved, learner)
        if self.checks is not None:
            self.checks.restore(notes.get("checked", {}), marks)
        self._publish(learner)

    def _restore_givers(self, saved: Checkpoint, learner: Learner) -> None:
        """Unless the replay is not that of the checkpoint, or nobody noted who gave it."""
        if "givers" in saved.parts:
            self.givers.restore(saved.state["source"]["givers"], saved.arrays("givers"))
        if "givers" not in saved.parts or (learner.store is not None and learner.store.added != self.givers.added):
            self.givers = Givers(self.givers.capacity)

    def discard(self, reason: str) -> None:
        """Drop what came since the last checkpoint, for this reason."""
        self.link.settle((), [(arrival.message, reason) for arrival in (*self._taken, *self._waiting)])
        self._taken.clear()
        self._waiting.clear()
        self._taken_bytes = self._waiting_rows = 0

    def start_saving(self) -> Callable[[], None]:
        """What is stored by now may be forgotten elsewhere as soon as the checkpoint holds it."""
        stored = 0 if self._rows_of_update else len(self._taken)
        return lambda: self._acknowledge(stored)

    def _is_enough(self, learner: Learner, chunks: int, steps: int) -> bool:
        """Whether a learner that gets so much can soon learn from no more; the rest waits, unless it is much."""
        if self._rows_of_update or self._waiting_rows > MOST_WAITING:
            return False
        if not learner.is_due:
            return chunks >= AT_ONCE
        return not learner.has_room(steps + self._waiting[0].chunk.steps if steps else 0)

    def _has_enough(self) -> bool:
        return self._waiting_rows >= max(1, self._rows_of_update)

    def _receive(self, limit_s: float) -> None:
        """Open what came. What is wrong with a message is counted, said once per worker, and never stops a run."""
        dropped: list[tuple[Message, str]] = []
        held: list[Message] = []
        for message in self.link.receive(limit_s):
            self._ages_s.append(max(0.0, time.time() - message.sent_s))
            try:
                arrival = self._open(message)
                if message.is_held:
                    held.append(arrival.message)
                    if self.checks is not None:
                        self.checks.skip(arrival.header)
                    continue
                if self.checks is not None and (doubt := self._doubt(self.checks, arrival, dropped)):
                    dropped.append((message, doubt))
                    continue
                self._waiting.append(arrival)
                self._waiting_rows += arrival.header.rows
            except BadFrame as error:
                dropped.append((message, error.reason))
                if message.worker not in self._told:
                    self._told.add(message.worker)
                    self._say(
                        f"a message of worker {message.worker} was dropped ({error}); further ones are only counted"
                    )
        self._revoke()
        if held or dropped:
            self.link.settle(held, dropped)

    def _doubt(self, checks: Checks, arrival: Arrival, dropped: list[tuple[Message, str]]) -> str:
        """Why not to learn from a chunk; empty if there is no reason. What waits of a name found out is `dropped`."""
        name, rows, apart = name_of(arrival.message.worker), arrival.header.rows, self._apart
        if name in self._refused:
            return WRONG
        if wrong := checks.look(arrival.header, arrival.chunk):
            self._say(
                f"{name} has sent what was not played ({wrong}): its invitation ends, and what it gave is forgotten"
            )
            checks.forget(name)
            self._ended[name] = wrong
            self._refused.add(name)
            self._to_forget.append(name)
            dropped += [(one.message, WRONG) for one in self._waiting if name_of(one.message.worker) == name]
            self._waiting = deque(one for one in self._waiting if name_of(one.message.worker) != name)
            self._waiting_rows = sum(one.header.rows for one in self._waiting)
            return WRONG
        is_known = checks.vouch(arrival.header)
        if not is_known and apart.is_over(NEW, rows, self._config.fleet.probation_share, 0, ()):
            return PROBATION
        apart.add(KNOWN if is_known else NEW, rows, apart.added)
        return ""

    def _revoke(self) -> None:
        """End the invitations of names that were found out; until that is done nothing of them is taken."""
        for name in sorted(self._refused):
            problem = self.link.end(name)
            if not problem:
                self._refused.discard(name)
            elif problem not in self._told:
                self._told.add(problem)
                self._say(f"{name} could not be revoked ({problem}): nothing of it is taken; try souls revoke {name}")

    def _newcomers(self) -> dict[str, int]:
        """Names on probation that have sent something, and their fights that were played again."""
        return {} if self.checks is None else self.checks.newcomers()

    def _open(self, message: Message) -> Arrival:
        header, chunk = unpack_chunk(message.frame, self._schema, run=self._start.run, limits=self._limits)
        if (header.worker, header.sequence, header.rows) != (message.worker, message.sequence, message.rows):
            raise BadFrame("invalid", "the frame is of another worker, sequence or size than its message says")
        ended = chunk.ended
        fights = int(ended.standard.sum()) if self._config.world == "fight" else 0
        wins = int(ended.won[ended.standard].sum()) if fights else 0
        self._rates.add(message.worker, chunk.steps)
        self._heard_s[name_of(message.worker)] = time.monotonic()
        return Arrival(replace(message, played=Played(chunk.steps, len(ended.lengths), fights, wins)), header, chunk)

    def _drop_stale(self) -> None:
        if self._max_lag is None:
            return
        fresh, stale = deque[Arrival](), list[Arrival]()
        for arrival in self._waiting:
            lag = lag_of(self.version, arrival.header.policy)
            (fresh if lag <= self._max_lag else stale).append(arrival)
        if stale:
            self.link.settle((), [(arrival.message, "stale") for arrival in stale])
            self._waiting_rows -= sum(arrival.header.rows for arrival in stale)
        self._waiting = fresh

    def _acknowledge(self, count: int) -> None:
        """The first `count` that the learner was given."""
        if count:
            done = [self._taken.popleft().message for _ in range(count)]
            self.link.settle(done)
            self._taken_bytes -= sum(len(message.frame) for message in done)

    def _publish(self, learner: Learner) -> None:
        if not learner.is_finite():
            raise DivergedError(f"a weight is no longer a number at step {learner.counters.steps:,}")
        self._number += 1
        tensors = {
            f"{name}.{key}": value
            for name, network in learner.networks.items()
            for key, value in network.state_dict().items()
        }
        share = -(-self._rows_of_update // max(1, self._workers)) if self._workers_wait else 0
        with learner.clock.phase("publish"):
            policy = Policy(self.version, learner.counters.steps, arrays_of(tensors), share)
            frame = pack_policy(policy, run=self._start.run, half=self._config.fleet.half_precision)
            self.link.publish(self.version, frame)
            if self.checks is not None:
                self.checks.keep(self.version, frame)
        self._published_updates, self._published_s = learner.counters.updates, time.monotonic()

    def _report(self, counters: Counters) -> None:
        """Count live workers, and tell those who look at the fleet how it goes."""
        self._reported_s = time.monotonic()
        self._workers = self.link.workers()
        fleet, run = self._config.fleet, self._config.run
        self.link.describe({
            "version": self.version, "steps": counters.steps, "updates": counters.updates, "target": run.steps,
            "generation": self._start.generation, "silent_after_s": fleet.silent_after_s, "hang_s": fleet.hang_s,
            "most_rows": self._limits.rows, "rates": json.dumps(self._rates.take()),
            "newcomers": json.dumps(self._newcomers()), "ended": json.dumps(self._ended),
        })  # fmt: skip

    def _gate(self, *, is_open: bool) -> None:
        """Let simulated workers send, or wait."""
        if is_open != self._is_open:
            self.link.gate(is_open=is_open)
            self._is_open = is_open
            self.limit_s = OPEN_S if is_open and not self._rows_of_update else LEARN_S
