"""The compiled loops of a reward, put together from the functions of its terms.

Each set of terms is one loop over the fights, so that a term costs no pass and no call of its own. Numba keeps it on
disk under a name made from everything that the terms are compiled from.
"""

from __future__ import annotations

import hashlib
import math
from functools import cache
from typing import Any

import numpy as np

from soulsgym.compiling import njit
from soulsgym.parts.rewards.term import CompiledTerm, arguments_of, is_compiled

BEGIN = """
def {name}(fights, mask, memories, facts):
    for i in range(len(fights)):
        if mask[i]:
            fight = fights[i]
            {lines}
"""
STEP = """
def {name}(fights, memories, facts, weights, terms, rewards):
    for i in range(len(fights)):
        fight, total = fights[i], 0.0
        {lines}
        rewards[i] = total
"""
CONSTANTS = (bool, int, float, str, type(None))
UNCHANGING = (math, np)
"""Modules whose functions and numbers stay what they are."""


@cache
def begin_loop(terms: tuple[CompiledTerm, ...]) -> Any:
    """The compiled loop that notes how fights begin: of fights, mask, memories and facts."""
    functions = {f"begin_{term.name}": term.begin for term in terms if term.begin is not None}
    lines = [f"begin_{term.name}({_arguments(term, term.begin)})" for term in terms if term.begin is not None]
    return _compile(BEGIN, "begin", functions, lines or ["pass"])


@cache
def step_loop(terms: tuple[CompiledTerm, ...]) -> Any:
    """The compiled loop that writes weighted terms and rewards: of fights, memories, facts, weights and both."""
    functions, lines = {f"value_{term.name}": term.value for term in terms}, []
    for column, term in enumerate(terms):
        lines.append(f"value = weights[{column}] * value_{term.name}({_arguments(term, term.value)})")
        lines.append(f"terms[i, {column}] = value")
        lines.append("total += value")
    return _compile(STEP, "step", functions, lines)


def _arguments(term: CompiledTerm, function: Any) -> str:
    given = {"fight": "fight", "memory": f"memories[i].{term.name}", "facts": f"facts[0].{term.name}"}
    return ", ".join(given[name] for name in arguments_of(function))


def _compile(template: str, name: str, functions: dict[str, Any], lines: list[str]) -> Any:
    indent = template.partition("{lines}")[0].rpartition("\n")[2]
    body = f"\n{indent}".join(lines)
    prints = [_fingerprint(function) for function in functions.values()]
    kept = None not in prints
    # The name must not be that of another set of terms: it is what Numba finds a compiled loop by.
    digest = hashlib.sha256("\0".join((body, *filter(None, prints))).encode()).hexdigest()[:16]
    source = template.format(name=f"{name}_{digest}", lines=body)
    scope: dict[str, Any] = {"__name__": __name__, **functions}
    exec(compile(source, __file__, "exec"), scope)
    return njit(nogil=True, cache=kept)(scope[f"{name}_{digest}"])


def _fingerprint(function: Any) -> str | None:
    """Everything that a function is compiled from, or None where that cannot be told."""
    pieces: dict[Any, str] = {}
    try:
        _collect(function, pieces)
    except (TypeError, ValueError):
        return None
    return "\0".join(pieces.values())


def _collect(compiled: Any, pieces: dict[Any, str]) -> None:
    function, options = compiled.py_func, sorted(compiled.targetoptions.items())
    code = function.__code__
    used = [function.__globals__[name] for name in code.co_names if name in function.__globals__]
    captured = [cell.cell_contents for cell in function.__closure__ or ()]
    # The module too: what Numba keeps on disk imports it.
    pieces[code] = f"{function.__module__} {code.co_code.hex()} {code.co_names} {code.co_varnames} {options}"
    for value in (*code.co_consts, *used, *captured):
        if is_compiled(value):
            if value.py_func.__code__ not in pieces:
                _collect(value, pieces)
        elif _is_constant(value):
            pieces[code] += f" {value!r}"
        elif not any(value is module for module in UNCHANGING):
            raise TypeError(f"{value!r} may differ from one start to the next")


def _is_constant(value: Any) -> bool:
    return isinstance(value, CONSTANTS) or (isinstance(value, tuple) and all(map(_is_constant, value)))
