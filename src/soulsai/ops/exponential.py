"""The exponential of many numbers at once, in single precision, as the processor's vectors compute it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from soulsgym.compiling import njit

FAST = frozenset({"reassoc", "contract", "nsz", "arcp"})
"""For compiled functions: sums in any order, though the same in every call. What is no number stays none."""

LOWEST, HIGHEST = np.float32(-87.0), np.float32(88.0)
"""Beyond them the result would not be a normal number of single precision."""
HALF, PER_LN2 = np.float32(0.5), np.float32(1.0 / math.log(2.0))
LN2 = np.float32(0.693359375)  # its first bits: times a whole number it is exact
LN2_REST = np.float32(math.log(2.0) - 0.693359375)
C = tuple(np.float32(1.0 / math.factorial(k)) for k in range(8))


@njit(cache=True, fastmath=set(FAST))
def exp_(x: Any, bits: Any) -> None:
    """Replace numbers [N] by their exponentials; `bits` is room for N whole numbers of 32 bits."""
    for i in range(len(x)):
        v = LOWEST if x[i] < LOWEST else x[i]
        v = HIGHEST if v > HIGHEST else v
        n = np.floor(v * PER_LN2 + HALF)
        bits[i] = (np.int32(n) + np.int32(127)) << np.int32(23)  # 2**n, as a number of single precision is stored
        r = (v - n * LN2) - n * LN2_REST  # within half of ln 2: seven terms of the series are enough
        x[i] = C[0] + r * (C[1] + r * (C[2] + r * (C[3] + r * (C[4] + r * (C[5] + r * (C[6] + r * C[7]))))))
    powers = bits.view(np.float32)
    for i in range(len(x)):
        x[i] *= powers[i]
