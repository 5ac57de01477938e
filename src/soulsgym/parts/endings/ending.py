"""The protocol of an ending."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from soulsgym.state import Fights

Flags = npt.NDArray[np.bool_]


class Ending(Protocol):
    """Says which fights end here."""

    def of(self, fights: Fights) -> tuple[Flags, Flags]:
        """Fights that are over, and fights that would go on but are cut off."""

    def won(self, fights: Fights) -> Flags:
        """Fights that are not lost by this rule; won are those that no rule calls lost."""
