"""The protocol of encoders: fights in, numbers for a network out, into buffers that are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from soulsgym.errors import MisuseError
from soulsgym.state import Fights

Flags = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]
Float32s = npt.NDArray[np.float32]

NO_ACTION = -1
"""In place of the last action, at the beginning of a fight."""


class Encoder(Protocol):
    """Turns fights into `size` numbers each; what it remembers of a fight it forgets when that begins anew."""

    size: int
    names: tuple[str, ...]

    def begin(self, fights: Fights, mask: Flags) -> None:
        """Forget the fights of `mask`: they begin anew."""

    def encode(self, fights: Fights, actions: Int64s, mask: Flags, out: Float32s) -> None:
        """Write the rows of `mask` of `out`, once a step; `actions` are the last ones, -1 at the beginning."""

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Copies of everything remembered between calls."""

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to what `state` returned."""


def check_buffers(actions: Int64s, out: Float32s, n: int, size: int) -> None:
    """Refuse buffers for which a kernel would be compiled again, or write past the end."""
    if out.shape != (n, size) or out.dtype != np.float32 or not out.flags.c_contiguous:
        raise MisuseError(
            f"out is {out.dtype} {list(out.shape)}; give contiguous float32 [{n}, {size}], a row for each fight"
        )
    if actions.shape != (n,) or actions.dtype != np.int64:
        raise MisuseError(f"actions are {actions.dtype} {list(actions.shape)}; give int64 [{n}], one for each fight")
