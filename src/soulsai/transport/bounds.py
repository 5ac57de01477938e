"""Whether observations lie within their bounds, compiled: NumPy takes longer than all the rest of a chunk does."""

from __future__ import annotations

from typing import Any

from soulsgym.compiling import njit


@njit(cache=True)
def is_inside(rows: Any, low: Any, high: Any) -> bool:
    """Whether every number of every row is between the bounds of its column; NaN is not."""
    for i in range(len(rows)):
        inside = True
        for j in range(len(low)):
            inside &= (rows[i, j] >= low[j]) & (rows[i, j] <= high[j])
        if not inside:
            return False
    return True
