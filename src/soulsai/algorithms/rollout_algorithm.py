"""What all algorithms with rollouts share: one network for policy and value, with which rollouts are played."""

from __future__ import annotations

from collections.abc import Sequence

from soulsai.acting.actor import Actor
from soulsai.acting.light import LightActorCritic
from soulsai.acting.rollouts import RolloutActor
from soulsai.acting.world import World, sizes_of
from soulsai.algorithms.algorithm import Algorithm, LightNetworks, Networks
from soulsai.config.schema import Config
from soulsai.experience import Sizes
from soulsai.telemetry.clock import LoopClock


class RolloutAlgorithm(Algorithm):
    """Plays rollouts with one network."""

    def networks(self, config: Config, sizes: Sizes) -> Networks:
        """One for policy and value."""
        from soulsai.networks import ActorCritic

        return {"network": ActorCritic(sizes.observation_size, sizes.num_actions, config.network)}

    def light_networks(self, config: Config, sizes: Sizes) -> LightNetworks:
        """The same without torch."""
        return {"network": LightActorCritic(sizes.observation_size, sizes.num_actions, config.network)}

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
