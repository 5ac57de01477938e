"""An encoder that is a plain function of the fights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.errors import MisuseError
from soulsgym.parts.encoders.encoder import Flags, Float32s, Int64s, check_buffers
from soulsgym.state import FIGHT, Fights


class FunctionEncoder:
    """The numbers that `function` returns for `n` fights, a row for each; it remembers nothing.

    It is called once with empty records, to see how many numbers there are.
    """

    def __init__(
        self,
        function: Callable[[Fights], npt.NDArray[Any]],
        n: int,
        *,
        names: Sequence[str] = (),
        low: npt.ArrayLike = -np.inf,
        high: npt.ArrayLike = np.inf,
    ) -> None:
        self._function, self._n = function, n
        self._name = getattr(function, "__name__", type(function).__name__)
        with np.errstate(all="ignore"):
            values = np.asarray(function(np.zeros(n, FIGHT)))
        if values.ndim != 2 or len(values) != n or values.shape[1] == 0:
            raise MisuseError(
                f"encoder {self._name} returned an array of shape {values.shape}; return a row of numbers for each of "
                f"{n} fights"
            )
        self.size: int = values.shape[1]
        self.names = tuple(names) or tuple(f"{self._name}_{number}" for number in range(self.size))
        self.low = np.broadcast_to(np.asarray(low, np.float32), self.size)
        self.high = np.broadcast_to(np.asarray(high, np.float32), self.size)

    def begin(self, fights: Fights, mask: Flags) -> None:
        """Nothing to forget."""

    def encode(self, fights: Fights, actions: Int64s, mask: Flags, out: Float32s) -> None:
        """Write what the function says of the fights of `mask` into `out`."""
        check_buffers(actions, out, self._n, self.size)
        values = np.asarray(self._function(fights), np.float32)
        if values.shape != out.shape:
            raise MisuseError(
                f"encoder {self._name} returned an array of shape {values.shape}; return {out.shape} each time"
            )
        if not np.isfinite(values[mask]).all():
            raise MisuseError(f"encoder {self._name} returned numbers that are not finite; see its divisions")
        out[mask] = values[mask]

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Nothing."""
        return {}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Nothing to go back to."""
