"""Steps of many environments, summed up to transitions over n decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsai.errors import RunError
from soulsai.replay.sampler import saved
from soulsai.replay.transitions import (
    Flags,
    Float32s,
    Int64s,
    Transitions,
    check_shape,
    copy_numbers,
    copy_rows,
    make_columns,
)
from soulsgym.compiling import njit
from soulsgym.errors import MisuseError

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


@njit(cache=True, nogil=True)
def _discounts_into(gamma: float, steps: Any, terminated: Any, out: Any) -> None:
    for env in range(len(out)):
        out[env] = 0.0 if terminated[env] else gamma ** steps[env]


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _remember(newest: Any, seen: Any, chosen: Any, observations: Any, actions: Any) -> None:
    """Keep what was seen and done at the places of the new rows."""
    for env in range(len(newest)):
        row = newest[env]
        actions[row] = chosen[env]
        for i in range(seen.shape[1]):
            observations[row, i] = seen[env, i]


@njit(cache=True, nogil=True)
def _emit(rows: Any, envs: Any, observations: Any, actions: Any, returns: Any, next_observations: Any, next_masks: Any,
          to_o: Any, to_a: Any, to_r: Any, to_o1: Any, to_m1: Any) -> None:  # fmt: skip
    """Copy the rows that are ready, with the end of this step as the state they lead to."""
    copy_rows(observations, rows, to_o)
    copy_numbers(actions, rows, to_a)
    copy_numbers(returns, rows, to_r)
    copy_rows(next_observations, envs, to_o1)
    copy_rows(next_masks, envs, to_m1)


class NStepAccumulator:
    """Turns steps into rows of up to `n_step` decisions, each discounted by the environment steps it took."""

    def __init__(self, n_envs: int, n_step: int, gamma: float, observation_size: int, num_actions: int) -> None:
        if n_envs < 1 or n_step < 1:
            raise MisuseError(f"n_envs={n_envs}, n_step={n_step} leave nothing to sum up; both are at least 1")
        self._n_step, self._gamma = n_step, float(gamma)
        self._shapes = ((n_envs, observation_size), *[(n_envs,)] * 5, (n_envs, observation_size), (n_envs, num_actions))
        self._out = make_columns(n_envs * n_step, observation_size, num_actions)
        self._newest, self._ready_rows, self._ready_envs = (
            np.zeros(count, np.int64) for count in (n_envs, n_envs * n_step, n_envs * n_step)
        )
        # What waits for later steps, in a ring of n_step places for each environment; a single step never waits.
        waiting = (n_envs, n_step) if n_step > 1 else (0, 1)
        self._pending: dict[str, npt.NDArray[Any]] = {
            "observations": np.zeros((*waiting, observation_size), np.float32),
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
    ) -> Transitions:
        """Take in one step of every environment; gives the rows that are ready, which last until the next push.

        Of an environment whose episode ended, the next observation and mask are the last ones of that episode. Single
        steps are passed on: their rows are the given arrays.
        """
        given = (observations, actions, rewards, steps, terminated, truncated)
        step = self._checked((*given, final_or_next_observations, final_or_next_masks))
        return self._single(*step) if self._n_step == 1 else self._several(*step)

    def _checked(self, step: tuple[npt.NDArray[Any], ...]) -> tuple[npt.NDArray[Any], ...]:
        for name, array, shape in zip(STEP, step, self._shapes, strict=True):
            check_shape(name, array, shape)
        return tuple(np.ascontiguousarray(array, kind) for array, kind in zip(step, STEP.values(), strict=True))

    def _single(self, *step: npt.NDArray[Any]) -> Transitions:
        observations, actions, rewards, steps, terminated, _, next_observations, next_masks = step
        _discounts_into(self._gamma, steps, terminated, self._out.discounts)
        return Transitions(observations, actions, rewards, self._out.discounts, next_observations, next_masks)

    def _several(self, *step: npt.NDArray[Any]) -> Transitions:
        seen, chosen, rewards, steps, terminated, truncated, next_observations, next_masks = step
        observations, actions, returns, discounts, first, counts = self._pending.values()
        ready = _advance(self._gamma, rewards, steps, terminated, truncated, returns, discounts, first, counts,
                         self._newest, self._ready_rows, self._ready_envs, self._out.discounts)  # fmt: skip
        flat = observations.reshape(-1, seen.shape[1]), actions.reshape(-1)
        _remember(self._newest, seen, chosen, *flat)
        out = self._out
        _emit(self._ready_rows[:ready], self._ready_envs[:ready],
              *flat, returns.reshape(-1), next_observations, next_masks,
              out.observations, out.actions, out.rewards, out.next_observations, out.next_masks)  # fmt: skip
        rows: list[Any] = [column[:ready] for column in out]
        return Transitions(*rows)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Copies of what waits for later steps."""
        return {name: array.copy() for name, array in self._pending.items()}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from a saved state."""
        arrays = {name: saved(state, name, array) for name, array in self._pending.items()}
        if any(((arrays[name] < 0) | (arrays[name] >= self._n_step)).any() for name in ("first", "counts")):
            raise RunError("the saved replay 'counts' are damaged; resume from an earlier checkpoint")
        for name, array in arrays.items():
            self._pending[name][:] = array
