"""What all algorithms with rollouts share: the actor that plays them."""

from __future__ import annotations

from collections.abc import Sequence

from soulsai.acting.actor import Actor
from soulsai.acting.rollouts import ROLLOUT, RolloutActor
from soulsai.acting.world import World, sizes_of
from soulsai.algorithms.actor_critic import ActorCriticAlgorithm
from soulsai.algorithms.algorithm import LightNetworks, Networks
from soulsai.config.schema import Config
from soulsai.experience import Schema, Sizes
from soulsai.telemetry.clock import LoopClock


class RolloutAlgorithm(ActorCriticAlgorithm):
    """Plays rollouts with one network."""

    def schema(self, config: Config, sizes: Sizes) -> Schema:
        """Rollouts."""
        return Schema.of(ROLLOUT, sizes, self.settings(config).rollout)

    def actor(
        self,
        config: Config,
        world: World,
        networks: Networks | LightNetworks,
        seed: Sequence[int],
        clock: LoopClock | None = None,
    ) -> Actor:
        """Plays rollouts."""
        schema = self.schema(config, sizes_of(world))
        gamma, masks = self.gamma(config), config.actions.masks
        return RolloutActor(world, schema, networks["network"], gamma=gamma, masks=masks, seed=seed, clock=clock)
