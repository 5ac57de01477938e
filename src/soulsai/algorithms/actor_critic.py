"""What all algorithms with one network for policy and value share."""

from __future__ import annotations

from soulsai.acting.light import LightActorCritic
from soulsai.algorithms.algorithm import Algorithm, LightNetworks, Networks
from soulsai.config.schema import Config
from soulsai.experience import Sizes


class ActorCriticAlgorithm(Algorithm):
    """Its policy is one network."""

    def networks(self, config: Config, sizes: Sizes) -> Networks:
        """One for policy and value."""
        from soulsai.networks import ActorCritic

        return {"network": ActorCritic(sizes.observation_size, sizes.num_actions, config.network)}

    def light_networks(self, config: Config, sizes: Sizes) -> LightNetworks:
        """The same without torch."""
        return {"network": LightActorCritic(sizes.observation_size, sizes.num_actions, config.network)}
