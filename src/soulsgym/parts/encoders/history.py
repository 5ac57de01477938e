"""History: the last encodings side by side, so that a network sees how things came about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.compiling import njit
from soulsgym.errors import MisuseError
from soulsgym.parts.encoders.encoder import Encoder, Flags, Float32s, Int64s, bounds_of, check_buffers, restore_array
from soulsgym.state import Fights

STACKED = "stacked"
INNER = "inner."
"""Before the names of what the wrapped encoder remembers."""


@njit(cache=True)
def _push(newest: Any, mask: Any, stacked: Any, out: Any) -> None:
    size, total = newest.shape[1], stacked.shape[1]
    for i in range(len(mask)):
        if mask[i]:
            # Plain loops: slices take a second longer to compile.
            for column in range(size):
                out[i, column] = newest[i, column]
            for column in range(size, total):
                out[i, column] = stacked[i, column - size]
            for column in range(total):
                stacked[i, column] = out[i, column]


class History:
    """The last `length` encodings of another encoder, the newest first; before the beginning there are zeros."""

    def __init__(self, encoder: Encoder, n: int, length: int) -> None:
        if length < 1:
            raise MisuseError(f"history {length} is not possible; give 1 or more encodings")
        self.size = encoder.size * length
        self.names = tuple(name if age == 0 else f"{name}_{age}_ago" for age in range(length) for name in encoder.names)
        # Zeros come before the beginning, whatever the encoder's bounds.
        low, high = bounds_of(encoder)
        self.low, self.high = np.tile(np.minimum(low, 0), length), np.tile(np.maximum(high, 0), length)
        self._encoder = encoder
        self._newest = np.zeros((n, encoder.size), np.float32)
        self._stacked = np.zeros((n, self.size), np.float32)

    def begin(self, fights: Fights, mask: Flags) -> None:
        """Forget the fights of `mask`: they begin again."""
        self._encoder.begin(fights, mask)
        self._stacked[mask] = 0.0

    def encode(self, fights: Fights, actions: Int64s, mask: Flags, out: Float32s) -> None:
        """Write the stacked encodings of `mask` into `out`."""
        check_buffers(actions, out, len(self._stacked), self.size)
        self._encoder.encode(fights, actions, mask, self._newest)
        _push(self._newest, mask, self._stacked, out)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Copies of the stacked encodings and of what the wrapped encoder remembers."""
        inner = {f"{INNER}{name}": array for name, array in self._encoder.state().items()}
        return {STACKED: self._stacked.copy(), **inner}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to what `state` returned."""
        restore_array(self._stacked, state, STACKED)
        self._encoder.restore({key.removeprefix(INNER): state[key] for key in state if key.startswith(INNER)})
