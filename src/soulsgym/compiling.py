"""How functions are compiled, and kept on disk.

Numba finds what it has kept by the name of a function and the file that it stands in, and would go on running old code
after a change in another file. So the name of a function that is kept holds a digest of everything it is compiled from.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from functools import partial
from types import CodeType
from typing import Any, Protocol, TypeVar, overload

import numba
import numpy as np

CONSTANTS = (bool, int, float, str, bytes, type(None), np.generic)
UNCHANGING = (math, np)
"""Modules whose functions and numbers stay what they are."""

Function = TypeVar("Function", bound=Callable[..., Any])


class Compiler(Protocol):
    """A decorator, alone or with options of numba's `njit`. What it gives is called like the function itself."""

    @overload
    def __call__(self, function: Function, /) -> Function: ...
    @overload
    def __call__(self, /, **options: Any) -> Callable[[Function], Function]: ...


def _compiler(**defaults: Any) -> Compiler:
    def decorate(function: Callable[..., Any] | None = None, **options: Any) -> Any:
        if function is None:
            return partial(decorate, **options)
        if options.get("cache") and (sources := sources_of(function)) is not None:
            function.__qualname__ += "-" + hashlib.sha256(sources.encode()).hexdigest()[:16]
        return numba.njit(**defaults, **options)(function)

    return decorate


def is_compiled(given: Any) -> bool:
    """Is this a function compiled by Numba?"""
    return hasattr(given, "py_func")


def sources_of(function: Any) -> str | None:
    """Everything that a function is compiled from, or None where that cannot be told."""
    pieces: dict[CodeType, str] = {}
    try:
        _collect(function, pieces)
    except (TypeError, ValueError):
        return None
    return "\0".join(pieces.values())


def _collect(given: Any, pieces: dict[CodeType, str]) -> None:
    function, options = (given.py_func, _options_of(given)) if is_compiled(given) else (given, "")
    captured = [cell.cell_contents for cell in function.__closure__ or ()]
    codes = [function.__code__]
    for code in codes:
        codes += [value for value in code.co_consts if isinstance(value, CodeType)]
        # The module too: what Numba keeps on disk imports it.
        pieces[code] = f"{function.__module__} {code.co_code.hex()} {code.co_names} {code.co_varnames} {options}"
        used = [function.__globals__[name] for name in code.co_names if name in function.__globals__]
        for value in (*code.co_consts, *used, *captured):
            if is_compiled(value):
                if value.py_func.__code__ not in pieces:
                    _collect(value, pieces)
            elif _is_constant(value):
                pieces[code] += f" {value!r}"
            elif not (isinstance(value, CodeType) or any(value is module for module in UNCHANGING)):
                raise TypeError(f"{value!r} may differ from one start to the next")


def _options_of(given: Any) -> list[Any]:
    """In the same order in every process: that of a set of words differs."""
    options = given.targetoptions.items()
    return sorted((name, sorted(value) if isinstance(value, set) else value) for name, value in options)


def _is_constant(value: Any) -> bool:
    return isinstance(value, CONSTANTS) or (isinstance(value, tuple) and all(map(_is_constant, value)))


njit = _compiler(error_model="numpy", nogil=True)
"""Like numba's, but other threads run meanwhile, and a division by zero gives infinity instead of a check at each."""

inner = _compiler(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""For what only other kernels call: without a door for Python, which takes a fifth of the time to compile."""

inlined = _compiler(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)
"""For what must not cost a call in every tick. Sparingly: each one makes the first start slower too."""
