"""The simplest sampler, and what samplers read of a saved state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsai.errors import RunError
from soulsai.replay.store import Batch, Int64s, ReplayStore
from soulsgym.errors import MisuseError


class UniformSampler:
    """Draws rows of a store evenly, with replacement; all weigh 1."""

    def __init__(self, store: ReplayStore) -> None:
        self._store = store

    def add(self, slots: Int64s) -> None:
        """Nothing to do: the store knows how many rows it holds."""

    def compact(self, slots: Int64s) -> None:
        """Nothing to do, either."""

    def sample(self, batch: Batch, generator: np.random.Generator, beta: float = 0.0) -> None:
        """Fill the slots and weights of the batch; beta has nothing to correct."""
        if len(self._store) == 0:
            raise MisuseError("the replay store is empty; add rows before sampling")
        batch.slots[:] = generator.integers(0, len(self._store), len(batch))
        batch.weights.fill(1.0)

    def update(self, slots: Int64s, td_abs: npt.NDArray[np.floating[Any]]) -> None:
        """Nothing to do: errors do not change how likely a row is."""

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Nothing is remembered."""
        return {}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Nothing is remembered."""


def saved_array(state: Mapping[str, npt.NDArray[Any]], name: str, like: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array of a saved state, if it fits the one it is to replace."""
    if name not in state:
        raise RunError(f"the saved replay state has no {name!r}; resume with the settings it was saved with")
    array = state[name]
    if array.shape != like.shape or array.dtype != like.dtype:
        raise RunError(
            f"the saved replay {name!r} are {array.dtype} {array.shape}, but this run needs {like.dtype} {like.shape}; "
            "resume with the settings it was saved with"
        )
    return array
