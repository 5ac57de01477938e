"""Off-policy acting: transitions for a replay."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsai.acting.actor import Actor
from soulsai.acting.world import World
from soulsai.experience import Chunk, Schema
from soulsai.replay.n_step import NStepAccumulator
from soulsai.telemetry.clock import LoopClock
from soulsgym.batch import State, restore_generator, state_of_generator

Choose = Callable[[npt.NDArray[np.float32], npt.NDArray[np.bool_], np.random.Generator], npt.NDArray[np.int64]]
"""From observations and open actions to actions; all its randomness comes from the generator."""


class TransitionActor(Actor):
    """Plays one decision at a time in every episode and sums up `n_step` of them."""

    def __init__(
        self,
        world: World,
        schema: Schema,
        choose: Choose,
        *,
        n_step: int,
        gamma: float,
        masks: bool,
        seed: Sequence[int],
        clock: LoopClock | None = None,
    ) -> None:
        super().__init__(world, clock)
        self.choose = choose
        self._generator = np.random.default_rng(list(seed))
        self._pending = NStepAccumulator(world.number, n_step, gamma, schema)
        self._use_masks, self._open = masks, world.masks if masks else np.ones_like(world.masks)
        self._before = np.empty_like(world.observations)

    def play(self) -> Chunk:
        """One decision of every episode."""
        world = self.world
        with self.clock.phase("act"):
            actions = self.choose(world.observations, self._open, self._generator)
        self._before[:] = world.observations
        with self.clock.phase("simulate"):
            step = world.step(actions)
        with self.clock.phase("store"):
            ended = step.ended[:, None]
            following = np.where(ended, step.final_observations, world.observations)
            masks = np.where(ended, step.final_masks, self._open) if self._use_masks else self._open
            self.running.add(step)
            rows = self._pending.push(
                self._before, actions, step.rewards, step.steps, step.terminated, step.truncated, following, masks
            )
            return Chunk(rows, self.running.take(), int(step.steps.sum()))

    def own_state(self) -> State:
        """Transitions that wait for later steps, and randomness."""
        return self._pending.state() | {"generator": state_of_generator(self._generator)}

    def restore_own(self, state: Mapping[str, npt.NDArray[Any]], *, same_episodes: bool) -> None:
        """Go on from a state; what waits belongs to the episodes it was played in."""
        restore_generator(self._generator, state["generator"])
        if same_episodes:
            self._pending.restore(state)
