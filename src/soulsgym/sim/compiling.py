"""How kernels are compiled."""

from __future__ import annotations

import functools
from typing import Any

import numba

njit: Any = functools.partial(numba.njit, error_model="numpy")
"""Like numba's, but a division by zero gives infinity instead of a check at every division."""

inner: Any = functools.partial(njit, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""For what only other kernels call: without a door for Python, which takes a fifth of the time to compile."""

inlined: Any = functools.partial(inner, forceinline=True)
"""For what must not cost a call in every tick. Sparingly: each one makes the first start slower too."""
