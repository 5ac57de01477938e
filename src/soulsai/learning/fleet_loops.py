"""The two loops of a learner whose actors are elsewhere: receive, learn, publish, again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch

from soulsai.acting.episodes import Episodes
from soulsai.acting.explorer import scheduled_epsilons
from soulsai.acting.rollouts import Rollout
from soulsai.checkpoints.store import Checkpoint
from soulsai.config.schema import Config
from soulsai.learning.intake import Arrival, Intake
from soulsai.learning.students import Counters, Parts, PPOStudent, QStudent
from soulsai.transport.experience import Layout, RolloutChunk, TransitionChunk
from soulsai.transport.links import LearnerLink
from soulsai.transport.policies import Policy, pack_policy
from soulsai.transport.versions import lag_of, version_of

WAIT_S = 0.2
"""How long a loop waits for experience before it looks up."""
LEARN_S = 0.2
"""How long a loop learns before it looks for experience again."""
LOOK_EVERY_S = 1.0
"""Between looks at the accounts of the fleet."""
UNSAVED_BYTES = 64 << 20
"""Experience that is stored but in no checkpoint stays with the transport; so much of it calls for one."""
BEHIND_S = 0.2
"""How often a learner that owes more than it should takes what came."""
CHUNKS_AHEAD = 2
"""Chunks whose gradient steps may be owed before simulated workers are asked to wait."""
CHUNKS_OWED = 16
"""Chunks whose gradient steps may be owed at all: workers that cannot wait bring more than can be learned from."""
CHUNKS_PER_WORKER = 4
"""More of them for each worker: so many it may send before it sees that the gate is closed."""


@dataclass(frozen=True)
class Place:
    """Where a learner stands: the run it serves and how often it was started before."""

    run: str
    generation: int


class Hub:
    """The learner's side of the fleet: intake, versions of the policy, and what there is to tell about them."""

    def __init__(
        self, config: Config, layout: Layout, link: LearnerLink, place: Place, say: Callable[[str], None]
    ) -> None:
        self.link, self.intake = link, Intake(link, layout, run=place.run, say=say)
        self._config, self._place = config, place
        self._number = 0
        self._is_open: bool | None = None
        self._lags: list[int] = []
        self._looked_s = -LOOK_EVERY_S
        self._published_s = 0.0
        self.workers = 0
        """Those whose heart beat when last looked at."""

    @property
    def version(self) -> int:
        """Of the newest policy."""
        return version_of(self._place.generation, self._number)

    @property
    def since_published_s(self) -> float:
        """How old the newest policy is."""
        return time.monotonic() - self._published_s

    def publish(self, networks: Mapping[str, torch.nn.Module], steps: int, wanted: int = 0) -> None:
        """Make the networks as they are the newest policy; `wanted` rows are for the next update, of all workers."""
        self._number += 1
        tensors = {
            f"{name}.{key}": value.detach().cpu()
            for name, net in networks.items()
            for key, value in net.state_dict().items()
        }
        share = -(-wanted // max(1, self.workers))
        self.link.publish(self.version, pack_policy(Policy(self.version, steps, tensors, share), run=self._place.run))
        self._published_s = time.monotonic()

    def gate(self, *, is_open: bool) -> None:
        """Let simulated workers send, or wait."""
        if is_open != self._is_open:
            self.link.gate(is_open=is_open)
            self._is_open = is_open

    def lag(self, arrival: Arrival) -> int:
        """How many versions the policy of a chunk is old."""
        return lag_of(self.version, arrival.header.policy)

    def note_lag(self, arrival: Arrival) -> None:
        """A chunk is used now: remember its lag for the metrics."""
        self._lags.append(self.lag(arrival))

    def metrics(self, counters: Counters) -> dict[str, float]:
        """About the fleet, once a second."""
        if time.monotonic() - self._looked_s < LOOK_EVERY_S:
            return {}
        self._looked_s = time.monotonic()
        self.workers = self.link.workers()
        values = {"fleet/version": float(self._number), "fleet/workers": float(self.workers)}
        accounts = self.link.accounts()
        values["fleet/sent"] = float(sum(account.sent for account in accounts))
        values["fleet/stored"] = float(sum(account.stored for account in accounts))
        values["fleet/in_flight"] = float(sum(account.in_flight for account in accounts))
        for account in accounts:
            for reason, rows in account.dropped.items():
                values[f"fleet/dropped/{reason}"] = values.get(f"fleet/dropped/{reason}", 0.0) + rows
        if ages_s := self.intake.ages_s():
            values["fleet/age_s"] = float(np.mean(ages_s))
            values["fleet/oldest_s"] = float(max(ages_s))
        if self._lags:
            values["fleet/lag"] = float(np.mean(self._lags))
            self._lags = []
        told = {"version": self.version, "steps": counters.steps, "updates": counters.updates}
        told |= {"target": self._config.run.steps, "generation": self._place.generation}
        fleet = self._config.fleet
        self.link.describe(told | {"silent_after_s": fleet.silent_after_s, "hang_s": fleet.hang_s})
        return values

    def notes(self) -> dict[str, Any]:
        """For the checkpoint."""
        return {"number": self._number} | self.intake.notes()

    def restore(self, notes: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        self._number = int(notes["number"])
        self.intake.restore(notes)


class FleetQLoop(QStudent):
    """Stores transitions as they come and makes the gradient steps they are owed.

    Chunks are acknowledged when a checkpoint holds them: a learner that is killed gets the others once more.
    """

    def __init__(self, config: Config, layout: Layout, device: torch.device, hub: Hub, episodes: Episodes) -> None:
        super().__init__(config, layout.observation_size, layout.num_actions, device)
        self.episodes, self._hub = episodes, hub
        self._unsaved: list[Arrival] = []
        self._unsaved_bytes = 0
        self._skipped = 0.0
        self._published_updates = 0
        self._received_s = 0.0
        self._owed_for_a_chunk = max(config.fleet.chunk_rows / config.q.update_every, float(config.q.burst))

    @property
    def saving_is_due(self) -> bool:
        """Much that came is in no checkpoint yet."""
        return self._unsaved_bytes > UNSAVED_BYTES or 2 * len(self._unsaved) > self.config.fleet.max_chunks

    def begin(self) -> None:
        """Publish the first policy."""
        self._publish()

    def iterate(self) -> dict[str, float]:
        """Take what came, learn for a moment, publish if it is time."""
        with self.clock.phase("receive"):
            arrivals = self._received()
        with self.clock.phase("store"):
            for arrival in arrivals:
                self._store(arrival)
            self._hub.intake.kept(arrivals)
        self._limit_debt()
        metrics: dict[str, torch.Tensor] = {}
        until_s = time.monotonic() + LEARN_S
        while self.owes() and time.monotonic() < until_s:
            metrics = self.learn_burst()
        new = self.counters.updates > self._published_updates
        if new and self._hub.since_published_s >= self.config.fleet.publish_every_s:
            self._publish()
        values = {name: float(value) for name, value in metrics.items()}
        shares = scheduled_epsilons(self.config.q, self.counters.steps, 1)
        values |= {"epsilon": float(shares[0]), "fleet/updates_skipped": self._skipped}
        return values | self.replay_metrics() | self._hub.metrics(self.counters)

    def parts(self) -> Parts:
        """What learns, and the episodes."""
        return super().parts() | {"episodes": dict(self.episodes.state())}

    def notes(self) -> dict[str, Any]:
        """What came so far, the version, and what was left out."""
        return self._hub.notes() | {"skipped": self._skipped}

    def restore(self, saved: Checkpoint) -> None:
        """Go on from a checkpoint; the store is filled before."""
        super().restore(saved)
        self.episodes.restore(saved.arrays("episodes"))
        self._hub.restore(saved.state["loop"])
        self._skipped = saved.state["loop"]["skipped"]
        self._publish()

    def pause(self) -> None:
        """Ask workers to wait."""
        self._hub.gate(is_open=False)

    def saved(self) -> None:
        """A checkpoint holds everything that came: now it may be forgotten elsewhere."""
        self._hub.link.settle([arrival.delivery for arrival in self._unsaved])
        self._unsaved, self._unsaved_bytes = [], 0

    def close(self) -> None:
        """The link belongs to whoever made it."""

    def _store(self, arrival: Arrival) -> None:
        chunk = arrival.chunk
        assert isinstance(chunk, TransitionChunk)
        self._hub.note_lag(arrival)
        slots = self.store.add_pooled(
            chunk.pool,
            chunk.first,
            chunk.following,
            chunk.actions,
            chunk.rewards,
            chunk.discounts,
            chunk.next_masks,
        )
        self.sampler.added(slots)
        if self.config.network.normalize:
            self.learner.normalize_with(torch.from_numpy(chunk.pool[chunk.first]).to(self._device))
        self.episodes.record(chunk.ended)
        self.count(chunk.steps)
        # More than its rows where steps without a choice are merged into decisions.
        self._owed_for_a_chunk = max(self._owed_for_a_chunk, chunk.steps / self.config.q.update_every)
        self._unsaved.append(arrival)
        self._unsaved_bytes += len(arrival.delivery.parcel.frame)

    def _received(self) -> list[Arrival]:
        """All that came. One that is behind looks only now and then: it has enough, but some workers cannot wait."""
        if self._is_behind() and time.monotonic() - self._received_s < BEHIND_S:
            return []
        self._received_s = time.monotonic()
        arrivals = more = self._hub.intake.take(0.0 if self.owes() else WAIT_S)
        while more and sum(len(arrival.delivery.parcel.frame) for arrival in arrivals) < UNSAVED_BYTES:
            more = self._hub.intake.take(0.0)
            arrivals += more
        return arrivals

    def _is_behind(self) -> bool:
        return self.counters.updates_owed > CHUNKS_AHEAD * self._owed_for_a_chunk

    def _limit_debt(self) -> None:
        """Ask workers to wait where the learner falls behind, and let go of what can never be made up."""
        self._hub.gate(is_open=not self._is_behind())
        most = CHUNKS_OWED + CHUNKS_PER_WORKER * self._hub.workers
        too_many = self.counters.updates_owed - most * self._owed_for_a_chunk
        if too_many > 0.0:
            self.counters.updates_owed -= too_many
            self._skipped += too_many

    def _publish(self) -> None:
        with self.clock.phase("publish"):
            self._hub.publish(self.networks(), self.counters.steps)
        self._published_updates = self.counters.updates


class FleetPPOLoop(PPOStudent):
    """Learns whenever enough fresh decisions have come, from whoever is there.

    Rollouts are acknowledged when an update has used them. While it learns, workers finish the rollout they are in and
    then wait: what they send is one version old, not more.
    """

    saving_is_due = False

    def __init__(self, config: Config, layout: Layout, device: torch.device, hub: Hub, episodes: Episodes) -> None:
        super().__init__(config, layout.observation_size, layout.num_actions, device)
        self.episodes, self._hub = episodes, hub
        number = config.gym.number if config.world == "gym" else config.fight.number
        self._wanted = config.ppo.rollout * number
        self._waiting: list[Arrival] = []

    def begin(self) -> None:
        """Publish the first policy."""
        self._publish()

    def iterate(self) -> dict[str, float]:
        """Take what came; when it is enough, learn from it and publish."""
        with self.clock.phase("receive"):
            self._waiting += self._hub.intake.take(0.0 if self._has_enough() else WAIT_S)
        self._discard_stale()
        metrics = self._learn() if self._has_enough() else {}
        self._hub.gate(is_open=not self._has_enough())
        return metrics | self._hub.metrics(self.counters)

    def parts(self) -> Parts:
        """What learns, and the episodes."""
        return super().parts() | {"episodes": dict(self.episodes.state())}

    def notes(self) -> dict[str, Any]:
        """What was used so far, and the version."""
        return self._hub.notes()

    def restore(self, saved: Checkpoint) -> None:
        """Go on from a checkpoint."""
        super().restore(saved)
        self.episodes.restore(saved.arrays("episodes"))
        self._hub.restore(saved.state["loop"])
        self._publish()

    def saved(self) -> None:
        """Rollouts are acknowledged when they are used."""

    def close(self) -> None:
        """The link belongs to whoever made it."""

    def pause(self) -> None:
        """Ask workers to wait."""
        self._hub.gate(is_open=False)

    def _has_enough(self) -> bool:
        return sum(arrival.header.rows for arrival in self._waiting) >= self._wanted

    def _discard_stale(self) -> None:
        fresh, stale = list[Arrival](), list[Arrival]()
        for arrival in self._waiting:
            (fresh if self._hub.lag(arrival) <= self.config.fleet.max_lag else stale).append(arrival)
        if stale:
            self._hub.intake.kept(stale)
            self._hub.link.settle((), [(arrival.delivery, "stale") for arrival in stale])
        self._waiting = fresh

    def _learn(self) -> dict[str, float]:
        """Use the oldest rollouts, as many as are wanted for an update."""
        self.pause()
        used, rows = list[Arrival](), 0
        while rows < self._wanted:
            arrival = self._waiting.pop(0)
            used.append(arrival)
            rows += arrival.header.rows
            self._hub.note_lag(arrival)
            self.episodes.record(arrival.chunk.ended)
        metrics = self.learn_from(_joined(used), sum(arrival.header.steps for arrival in used))
        self._hub.intake.kept(used)
        self._publish()
        self._hub.link.settle([arrival.delivery for arrival in used])
        return metrics

    def _publish(self) -> None:
        with self.clock.phase("publish"):
            self._hub.publish(self.networks(), self.counters.steps, self._wanted)


def _joined(arrivals: Sequence[Arrival]) -> Rollout:
    """Rollouts of several workers as one, side by side."""
    chunks = [arrival.chunk for arrival in arrivals]
    columns: dict[str, torch.Tensor] = {}
    for field in fields(Rollout):
        parts = [getattr(chunk, field.name) for chunk in chunks if isinstance(chunk, RolloutChunk)]
        columns[field.name] = torch.from_numpy(np.concatenate(parts, axis=1))
    return Rollout(**columns)
