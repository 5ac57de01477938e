"""The protocol of starts, and whole fights: from the standard place, or from anywhere around the arena."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from soulsgym.engine import standard_starts

Flags = npt.NDArray[np.bool_]
State = dict[str, npt.NDArray[Any]]
"""What a part remembers between calls, as arrays by name."""


class Starts(Protocol):
    """Draws starts for `n` fights, and may learn from how they went."""

    @property
    def is_standard(self) -> Flags:
        """Fights whose last start was the whole fight, from wherever the player stands."""

    def draw(self, mask: Flags, generator: np.random.Generator) -> npt.NDArray[Any]:
        """Starts for the fights of `mask`, valid until the next draw; the other rows mean nothing."""

    def report(self, ended: Flags, won: Flags) -> None:
        """Hear of fights that ended before they begin again."""

    def state(self) -> State:
        """Copies of everything remembered between calls."""

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to what `state` gave."""


class StandardStarts:
    """Everything as the environment was made for."""

    def __init__(self, n: int) -> None:
        self._starts = standard_starts(n)

    @property
    def is_standard(self) -> Flags:
        """All of them."""
        return np.ones(len(self._starts), np.bool_)

    def draw(self, mask: Flags, generator: np.random.Generator) -> npt.NDArray[Any]:
        """The same start for every fight."""
        return self._starts

    def report(self, ended: Flags, won: Flags) -> None:
        """Nothing to learn."""

    def state(self) -> State:
        """Nothing."""
        return {}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Nothing to go back to."""


class RandomPose(StandardStarts):
    """The player begins at one of the arena's places; the engine draws which."""

    def __init__(self, n: int) -> None:
        super().__init__(n)
        self._starts["random_pose"] = 1
