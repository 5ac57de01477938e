"""What all learners with a replay share: rows in, gradient steps owed for them, batches out."""

from __future__ import annotations

import time
from abc import abstractmethod

import numpy as np
import numpy.typing as npt
import torch

from soulsai.algorithms.algorithm import REFUSED, Learner, Metrics, Parts, tensors_of
from soulsai.checkpoints.store import Checkpoint
from soulsai.config.schema import Config
from soulsai.errors import DivergedError
from soulsai.experience import Array, Chunk, Schema
from soulsai.ops.schedules import linear
from soulsai.replay import Batch, PrioritizedSampler, ReplayStore, UniformSampler
from soulsgym.batch import restore_generator, state_of_generator

Tensor = torch.Tensor

CHUNKS_AHEAD = 2
"""Chunks whose gradient steps may be owed before actors that can wait are asked to."""
CHUNKS_OWED = 64
"""Chunks whose gradient steps may be owed at all: workers that cannot wait bring more than can be learned from."""


class ReplayLearner(Learner):
    """Stores rows as they come and makes the gradient steps they are owed."""

    def __init__(
        self,
        config: Config,
        schema: Schema,
        device: torch.device,
        *,
        batch: int,
        update_every: float,
        warmup_steps: int,
        burst: int = 1,
    ) -> None:
        super().__init__(config, schema, device)
        self.store = ReplayStore(config.replay.capacity, schema)
        self._rows: ReplayStore = self.store
        self.sampler = self._new_sampler()
        self._update_every, self._warmup_steps, self._burst = update_every, warmup_steps, burst
        self._numpy = np.random.default_rng([config.run.seed, 1])
        self._batch = Batch(batch, schema)
        self._tensors = {name: torch.from_numpy(array) for name, array in self._batch.columns.items()}
        self._tensors["weights"] = torch.from_numpy(self._batch.weights)
        self._owed_for_a_chunk = float(burst)
        self._demos: dict[str, Array] = {}

    @abstractmethod
    def learn(self, batch: dict[str, Tensor]) -> tuple[Tensor, Metrics]:
        """One gradient step; how wrong each row was, for its priority, and metrics."""

    def normalize_with(self, observations: Tensor) -> None:
        """Take new observations into the statistics that inputs are scaled by."""

    def take(self, chunk: Chunk) -> None:
        """Store rows; gradient steps are owed for the environment steps they took."""
        with self.clock.phase("store"):
            self.sampler.add(self._rows.add(chunk.columns))
            if self.config.network.normalize:
                self.normalize_with(tensors_of(chunk)["observations"].to(self.device))
        counters = self.counters
        counters.steps += chunk.steps
        if counters.steps < self._warmup_steps:
            return
        owed = chunk.steps / self._update_every
        self._owed_for_a_chunk = max(self._owed_for_a_chunk, owed)
        counters.updates_owed += owed
        if (too_many := counters.updates_owed - CHUNKS_OWED * self._owed_for_a_chunk) > 0.0:
            counters.updates_owed -= too_many
            counters.updates_skipped += too_many

    @property
    def is_due(self) -> bool:
        """Whether a burst of gradient steps is due."""
        return self.counters.updates_owed >= self._burst and len(self._rows) >= len(self._batch)

    def has_room(self, steps: int) -> bool:
        """Whether gradient steps are owed for a few chunks at most after so many steps more, or rows are too few."""
        if len(self._rows) < len(self._batch):
            return True
        after = self.counters.steps + steps
        owed = min(steps, max(0, after - self._warmup_steps)) / self._update_every
        return self.counters.updates_owed + owed <= CHUNKS_AHEAD * self._owed_for_a_chunk

    def update(self, limit_s: float) -> Metrics:
        """The gradient steps that are owed, a burst at a time; one at least, however busy the machine is."""
        until_s = time.monotonic() + limit_s
        metrics: Metrics = {}
        while self.is_due:
            self.counters.updates_owed -= self._burst
            for _ in range(self._burst):
                metrics = self.learn_once()
            if time.monotonic() >= until_s:
                break
        return metrics

    def remember_demos(self, rows: dict[str, Array]) -> None:
        """Keep demonstrated rows beside the replay, where nothing takes their place."""
        self._demos = rows

    def learn_once(self) -> Metrics:
        """One gradient step: sample, learn, set priorities."""
        with self.clock.phase("sample"):
            self.sampler.sample(self._batch, self._numpy, self._beta())
            self._rows.gather(self._batch)
            shown = self._mix_in_demos()
        with self.clock.phase("learn"):
            wrong, metrics = self.learn({name: tensor.to(self.device) for name, tensor in self._tensors.items()})
        errors = wrong.cpu().numpy()
        if not np.isfinite(errors).all():
            if not self.is_finite():
                raise DivergedError(f"the error of a transition is no longer a number at step {self.counters.steps:,}")
            return {REFUSED: 1.0}  # its gradient was refused, too
        with self.clock.phase("sample"):
            self.sampler.update(self._batch.slots[shown:], errors[shown:])
        self.counters.updates += 1
        return metrics

    def _mix_in_demos(self) -> int:
        """Let demonstrated rows, drawn evenly, take the place of the first ones of the batch; how many these are.

        The batch then tells which actions were open in them.
        """
        if not self._demos:
            return 0
        shown = round(self._demo_share * len(self._batch))
        which = self._numpy.integers(0, len(self._demos["actions"]), shown)
        for name, column in self._batch.columns.items():
            column[:shown] = self._demos[name][which]
        self._batch.weights[:shown] = 1.0
        self._tensors["open"] = torch.from_numpy(self._demos["open"][which])
        return shown

    @property
    def _demo_share(self) -> float:
        demos = self.config.demos
        return linear(demos.share, demos.final_share, min(1.0, self.counters.steps / demos.share_steps))

    def metrics(self) -> dict[str, float]:
        """How the replay stands."""
        values = {"replay/size": float(len(self._rows))}
        if self._demos:
            values["demo_share"] = self._demo_share
        if isinstance(self.sampler, PrioritizedSampler):
            values |= {"beta": self._beta(), "replay/priority_mean": self.sampler.mean,
                       "replay/priority_max": self.sampler.largest}  # fmt: skip
        return values

    def parts(self) -> Parts:
        """What learns, sampler and randomness."""
        return super().parts() | {
            "sampler": dict(self.sampler.state()),
            "random": {"torch": self.generator.get_state(), "numpy": state_of_generator(self._numpy)},
        }

    def restore(self, saved: Checkpoint) -> None:
        """Go on from a checkpoint; counters and store are restored before."""
        super().restore(saved)
        self.sampler.restore(saved.arrays("sampler"))
        restore_generator(self._numpy, saved.arrays("random")["numpy"])

    def forget(self) -> None:
        """Empty the replay; no gradient steps are owed for what was in it."""
        self._rows.added, self.counters.updates_owed = 0, 0.0
        self.sampler = self._new_sampler()

    def remove(self, gone: npt.NDArray[np.bool_]) -> None:
        """Remove rows from the replay."""
        self.sampler.compact(self._rows.remove(gone))

    def _new_sampler(self) -> PrioritizedSampler | UniformSampler:
        replay = self.config.replay
        return PrioritizedSampler(replay.capacity, replay.alpha) if replay.prioritized else UniformSampler(self._rows)

    def _beta(self) -> float:
        return linear(self.config.replay.beta, self.config.replay.final_beta, self.progress)
