"""What all learners with rollouts share: one network for policy and value, and rollouts that are used once."""

from __future__ import annotations

import torch

from soulsai.algorithms.algorithm import Learner, Networks
from soulsai.config.schema import Config
from soulsai.experience import Chunk, Schema
from soulsai.networks import ActorCritic, Adam, FlatParameters


class RolloutLearner(Learner):
    """Keeps rollouts until the update that uses them up."""

    def __init__(
        self, config: Config, schema: Schema, device: torch.device, *, learning_rate: float, adam_eps: float
    ) -> None:
        super().__init__(config, schema, device)
        self.network = ActorCritic(schema.observation_size, schema.num_actions, config.network).to(device)
        self.modules["network"] = self.network
        self.flat = self.flats["network"] = FlatParameters(self.network)
        self.optimizer = self.optimizers["network"] = Adam(self.flat, learning_rate, eps=adam_eps)
        self._taken: list[Chunk] = []

    @property
    def networks(self) -> Networks:
        """The one network."""
        return {"network": self.network}

    @property
    def is_due(self) -> bool:
        """Whether rollouts wait."""
        return bool(self._taken)

    def take(self, chunk: Chunk) -> None:
        """Keep a rollout until the update."""
        self._taken.append(chunk)

    def take_all(self) -> Chunk:
        """What was kept, as one chunk; it is kept no longer."""
        taken, self._taken = self._taken, []
        return taken[0] if len(taken) == 1 else Chunk.join(taken, self.schema)
