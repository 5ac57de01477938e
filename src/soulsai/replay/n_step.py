"""Steps of many environments, summed up to transitions over n decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsai.errors import RunError
from soulsai.experience import ACTION, MASK, NUMBER, OBSERVATION, SHARE, Array, Column, Schema
from soulsai.replay.sampler import saved_array
from soulsai.replay.store import Float32s, Int64s, check_shape
from soulsgym.compiling import njit
from soulsgym.errors import MisuseError

Flags = npt.NDArray[np.bool_]

TRANSITION: dict[str, Column] = {
    "observations": OBSERVATION,
    "actions": ACTION,
    "rewards": NUMBER,
    "discounts": SHARE,
    "next_observations": OBSERVATION,
    "next_masks": MASK,
}
"""What was seen, done and got, and what a bootstrap needs: its discount is 0 after a real end."""
STEP = {
    "observations": np.float32,
    "actions": np.int64,
    "rewards": np.float32,
    "steps": np.int32,
    "terminated": np.bool_,
    "truncated": np.bool_,
    "final_or_next_observations": np.float32,
    "final_or_next_masks": np.bool_,
}
"""What a push takes in, in the types the kernels are compiled for."""


@njit(cache=True)
def _discounts_into(gamma: float, steps: Any, terminated: Any, out: Any) -> None:
    for env in range(len(out)):
        out[env] = 0.0 if terminated[env] else gamma ** steps[env]


@njit(cache=True)
def _advance(gamma: float, rewards: Any, steps: Any, terminated: Any, truncated: Any,
             returns: Any, discounts: Any, first: Any, counts: Any,
             newest: Any, ready_rows: Any, ready_envs: Any, ready_discounts: Any) -> int:  # fmt: skip
    """Add a step of every environment to what waits; notes the places of the new rows and of those that are ready."""
    n_step, ready = returns.shape[1], 0
    for env in range(len(counts)):
        place = (first[env] + counts[env]) % n_step
        newest[env] = env * n_step + place
        returns[env, place], discounts[env, place] = 0.0, 1.0
        counts[env] += 1
        passed = gamma ** steps[env]
        for waiting in range(counts[env]):
            place = (first[env] + waiting) % n_step
            returns[env, place] += discounts[env, place] * rewards[env]
            discounts[env, place] *= passed
        # Whoever waits at an end gets a shorter row: no later step belongs to this episode.
        due = counts[env] if terminated[env] or truncated[env] else counts[env] // n_step
        for _ in range(due):
            place = first[env]
            ready_rows[ready], ready_envs[ready] = env * n_step + place, env
            ready_discounts[ready] = 0.0 if terminated[env] else discounts[env, place]
            first[env] = (place + 1) % n_step
            ready += 1
        counts[env] -= due
    return ready


class NStepAccumulator:
    """Turns steps into rows of up to `n_step` decisions, each discounted by the environment steps it took."""

    def __init__(self, n_envs: int, n_step: int, gamma: float, schema: Schema) -> None:
        if n_envs < 1 or n_step < 1:
            raise MisuseError(f"n_envs={n_envs}, n_step={n_step} leave nothing to sum up; both are at least 1")
        self._n_step, self._gamma = n_step, float(gamma)
        seen, opened = (n_envs, schema.observation_size), (n_envs, schema.num_actions)
        self._shapes = (seen, *[(n_envs,)] * 5, seen, opened)
        self._discounts = np.zeros(n_envs * n_step, np.float32)
        self._newest, self._ready_rows, self._ready_envs = (
            np.zeros(count, np.int64) for count in (n_envs, n_envs * n_step, n_envs * n_step)
        )
        # What waits for later steps, in a ring of n_step places for each environment; a single step never waits.
        waiting = (n_envs, n_step) if n_step > 1 else (0, 1)
        self._pending: dict[str, npt.NDArray[Any]] = {
            "observations": np.zeros((*waiting, schema.observation_size), np.float32),
            "actions": np.zeros(waiting, np.int64),
            "returns": np.zeros(waiting),
            "discounts": np.zeros(waiting),
            "first": np.zeros(waiting[0], np.int64),
            "counts": np.zeros(waiting[0], np.int64),
        }

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
    ) -> dict[str, Array]:
        """Take in one step of every environment; gives the rows that are ready, which last until the next push.

        Of an environment whose episode ended, the next observation and mask are the last ones of that episode. Single
        steps are passed on: their rows are the given arrays.
        """
        given = (observations, actions, rewards, steps, terminated, truncated)
        step = self._convert((*given, final_or_next_observations, final_or_next_masks))
        return self._single(*step) if self._n_step == 1 else self._several(*step)

    def _convert(self, step: tuple[npt.NDArray[Any], ...]) -> tuple[npt.NDArray[Any], ...]:
        for name, array, shape in zip(STEP, step, self._shapes, strict=True):
            check_shape(name, array, shape)
        return tuple(np.ascontiguousarray(array, kind) for array, kind in zip(step, STEP.values(), strict=True))

    def _single(self, *step: npt.NDArray[Any]) -> dict[str, Array]:
        observations, actions, rewards, steps, terminated, _, next_observations, next_masks = step
        _discounts_into(self._gamma, steps, terminated, self._discounts)
        columns = (observations, actions, rewards, self._discounts, next_observations, next_masks)
        return dict(zip(TRANSITION, columns, strict=True))

    def _several(self, *step: npt.NDArray[Any]) -> dict[str, Array]:
        seen, chosen, rewards, steps, terminated, truncated, next_observations, next_masks = step
        observations, actions, returns, discounts, first, counts = self._pending.values()
        ready = _advance(self._gamma, rewards, steps, terminated, truncated, returns, discounts, first, counts,
                         self._newest, self._ready_rows, self._ready_envs, self._discounts)  # fmt: skip
        observations, actions = observations.reshape(-1, seen.shape[1]), actions.reshape(-1)
        observations[self._newest], actions[self._newest] = seen, chosen
        rows, envs = self._ready_rows[:ready], self._ready_envs[:ready]
        columns = (
            observations[rows],
            actions[rows],
            returns.reshape(-1)[rows].astype(np.float32),
            self._discounts[:ready],
            next_observations[envs],
            next_masks[envs],
        )
        return dict(zip(TRANSITION, columns, strict=True))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Copies of what waits for later steps."""
        return {name: array.copy() for name, array in self._pending.items()}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from a saved state."""
        arrays = {name: saved_array(state, name, array) for name, array in self._pending.items()}
        if any(((arrays[name] < 0) | (arrays[name] >= self._n_step)).any() for name in ("first", "counts")):
            raise RunError("the saved replay 'counts' are damaged; resume from an earlier checkpoint")
        for name, array in arrays.items():
            self._pending[name][:] = array
