"""The protocol of a reward."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from soulsgym.state import Fights

Flags = npt.NDArray[np.bool_]
Float64s = npt.NDArray[np.float64]
State = dict[str, npt.NDArray[Any]]
"""What a part remembers between calls, as arrays by name."""


class Reward(Protocol):
    """Says after every step how good it was, and why.

    It may have `needs`: names of fields of FIGHT without which it means nothing.
    """

    names: tuple[str, ...]

    def begin(self, fights: Fights, mask: Flags) -> None:
        """Forget the fights of `mask`, which begin again as `fights` shows them."""

    def of(self, fights: Fights) -> tuple[Float64s, Float64s]:
        """The rewards of the last step, and their weighted terms: a row per fight, a column per name."""

    def state(self) -> State:
        """Copies of everything remembered between calls."""

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to what `state` gave."""
