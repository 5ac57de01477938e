"""The protocol of what an actor acts in: many episodes at once, begun anew when they end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from soulsgym.envs.encoded import State, Step


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
        """Play on in all of them; those that end begin anew."""

    def state(self) -> State:
        """What decides how they go on; empty if that cannot be told."""

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to a state."""

    def close(self) -> None:
        """Release what it holds."""
