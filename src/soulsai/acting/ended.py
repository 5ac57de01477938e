"""Episodes that are over, as columns."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Ended:
    """Episodes that ended: the sum of each term, environment steps, and how they began and ended."""

    terms: npt.NDArray[np.float64]  # episodes x terms
    lengths: npt.NDArray[np.int64]
    standard: npt.NDArray[np.bool_]
    won: npt.NDArray[np.bool_]
    timed_out: npt.NDArray[np.bool_]

    @classmethod
    def joined(cls, several: list[Ended], terms: int) -> Ended:
        """All of them in order; none at all for an empty list."""
        nothing = cls(np.zeros((0, terms)), np.zeros(0, np.int64), *(np.zeros(0, np.bool_) for _ in range(3)))
        columns = ([getattr(ended, field.name) for ended in (nothing, *several)] for field in fields(cls))
        return cls(*(np.concatenate(column) for column in columns))
