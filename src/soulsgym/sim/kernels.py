"""The compiled entry points, cached on disk.

Numba's cache looks at the file of the entry point alone and would go on running old code after a change elsewhere. Its
key contains what the entry point closes over, so each closes over a digest of all the sources it is compiled from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit

from soulsgym.sim.tick import reset_fights, step_fights


def _digest_of_sources() -> str:
    package = Path(__file__).parent.parent
    files = [package / "state.py", package / "controls.py", *sorted((package / "movesets").glob("*.py"))]
    digest = hashlib.sha256()
    for file in (*files, *sorted((package / "sim").glob("*.py"))):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _compiled(digest: str) -> tuple[Callable[..., None], Callable[..., None]]:
    @njit(nogil=True, cache=True)
    def step_range(fights: Any, hidden: Any, controls: Any, tables: Any, low: int, high: int) -> None:
        if len(digest) > 0:
            step_fights(fights, hidden, controls, tables[0], low, high)

    @njit(nogil=True, cache=True)
    def reset_range(
        fights: Any, hidden: Any, mask: Any, starts: Any, seeds: Any, seeded: bool, tables: Any,
        phase: int, changes: int, strength: float, low: int, high: int,
    ) -> None:  # fmt: skip
        if len(digest) > 0:
            reset_fights(fights, hidden, mask, starts, seeds, seeded, tables[0], phase, changes, strength, low, high)

    return step_range, reset_range


step_range, reset_range = _compiled(_digest_of_sources())
