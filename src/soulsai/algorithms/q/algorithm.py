"""Q-learning as an algorithm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from soulsai.acting.actor import Actor
from soulsai.acting.light import LightQNetwork
from soulsai.acting.network import Actions, Flags, Floats, acting_network, best_open, mix_random
from soulsai.acting.transitions import TransitionActor
from soulsai.acting.world import World, sizes_of
from soulsai.algorithms.algorithm import Algorithm, LightNetworks, Networks
from soulsai.algorithms.findings import Finding, Sample, UselessSettings
from soulsai.algorithms.q.config import QConfig, names_of
from soulsai.algorithms.q.exploration import epsilons
from soulsai.algorithms.q.preflight import findings, useless
from soulsai.config.schema import Config
from soulsai.experience import Schema, Sizes
from soulsai.telemetry.clock import LoopClock


class QLearning(Algorithm):
    """From DQN (Mnih et al. 2015) to Rainbow (Hessel et al. 2018) and beyond, by its settings."""

    name = "q"

    def networks(self, config: Config, sizes: Sizes) -> Networks:
        """The online network, or both twins."""
        from soulsai.algorithms.q.networks import build_network

        names = names_of(config.section(QConfig))
        return {name: build_network(config, sizes.observation_size, sizes.num_actions) for name in names}

    def light_networks(self, config: Config, sizes: Sizes) -> LightNetworks:
        """The same without torch."""
        q = config.section(QConfig)
        return {
            name: LightQNetwork(
                sizes.observation_size,
                sizes.num_actions,
                config.network,
                dueling=q.dueling,
                noisy=q.noisy,
                distribution=q.distribution,
                atoms=q.atoms,
                value_range=q.value_range,
            )
            for name in names_of(q)
        }

    def actor(
        self,
        config: Config,
        world: World,
        networks: Networks | LightNetworks,
        seed: Sequence[int],
        clock: LoopClock | None = None,
    ) -> Actor:
        """Plays the best action, and a share of random ones."""
        q, schema = config.section(QConfig), self.schema(config, sizes_of(world))
        return QActor(q, world, schema, networks, masks=config.actions.masks, seed=seed, clock=clock)

    def findings(self, config: Config, sample: Sample) -> Iterator[Finding]:
        """Numbers that are far from those that ever led anywhere."""
        return findings(config, sample)

    def useless(self, config: Config) -> Iterator[UselessSettings]:
        """Settings that others make useless."""
        return useless(config)


class QActor(TransitionActor):
    """Plays the best action by the values of the networks, and a share of random ones."""

    def __init__(
        self,
        settings: QConfig,
        world: World,
        schema: Schema,
        networks: Networks | LightNetworks,
        *,
        masks: bool,
        seed: Sequence[int],
        clock: LoopClock | None,
    ) -> None:
        super().__init__(
            world,
            schema,
            self._pick,
            n_step=settings.n_step,
            gamma=settings.gamma,
            masks=masks,
            seed=seed,
            clock=clock,
        )
        self._settings, self._networks = settings, [acting_network(network) for network in networks.values()]

    def _pick(self, observations: Floats, masks: Flags, generator: np.random.Generator) -> Actions:
        if self._settings.noisy:
            for network in self._networks:
                network.draw_noise(int(generator.integers(2**62)))
        first, *others = (network.scores(observations) for network in self._networks)
        greedy = best_open(sum(others, first), masks)
        return mix_random(greedy, masks, epsilons(self._settings, self.steps, len(greedy)), generator)


ALGORITHM = QLearning()
