"""SAC as an algorithm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from soulsai.acting.actor import Actor
from soulsai.acting.network import ActingNetwork, Actions, Flags, Floats, acting_network, draw_open
from soulsai.acting.transitions import Choose, TransitionActor
from soulsai.acting.world import World, sizes_of
from soulsai.algorithms.actor_critic import ActorCriticAlgorithm
from soulsai.algorithms.algorithm import LightNetworks, Networks
from soulsai.algorithms.findings import Finding, Sample, UselessSettings, rate_findings
from soulsai.algorithms.sac.config import SACConfig
from soulsai.config.schema import Config
from soulsai.telemetry.clock import LoopClock


class SAC(ActorCriticAlgorithm):
    """Soft actor-critic (Haarnoja et al. 2018) for discrete actions (Christodoulou 2019), with masks."""

    name = "sac"

    def actor(
        self,
        config: Config,
        world: World,
        networks: Networks | LightNetworks,
        seed: Sequence[int],
        clock: LoopClock | None = None,
    ) -> Actor:
        """Plays by the probabilities of the policy."""
        sac = config.section(SACConfig)
        return TransitionActor(
            world,
            self.schema(config, sizes_of(world)),
            _draw_from(acting_network(networks["network"])),
            n_step=sac.n_step,
            gamma=sac.gamma,
            masks=config.actions.masks,
            seed=seed,
            clock=clock,
        )

    def findings(self, config: Config, sample: Sample) -> Iterator[Finding]:
        """Odd learning rates, and a warm-up that never ends."""
        sac = config.section(SACConfig)
        yield from rate_findings("sac.learning_rate", sac.learning_rate)
        if sac.warmup_steps >= config.run.steps:
            yield Finding(
                "warmup-too-long",
                f"sac.warmup_steps = {sac.warmup_steps} is as long as the run of {config.run.steps} steps: nothing "
                "will be learned; lower it or raise run.steps",
            )

    def useless(self, config: Config) -> Iterator[UselessSettings]:
        """Settings that others make useless."""
        unused = ("replay.alpha", "replay.beta", "replay.final_beta")
        yield UselessSettings(not config.replay.prioritized, unused, "replay.prioritized is false")


def _draw_from(network: ActingNetwork) -> Choose:
    def draw(observations: Floats, masks: Flags, generator: np.random.Generator) -> Actions:
        logits = network.scores(observations)
        return draw_open(logits, masks, generator.random(logits.shape, np.float32))

    return draw


ALGORITHM = SAC()
