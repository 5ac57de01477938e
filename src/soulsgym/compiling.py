"""How functions are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, overload

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


class Compiler(Protocol):
    """A decorator, alone or with options of numba's `njit`. What it gives is called like the function itself."""

    @overload
    def __call__(self, function: Function, /) -> Function: ...
    @overload
    def __call__(self, /, **options: Any) -> Callable[[Function], Function]: ...


def _compiler(**defaults: Any) -> Compiler:
    def decorate(function: Callable[..., Any] | None = None, **options: Any) -> Any:
        decorator = numba.njit(**defaults, **options)
        return decorator if function is None else decorator(function)

    return decorate


njit = _compiler(error_model="numpy")
"""Like numba's, but a division by zero gives infinity instead of a check at every division."""

inner = _compiler(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""For what only other kernels call: without a door for Python, which takes a fifth of the time to compile."""

inlined = _compiler(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)
"""For what must not cost a call in every tick. Sparingly: each one makes the first start slower too."""
