"""Endings put together from endings."""

from __future__ import annotations

import numpy as np

from soulsgym.parts.endings.ending import Ending, Flags
from soulsgym.state import Fights


class AnyOf:
    """Ends a fight where one of its parts does; over counts before cut off."""

    def __init__(self, *parts: Ending) -> None:
        self._parts = parts

    def of(self, fights: Fights) -> tuple[Flags, Flags]:
        """Fights that one part calls over, and of the others those that one part cuts off."""
        terminated, truncated = zip(*(part.of(fights) for part in self._parts), strict=True)
        over = np.logical_or.reduce(terminated)
        return over, np.logical_or.reduce(truncated) & ~over

    def won(self, fights: Fights) -> Flags:
        """Fights that no part calls lost."""
        return np.asarray(np.logical_and.reduce([part.won(fights) for part in self._parts]))


class AllOf:
    """Ends a fight where each of its parts does; it is over where each calls it over."""

    def __init__(self, *parts: Ending) -> None:
        self._parts = parts

    def of(self, fights: Fights) -> tuple[Flags, Flags]:
        """Fights that all parts call over, and of the others those that all parts end."""
        terminated, truncated = zip(*(part.of(fights) for part in self._parts), strict=True)
        over = np.logical_and.reduce(terminated)
        ended = np.logical_and.reduce([np.logical_or(*flags) for flags in zip(terminated, truncated, strict=True)])
        return over, ended & ~over

    def won(self, fights: Fights) -> Flags:
        """Fights that no part calls lost."""
        return np.asarray(np.logical_and.reduce([part.won(fights) for part in self._parts]))
