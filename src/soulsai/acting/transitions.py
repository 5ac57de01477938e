"""Off-policy acting: transitions for the Q-learner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from soulsai.acting.episodes import Follower
from soulsai.acting.explorer import explored
from soulsai.acting.world import World
from soulsai.replay import Transitions
from soulsai.replay.transitions import Flags, Float32s, Int64s

Values = Callable[[torch.Tensor], torch.Tensor]
"""From observations to the value of every action."""


class Accumulator(Protocol):
    """Sums up steps to transitions."""

    def push(
        self,
        observations: Float32s,
        actions: Int64s,
        rewards: Float32s,
        steps: npt.NDArray[np.int32],
        terminated: Flags,
        truncated: Flags,
        final_or_next_observations: Float32s,
        final_or_next_masks: Flags,
    ) -> Transitions:
        """Take in one step of every environment; gives the rows that are ready."""


class TransitionActor:
    """Plays one decision at a time in every episode and sums up `n_step` of them."""

    def __init__(
        self,
        world: World,
        values: Values,
        accumulator: Accumulator,
        *,
        masks: bool,
        generator: np.random.Generator,
        episodes: Follower,
        device: torch.device,
    ) -> None:
        self.world, self.accumulator = world, accumulator
        self._values, self._generator, self._episodes, self._device = values, generator, episodes, device
        self._open = world.masks if masks else np.ones_like(world.masks)
        self._use_masks = masks
        self._before = np.empty_like(world.observations)

    @torch.no_grad()
    def choose(self, shares: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """The next action of every episode, a share of them random."""
        values = self._values(torch.from_numpy(self.world.observations).to(self._device)).cpu().numpy()
        greedy = np.where(self._open, values, -np.inf).argmax(axis=1)
        return explored(greedy, self._open, shares, self._generator)

    def play(self, actions: npt.NDArray[np.int64]) -> tuple[Transitions, int]:
        """Play the actions; the transitions that are complete, and how many environment steps passed."""
        self._before[:] = self.world.observations
        step = self.world.step(actions)
        ended = step.ended[:, None]
        following = np.where(ended, step.final_observations, self.world.observations)
        masks = np.where(ended, step.final_masks, self._open) if self._use_masks else self._open
        self._episodes.add(step)
        rows = self.accumulator.push(
            self._before, actions, step.rewards, step.steps, step.terminated, step.truncated, following, masks
        )
        return rows, int(step.steps.sum())
