"""What an actor acts in: many episodes at once, begun again when they end."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from soulsai.experience import Sizes
from soulsgym.batch import FightBatch, State, Step

TRAINING_SEEDS = 0x7261_696E
"""Beside the user's seed: training draws its fights from another stream than evaluation does."""


class World(Protocol):
    """`number` episodes side by side; `observations` and `masks` show how they stand."""

    number: int
    observation_size: int
    num_actions: int
    term_names: tuple[str, ...]
    observations: npt.NDArray[np.float32]
    masks: npt.NDArray[np.bool_]

    def reset(self, seed: int) -> None:
        """Begin all episodes."""

    def step(self, actions: npt.NDArray[np.int64]) -> Step:
        """Play on in all of them; those that end begin again."""

    def state(self) -> State:
        """What decides how they go on; empty if that cannot be told."""

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to a state."""

    def close(self) -> None:
        """Release what it holds."""


def sizes_of(world: World) -> Sizes:
    """The sizes of what is seen and done in a world."""
    return Sizes(world.observation_size, world.num_actions, len(world.term_names), world.number)


class FightWorld:
    """The fights of a batch. Those of a running game are not `resumable`: going on means new fights."""

    def __init__(self, batch: FightBatch, *, resumable: bool = True) -> None:
        self.batch, self._resumable = batch, resumable
        self.number, self.observation_size = batch.number, batch.observation_size
        self.num_actions, self.term_names = batch.num_actions, batch.term_names
        self.observations, self.masks = batch.observations, batch.masks
        self._rewards = np.zeros(batch.number, np.float32)

    def reset(self, seed: int) -> None:
        """Begin all fights; the same seed leads to the same fights."""
        fights, starts = np.random.SeedSequence([seed, TRAINING_SEEDS]).spawn(2)
        seeds = fights.generate_state(self.number, np.uint64).astype(np.uint64)
        if self.batch.population is not None:
            engine: Any = self.batch.engine
            self.batch.population.reset(seed, partial(engine.replace, all_begin=True))
        self.batch.begin(seeds=seeds, generator=np.random.default_rng(starts))

    def step(self, actions: npt.NDArray[np.int64]) -> Step:
        """Play on in all fights; those that end begin again at once."""
        step = self.batch.step(actions)
        self._rewards[:] = step.rewards
        return dataclasses.replace(step, rewards=self._rewards)

    def state(self) -> State:
        """Everything that decides how the fights go on; nothing if they cannot be resumed."""
        return self.batch.state() if self._resumable else {}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to a state of the same number of fights."""
        self.batch.restore(state)

    def close(self) -> None:
        """Release the engine."""
        self.batch.close()
