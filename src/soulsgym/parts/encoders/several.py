"""One encoder for the fights of several bosses, so that one network can fight them all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.compiling import njit
from soulsgym.errors import MisuseError, suggestion
from soulsgym.parts.encoders.encoder import Encoder, Flags, Float32s, Int64s, bounds_of, check_buffers
from soulsgym.state import Fights

FLAG = "against_{}"
"""The name of the number that is 1 where the fight is against this boss."""


@njit(cache=True)
def _spread(own: Any, mask: Any, columns: Any, rest: Any, out: Any) -> None:
    for i in range(len(mask)):
        if mask[i]:
            # Plain loops: slices take a second longer to compile.
            for column in range(len(rest)):
                out[i, column] = rest[column]
            for number in range(len(columns)):
                out[i, columns[number]] = own[i, number]


class OneOfSeveral:
    """What an encoder shows of the fights against `boss`, in rows that have room for all bosses.

    `encoders` are those of all bosses by name, for any number of fights. Numbers of the same name are one number,
    except for an encoder's `boss_names`, which mean something for its own boss alone. What is another boss's is 0, and
    a number for each boss says whether it is this one.
    """

    def __init__(self, encoder: Encoder, n: int, boss: str, encoders: Mapping[str, Encoder]) -> None:
        if boss not in encoders:
            raise MisuseError(f"boss {boss!r} is not among those of the encoder{suggestion(boss, encoders)}")
        bounds: dict[str, tuple[float, float]] = {FLAG.format(name): (0.0, 1.0) for name in encoders}
        for name, each in encoders.items():
            for number, low, high in zip(_names(each, name), *bounds_of(each), strict=True):
                known = bounds.get(number, (0.0, 0.0))  # 0 in the fights of the others
                bounds[number] = min(known[0], float(low)), max(known[1], float(high))
        self.names = tuple(bounds)
        self.size = len(self.names)
        self.low, self.high = (np.array(ends, np.float32) for ends in zip(*bounds.values(), strict=True))
        places = {name: place for place, name in enumerate(self.names)}
        self._columns = np.array([places[name] for name in _names(encoder, boss)], np.int64)
        self._rest = np.zeros(self.size, np.float32)
        self._rest[places[FLAG.format(boss)]] = 1.0
        self._encoder, self._own = encoder, np.zeros((n, encoder.size), np.float32)

    def begin(self, fights: Fights, mask: Flags) -> None:
        """Forget the fights of `mask`: they begin again."""
        self._encoder.begin(fights, mask)

    def encode(self, fights: Fights, actions: Int64s, mask: Flags, out: Float32s) -> None:
        """Write the rows of `mask` of `out`."""
        check_buffers(actions, out, len(self._own), self.size)
        self._encoder.encode(fights, actions, mask, self._own)
        _spread(self._own, mask, self._columns, self._rest, out)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """What the encoder of this boss remembers."""
        return self._encoder.state()

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to what `state` returned."""
        self._encoder.restore(state)


def _names(encoder: Encoder, boss: str) -> list[str]:
    own = frozenset(getattr(encoder, "boss_names", ()))
    return [f"{boss}_{name}" if name in own else name for name in encoder.names]
