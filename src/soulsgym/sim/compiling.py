"""How every kernel is compiled."""

from __future__ import annotations

import functools
from typing import Any

import numba

njit: Any = functools.partial(numba.njit, error_model="numpy")
"""Like numba's, but a division by zero gives infinity instead of a check at every division."""

inlined: Any = functools.partial(njit, forceinline=True)
"""For what must not cost a call in every tick. Sparingly: each one makes the first start slower too."""
