"""What the learner asks of a sampler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from soulsai.errors import RunError
from soulsai.replay.store import Batch
from soulsai.replay.transitions import Int64s


class Sampler(Protocol):
    """Chooses the rows of a batch."""

    def added(self, slots: Int64s) -> None:
        """New rows lie in these slots."""
        ...

    def sample(self, batch: Batch, generator: np.random.Generator, beta: float) -> None:
        """Fill the slots and the importance weights of the batch."""
        ...

    def update(self, slots: Int64s, td_abs: npt.NDArray[np.floating[Any]]) -> None:
        """The rows of these slots were learned from, with these errors."""
        ...

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Copies of everything remembered between calls."""
        ...

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from a saved state."""
        ...


def saved(state: Mapping[str, npt.NDArray[Any]], name: str, like: npt.NDArray[Any]) -> npt.NDArray[Any]:
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
