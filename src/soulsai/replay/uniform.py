"""Every row as likely as any other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsai.replay.store import Batch, TransitionStore
from soulsai.replay.transitions import Int64s
from soulsgym.errors import MisuseError


class UniformSampler:
    """Draws rows of a store evenly, with replacement; all weigh 1."""

    def __init__(self, store: TransitionStore) -> None:
        self._store = store

    def added(self, slots: Int64s) -> None:
        """Nothing to do: the store knows how many rows it holds."""

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
