"""What all algorithms with rollouts share: one network for policy and value, and rollouts that are used once."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from soulsai.acting.actor import Actor
from soulsai.acting.rollouts import RolloutActor
from soulsai.acting.world import World, sizes_of
from soulsai.algorithms.algorithm import Algorithm, Learner, Networks
from soulsai.config.schema import Config
from soulsai.experience import Chunk, Schema, Sizes
from soulsai.networks import ActorCritic, Adam, FlatParameters
from soulsai.telemetry.clock import LoopClock


class RolloutAlgorithm(Algorithm):
    """Plays rollouts with one network."""

    def networks(self, config: Config, sizes: Sizes) -> Networks:
        """One for policy and value."""
        return {"network": ActorCritic(sizes.observation_size, sizes.num_actions, config.network)}

    def actor(
        self, config: Config, world: World, networks: Networks, seed: Sequence[int], clock: LoopClock | None = None
    ) -> Actor:
        """Plays rollouts."""
        network = networks["network"]
        assert isinstance(network, ActorCritic)
        schema = self.schema(config, sizes_of(world))
        gamma, masks = self.gamma(config), config.actions.masks
        return RolloutActor(world, schema, network, gamma=gamma, masks=masks, seed=seed, clock=clock)


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
