"""Random numbers as torch draws them on the processor, number for number, without torch."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

WORDS = 624
HEAD = struct.Struct("<QiiQ")
"""Of a saved state: the seed, one more than the words that are left, whether it was seeded, and the next word."""
TAIL = bytes(40)
"""Of a saved state: what torch keeps of normal numbers, of which none are drawn here."""


class Mersenne:
    """The Mersenne twister; its state is kept as `torch.Generator.get_state` gives it."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._bits: Any = np.random.RandomState(seed)._bit_generator

    def uniform(self, out: npt.NDArray[np.float32]) -> None:
        """Fill an array with numbers from 0 to 1, without 1."""
        words = self._bits.random_raw(out.size).astype(np.uint32) & np.uint32((1 << 24) - 1)
        out.flat[:] = words.astype(np.float32) * np.float32(2.0**-24)

    def state(self) -> npt.NDArray[np.uint8]:
        """What decides which numbers come next."""
        state = self._bits.state["state"]
        head = HEAD.pack(self._seed, WORDS + 1 - state["pos"], 1, state["pos"])
        return np.frombuffer(head + state["key"].astype("<u8").tobytes() + TAIL, np.uint8).copy()

    def restore(self, state: npt.NDArray[Any]) -> None:
        """Go on from a state."""
        data = np.ascontiguousarray(state, np.uint8).tobytes()
        self._seed, left, _, following = HEAD.unpack(data[: HEAD.size])
        key = np.frombuffer(data, "<u8", WORDS, HEAD.size).astype(np.uint32)
        position = WORDS if left == 1 else following
        self._bits.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": position}}
