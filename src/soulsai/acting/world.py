"""What an actor acts in: many episodes at once, begun again when they end."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
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


class JointWorld:
    """The episodes of several worlds side by side, such as fights with several bosses, all seen and played alike."""

    def __init__(self, worlds: Sequence[World]) -> None:
        first = worlds[0]
        self.worlds = tuple(worlds)
        self.observation_size, self.num_actions, self.term_names = (
            first.observation_size, first.num_actions, first.term_names,
        )  # fmt: skip
        ends = np.cumsum([world.number for world in worlds]).tolist()
        self.number: int = ends[-1]
        self._rows = [slice(end - world.number, end) for world, end in zip(worlds, ends, strict=True)]
        self.observations = np.zeros((self.number, self.observation_size), np.float32)
        self.masks = np.ones((self.number, self.num_actions), np.bool_)
        self._step = Step.of_size(self.number, self.observation_size, self.num_actions, len(self.term_names))
        self._bytes = {name: _bytes_of(array) for name, array in vars(self._step).items()}

    def reset(self, seed: int) -> None:
        """Begin all episodes, those of each world with a seed of its own."""
        for number, world in enumerate(self.worlds):
            world.reset(seed_of(seed, number))
        self._look()

    def step(self, actions: npt.NDArray[np.int64]) -> Step:
        """Play on in all of them; those that end begin again."""
        for world, rows in zip(self.worlds, self._rows, strict=True):
            for name, array in vars(world.step(actions[rows])).items():
                self._bytes[name][rows] = _bytes_of(array)
        self._look()
        return self._step

    def state(self) -> State:
        """What decides how they go on."""
        return {
            f"{number}.{key}": array for number, world in enumerate(self.worlds) for key, array in world.state().items()
        }

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to a state."""
        for number, world in enumerate(self.worlds):
            start = f"{number}."
            world.restore({key.removeprefix(start): state[key] for key in state if key.startswith(start)})
        self._look()

    def close(self) -> None:
        """Release what the worlds hold."""
        for world in self.worlds:
            world.close()

    def _look(self) -> None:
        for world, rows in zip(self.worlds, self._rows, strict=True):
            self.observations[rows], self.masks[rows] = world.observations, world.masks


def _bytes_of(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """As plain bytes, a row for each episode: NumPy copies records field by field, ten times slower."""
    return np.ascontiguousarray(array).view(np.uint8).reshape(len(array), -1)


def seed_of(seed: int, number: int) -> int:
    """The seed of one of several worlds; the first has the seed as it is."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0] >> 1) if number else seed
