"""Steps of a worker, kept until they are sent as one chunk. Every observation is in it once."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsai.acting.ended import Ended
from soulsai.replay import NStepAccumulator, Transitions
from soulsai.replay.transitions import Flags, Float32s, Int64s
from soulsai.transport.experience import TransitionChunk

NUMBERS = 1 << 23
"""Numbers of observations begin again after so many: small enough to be exact as float32, far more than in a chunk."""


class PooledTransitions:
    """Sums up `n_step` decisions as the accumulator of one process does, but of the numbers of observations.

    What follows a step is, unless the episode ended, what the next step begins with: it is stored once.
    """

    def __init__(self, n_envs: int, n_step: int, gamma: float, observation_size: int, num_actions: int) -> None:
        self._accumulator = NStepAccumulator(n_envs, n_step, gamma, 1, num_actions)
        self._n_step = n_step
        self._lanes = np.arange(n_envs)
        self._pushes: deque[list[Float32s]] = deque()  # observations of each push: all, then the last of ended episodes
        self._ready: list[Transitions] = []
        self._first = self._next = 0  # numbers of the first observation kept and of the next one
        self._following: Float32s = np.zeros((0, observation_size), np.float32)
        self.rows = 0
        """Transitions that are ready."""

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
        """Take in one step of every environment; gives the new rows with numbers in the place of observations."""
        ended = np.flatnonzero(terminated | truncated)
        last = final_or_next_observations[ended]
        begin, end = self._next, self._next + len(observations)
        following = end + len(ended) + self._lanes
        following[ended] = end + np.arange(len(ended))
        self._pushes.append([observations.copy(), last])
        rows = self._accumulator.push(
            _numbered(begin + self._lanes),
            actions,
            rewards,
            steps,
            terminated,
            truncated,
            _numbered(following),
            final_or_next_masks,
        )
        self._next = (end + len(ended)) % NUMBERS
        self._following = final_or_next_observations
        columns: list[Any] = [np.array(column) for column in rows]  # the accumulator uses its own again
        kept = Transitions(*columns)
        self._ready.append(kept)
        self.rows += len(kept.actions)
        return kept

    def take(self, ended: Ended, steps: int) -> TransitionChunk:
        """The chunk of all rows that are ready; what waits for later steps stays."""
        columns = [np.concatenate(column) for column in zip(*self._ready, strict=True)]
        first, actions, rewards, discounts, following, masks = columns
        pool = np.concatenate([block for push in self._pushes for block in push] + [self._following])
        chunk = TransitionChunk(
            pool=pool,
            first=self._places(first),
            following=self._places(following),
            actions=actions,
            rewards=rewards,
            discounts=discounts,
            next_masks=masks,
            ended=ended,
            steps=steps,
        )
        while len(self._pushes) >= self._n_step:  # of the last n_step - 1 some rows may still wait
            self._first = (self._first + sum(map(len, self._pushes.popleft()))) % NUMBERS
        self._ready, self.rows = [], 0
        return chunk

    def _places(self, numbers: Float32s) -> npt.NDArray[np.int32]:
        return ((numbers[:, 0].astype(np.int64) - self._first) % NUMBERS).astype(np.int32)


def _numbered(numbers: npt.NDArray[np.int64]) -> Float32s:
    return (numbers % NUMBERS).astype(np.float32)[:, None]
