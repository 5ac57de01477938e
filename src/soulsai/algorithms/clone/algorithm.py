"""Behaviour cloning as an algorithm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy.typing as npt

from soulsai.acting.actor import Actor
from soulsai.acting.world import World, sizes_of
from soulsai.algorithms.actor_critic import ActorCriticAlgorithm
from soulsai.algorithms.algorithm import LightNetworks, Networks
from soulsai.algorithms.clone.config import CloneConfig
from soulsai.algorithms.findings import Finding, Sample, UselessSettings, rate_findings
from soulsai.config.schema import Config
from soulsai.experience import Chunk, Ended, Schema
from soulsai.telemetry.clock import LoopClock
from soulsgym.batch import State


class Cloning(ActorCriticAlgorithm):
    """Supervised learning of what was played: no fight is fought but those of evaluations."""

    name = "clone"
    can_have_workers = False

    def actor(
        self,
        config: Config,
        world: World,
        networks: Networks | LightNetworks,
        seed: Sequence[int],
        clock: LoopClock | None = None,
    ) -> Actor:
        """Plays nothing."""
        schema = self.schema(config, sizes_of(world))
        return IdleActor(world, schema, config.section(CloneConfig).batch, clock)

    def gamma(self, config: Config) -> float:
        """Rewards are not looked at."""
        return 1.0

    def rows_of_update(self, config: Config) -> int:
        """A batch."""
        return config.section(CloneConfig).batch

    def findings(self, config: Config, sample: Sample) -> Iterator[Finding]:
        """Odd learning rates."""
        yield from rate_findings("clone.learning_rate", config.section(CloneConfig).learning_rate)

    def useless(self, config: Config) -> Iterator[UselessSettings]:
        """What only those use that play, too."""
        keys = ("share", "final_share", "share_steps", "margin", "margin_weight")
        yield UselessSettings(True, tuple(f"demos.{key}" for key in keys), "cloning learns from demonstrations alone")


class IdleActor(Actor):
    """Lets the loop go on, by as many steps as a batch has decisions, without playing."""

    def __init__(self, world: World, schema: Schema, steps: int, clock: LoopClock | None) -> None:
        super().__init__(world, clock)
        self._chunk = Chunk(schema.empty(0), Ended.join([], schema.terms), steps)

    def play(self) -> Chunk:
        """Nothing."""
        return self._chunk

    def own_state(self) -> State:
        """Nothing is remembered."""
        return {}

    def restore_own(self, state: Mapping[str, npt.NDArray[Any]], *, same_episodes: bool) -> None:
        """Nothing is remembered."""


ALGORITHM = Cloning()
