"""The learner of behaviour cloning."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from soulsai.acting.demonstrations import Demos
from soulsai.algorithms.algorithm import Learner, Metrics, Networks, Parts
from soulsai.algorithms.clone.config import CloneConfig
from soulsai.checkpoints.store import Checkpoint
from soulsai.config.schema import Config
from soulsai.experience import Chunk, Schema
from soulsai.networks import ActorCritic, Adam, FlatParameters
from soulsai.ops.masked import masked_argmax, masked_logits
from soulsai.ops.schedules import linear
from soulsgym.batch import restore_generator, state_of_generator

Tensor = torch.Tensor

EPS = 1e-8


class CloneLearner(Learner):
    """Makes the demonstrated actions likely. A step of the run is a decision that was learned from."""

    needs_demos = True

    def __init__(self, config: Config, schema: Schema, device: torch.device) -> None:
        super().__init__(config, schema, device)
        self.settings = settings = config.section(CloneConfig)
        self.network = ActorCritic(schema.observation_size, schema.num_actions, config.network).to(device)
        self.modules["network"] = self.network
        flat = self.flats["network"] = FlatParameters(self.network)
        self.optimizers["network"] = Adam(flat, settings.learning_rate, eps=EPS, decay=settings.weight_decay)
        self._numpy = np.random.default_rng([config.run.seed, 1])
        self._learned: dict[str, Tensor] = {}
        self._held_out: dict[str, Tensor] = {}
        self._owed = 0

    @property
    def networks(self) -> Networks:
        """The one network; its value head learns nothing."""
        return {"network": self.network}

    def teach(self, demos: Demos) -> None:
        """Learn from these, but for every so many fights, which are kept to measure it."""
        numbers = np.unique(demos.fights)
        count = int(self.settings.held_out * len(numbers))
        kept = np.random.default_rng([self.config.run.seed, 2]).choice(numbers, count, replace=False)
        is_kept = np.isin(demos.fights, kept)
        self._learned, self._held_out = ({name: torch.from_numpy(getattr(demos, name)[which]).to(self.device)
                                          for name in ("observations", "masks", "actions")}
                                         for which in (~is_kept, is_kept))  # fmt: skip
        if self.network.normalizer is not None:
            self.network.normalizer.update(self._learned["observations"])

    def take(self, chunk: Chunk) -> None:
        """Another batch is due."""
        self.counters.steps += chunk.steps
        self._owed += 1

    @property
    def is_due(self) -> bool:
        """Whether a batch is due."""
        return self._owed > 0

    def update(self, limit_s: float) -> Metrics:
        """The gradient steps that are due."""
        metrics: Metrics = {}
        while self._owed:
            self._owed -= 1
            with self.clock.phase("learn"):
                metrics = self._step()
        return metrics

    def metrics(self) -> dict[str, float]:
        """How often it would do what was done, in fights that it does not learn from."""
        if not self._held_out or not len(self._held_out["actions"]):
            return {}
        with torch.no_grad():
            return {"clone/held_out": float(self._agreement(self._held_out))}

    def parts(self) -> Parts:
        """What learns, and randomness."""
        parts = super().parts()
        parts["random"]["numpy"] = state_of_generator(self._numpy)
        return parts

    def restore(self, saved: Checkpoint) -> None:
        """Go on from a checkpoint."""
        super().restore(saved)
        restore_generator(self._numpy, saved.arrays("random")["numpy"])

    def _step(self) -> Metrics:
        settings, optimizer = self.settings, self.optimizers["network"]
        low = settings.learning_rate * settings.final_learning_rate
        optimizer.rate = linear(settings.learning_rate, low, self.progress)
        which = torch.from_numpy(self._numpy.integers(0, len(self._learned["actions"]), settings.batch))
        batch = {name: column[which.to(self.device)] for name, column in self._learned.items()}
        logits = masked_logits(self.network.scores(batch["observations"]), batch["masks"])
        loss = functional.cross_entropy(logits, batch["actions"])
        self.flats["network"].zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = optimizer.step(settings.gradient_norm)
        self.counters.updates += 1
        with torch.no_grad():
            agreement = (logits.argmax(1) == batch["actions"]).float().mean()
        return {"loss/clone": loss.detach(), "clone/agreement": agreement, "gradient/norm": norm}

    def _agreement(self, rows: dict[str, Tensor]) -> Tensor:
        chosen = masked_argmax(self.network.scores(rows["observations"]), rows["masks"])
        return (chosen == rows["actions"]).float().mean()


LEARNER = CloneLearner
