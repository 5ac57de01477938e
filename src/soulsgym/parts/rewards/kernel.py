"""The compiled loops of a reward, put together from the functions of its terms.

Each set of terms is one loop over the fights, so that a term costs no pass and no call of its own. Numba keeps it on
disk under a name made from everything that the terms are compiled from.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

from soulsgym.compiling import njit, sources_of
from soulsgym.parts.rewards.term import CompiledTerm, arguments_of

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
    prints = [sources_of(function) for function in functions.values()]
    kept = None not in prints
    # The name must not be that of another set of terms: it is what Numba finds a compiled loop by.
    digest = hashlib.sha256("\0".join((body, *filter(None, prints))).encode()).hexdigest()[:16]
    source = template.format(name=f"{name}_{digest}", lines=body)
    scope: dict[str, Any] = {"__name__": __name__, **functions}
    exec(compile(source, __file__, "exec"), scope)
    return njit(cache=kept)(scope[f"{name}_{digest}"])
