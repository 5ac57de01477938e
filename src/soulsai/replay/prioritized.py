"""Rows that surprised the network come up more often (Schaul et al. 2016, proportional variant)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsai.errors import RunError
from soulsai.replay.sampler import saved_array
from soulsai.replay.store import Batch, Int64s, check_shape
from soulsai.replay.sum_tree import ROOT, fill_leaves, find_leaves, make_tree, rebuild, set_leaf
from soulsgym.compiling import njit
from soulsgym.errors import MisuseError


@njit(cache=True)
def _sample(tree: Any, uniforms: Any, size: int, beta: float, slots: Any, weights: Any) -> None:
    """One row from each of as many equal parts of the total; rare rows weigh more, the rarest of the batch 1."""
    total, room, count = tree[ROOT], len(tree) // 2, len(slots)
    find_leaves(tree, (np.arange(count) + uniforms) / count * total, slots)
    raw = (size * (tree[room:][slots] / total)) ** -beta
    weights[:] = raw / raw.max()


@njit(cache=True)
def _first_wrong(slots: Any, td_abs: Any, size: int) -> int:
    """The position of the first slot without a row, or error that is no number, or -1."""
    for i in range(len(slots)):
        if slots[i] < 0 or slots[i] >= size or not 0.0 <= td_abs[i] < np.inf:
            return i
    return -1


@njit(cache=True)
def _update(tree: Any, slots: Any, td_abs: Any, eps: float, alpha: float, largest: float) -> float:
    """Write the new priorities; gives the largest there ever was."""
    for i in range(len(slots)):
        priority = (td_abs[i] + eps) ** alpha
        set_leaf(tree, slots[i], priority)
        largest = max(largest, priority)
    return largest


class PrioritizedSampler:
    """Draws rows in proportion to (|error| + eps)^alpha; a new row counts as the largest there ever was."""

    def __init__(self, capacity: int, alpha: float, eps: float = 1e-6) -> None:
        if eps <= 0.0 or alpha < 0.0:
            raise MisuseError(f"eps={eps}, alpha={alpha} make rows that never come up; take eps > 0 and alpha >= 0")
        self._capacity, self._alpha, self._eps = capacity, alpha, eps
        self._tree = make_tree(capacity)
        self._priorities = self._tree[len(self._tree) // 2 :][:capacity]
        self._size, self._largest = 0, 1.0

    def add(self, slots: Int64s) -> None:
        """New rows lie in these slots, which are filled from 0 on."""
        if len(slots) == 0:
            return
        low, high = int(slots.min()), int(slots.max())
        if low < 0 or high >= self._capacity:
            raise MisuseError(f"slots {low} to {high} are not all among the {self._capacity} of the sampler")
        fill_leaves(self._tree, slots, self._largest)
        self._size = max(self._size, high + 1)

    def compact(self, slots: Int64s) -> None:
        """The rows of these slots lie in the first ones now, and there are no others."""
        self._priorities[: len(slots)] = self._priorities[slots]
        self._priorities[len(slots) :] = 0.0
        rebuild(self._tree)
        self._size = len(slots)

    def sample(self, batch: Batch, generator: np.random.Generator, beta: float) -> None:
        """Fill the slots and the importance weights of the batch."""
        if self._size == 0:
            raise MisuseError("the replay store is empty; add rows before sampling")
        uniforms = generator.random(len(batch))
        _sample(self._tree, uniforms, self._size, float(beta), batch.slots, batch.weights)

    def update(self, slots: Int64s, td_abs: npt.NDArray[np.floating[Any]]) -> None:
        """Set the priorities of rows by their errors; of a slot given twice, the last counts."""
        check_shape("td_abs", td_abs, slots.shape)
        errors = np.ascontiguousarray(td_abs, np.float64)
        wrong = _first_wrong(slots, errors, self._size)
        if wrong >= 0:
            raise MisuseError(
                f"slot {slots[wrong]} with an error of {errors[wrong]} cannot have a priority; "
                f"slots run from 0 to {self._size - 1}, errors are finite and not negative"
            )
        self._largest = _update(self._tree, slots, errors, self._eps, self._alpha, self._largest)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """The priorities of all slots, 0 where no row is, and the largest there ever was."""
        return {"priorities": self._priorities.copy(), "largest": np.array([self._largest])}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from a saved state."""
        priorities = saved_array(state, "priorities", self._priorities)
        largest = saved_array(state, "largest", np.zeros(1))
        size = int(np.count_nonzero(priorities))
        if not (np.isfinite(priorities).all() and (priorities[:size] > 0.0).all() and 0.0 < largest[0] < np.inf):
            raise RunError("the saved replay 'priorities' are damaged; resume from an earlier checkpoint")
        self._priorities[:] = priorities
        rebuild(self._tree)
        self._size, self._largest = size, float(largest[0])

    @property
    def total(self) -> float:
        """The sum of all priorities."""
        return float(self._tree[ROOT])

    @property
    def mean(self) -> float:
        """The mean of all priorities; 0 without rows."""
        return self.total / self._size if self._size else 0.0

    @property
    def largest(self) -> float:
        """The largest priority there ever was: that of a new row."""
        return self._largest
