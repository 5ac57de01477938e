"""Counter-based randomness: the n-th draw of a fight depends on its key and n alone.

Key, counter and bits are converted to 64 unsigned bits on the way in. Numba makes a signed number of a signed and an
unsigned one, and shifts that with its sign: half of the values would never come up.
"""

from __future__ import annotations

import numpy as np

from soulsgym.compiling import njit
from soulsgym.sim.hidden import Hidden

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_A = np.uint64(0xBF58476D1CE4E5B9)
_MIX_B = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_TO_UNIT = 1.0 / (1 << 53)


@njit
def mix(key: np.uint64, counter: int | np.uint64) -> np.uint64:
    """64 well-mixed bits of a key and a counter (the finaliser of SplitMix64)."""
    z = np.uint64(key) + _STEP * (np.uint64(counter) + np.uint64(1))
    z = (z ^ (z >> _S30)) * _MIX_A
    z = (z ^ (z >> _S27)) * _MIX_B
    return z ^ (z >> _S31)


@njit
def unit(bits: np.uint64) -> float:
    """A number in [0, 1) of 64 bits."""
    return (np.uint64(bits) >> _S11) * _TO_UNIT


@njit
def draw(hidden: Hidden) -> float:
    """The fight's next number in [0, 1)."""
    bits = mix(hidden.key, hidden.draws)
    hidden.draws += np.uint64(1)
    return unit(bits)


@njit
def draw_between(hidden: Hidden, low: float, high: float) -> float:
    """The fight's next number in [low, high)."""
    return low + (high - low) * draw(hidden)
