"""Q-learning as an algorithm."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch

from soulsai.acting.actor import Actor
from soulsai.acting.policy import NetworkPolicy, mix_random
from soulsai.acting.transitions import TransitionActor
from soulsai.acting.world import World, sizes_of
from soulsai.algorithms.algorithm import Algorithm, Learner, Networks
from soulsai.algorithms.findings import Finding, Sample, UselessSettings
from soulsai.algorithms.q.config import QConfig
from soulsai.algorithms.q.exploration import epsilons
from soulsai.algorithms.q.learner import QLearner
from soulsai.algorithms.q.networks import build_network, names_of
from soulsai.algorithms.q.preflight import findings, useless
from soulsai.config.schema import Config
from soulsai.experience import Schema, Sizes
from soulsai.networks import PolicyNetwork, QNetwork
from soulsai.replay.n_step import TRANSITION
from soulsai.telemetry.clock import LoopClock


class QLearning(Algorithm):
    """From DQN (Mnih et al. 2015) to Rainbow (Hessel et al. 2018) and beyond, by its settings."""

    name = "q"

    def schema(self, config: Config, sizes: Sizes) -> Schema:
        """Transitions."""
        return Schema.of(TRANSITION, sizes)

    def networks(self, config: Config, sizes: Sizes) -> Networks:
        """The online network, or both twins."""
        names = names_of(config.section(QConfig))
        return {name: build_network(config, sizes.observation_size, sizes.num_actions) for name in names}

    def actor(
        self, config: Config, world: World, networks: Networks, seed: Sequence[int], clock: LoopClock | None = None
    ) -> Actor:
        """Plays the best action, and a share of random ones."""
        q, schema = config.section(QConfig), self.schema(config, sizes_of(world))
        return QActor(q, world, schema, networks, masks=config.actions.masks, seed=seed, clock=clock)

    def learner(self, config: Config, sizes: Sizes, device: torch.device) -> Learner:
        """Learns from a replay."""
        return QLearner(config, self.schema(config, sizes), device)

    def gamma(self, config: Config) -> float:
        """The discount of an environment step."""
        return config.section(QConfig).gamma

    def decisions_of_row(self, config: Config) -> int:
        """Those before the bootstrap."""
        return config.section(QConfig).n_step

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
        networks: Networks,
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
        # Several actors may play with the same networks at once, and the learner draws noise for itself.
        own = [_with_own_noise(network) for network in networks.values()] if settings.noisy else [*networks.values()]
        self._settings, self._networks = settings, own
        self._policy = NetworkPolicy(*own)

    def _pick(
        self, observations: npt.NDArray[np.float32], masks: npt.NDArray[np.bool_], generator: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        if self._settings.noisy:
            noise = torch.Generator().manual_seed(int(generator.integers(2**62)))
            for network in self._networks:
                assert isinstance(network, QNetwork)
                network.draw_noise(noise)
        greedy = self._policy.choose(observations, masks)
        return mix_random(greedy, masks, epsilons(self._settings, self.steps, len(greedy)), generator)


def _with_own_noise(network: PolicyNetwork) -> PolicyNetwork:
    """The same weights and the same scale of inputs, with other noise."""
    assert isinstance(network, QNetwork)
    own = copy.deepcopy(network)
    for mine, shared in zip(own.parameters(), network.parameters(), strict=True):
        mine.data = shared.data
    own.normalizer = network.normalizer
    return own


ALGORITHM = QLearning()
