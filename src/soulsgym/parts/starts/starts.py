"""The protocol of starts: how the next fights begin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

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
        """Hear of fights that ended before they begin anew."""

    def state(self) -> State:
        """Copies of everything remembered between calls."""

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to what `state` gave."""
