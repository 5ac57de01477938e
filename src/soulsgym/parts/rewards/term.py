"""One term of a reward: how it is written down and made known.

A term is a function of one fight that is compiled into the loop over all of them, a plain function of the columns of
all fights, or a class that follows `Term`.

A call may stand for several environment steps, where those without a choice were merged: damage is then their sum, and
`fight.step` tells how many passed.
"""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from soulsgym.compiling import is_compiled
from soulsgym.errors import MisuseError, suggestion
from soulsgym.parts.registry import origin_of, register, takes_fights
from soulsgym.parts.rewards.reward import Flags, State
from soulsgym.spec import FightSpec
from soulsgym.state import FIGHT, Fights

KIND = "reward term"
FIELDS: tuple[str, ...] = FIGHT.names or ()

Given = TypeVar("Given", bound=Callable[..., Any])
Fields = Sequence[tuple[Any, ...]]
"""Fields of a NumPy record: names, types, and shapes if any."""
Facts = Callable[[FightSpec], Mapping[str, Any]]
"""Numbers by name, out of a spec."""


class Term(Protocol):
    """A term that is a class, before its weight; made for `n` fights of a spec."""

    def begin(self, fights: Fights, mask: Flags) -> None:
        """Forget the fights of `mask`, which begin again as `fights` shows them."""

    def of(self, fights: Fights) -> npt.NDArray[Any]:
        """One number for each fight: how much of this there was in the last step."""

    def state(self) -> State:
        """Copies of everything remembered between calls."""

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to what `state` gave."""


@dataclass(frozen=True, eq=False)
class TermKind:
    """A term that weights may name."""

    name: str
    meaning: str
    needs: tuple[str, ...]  # fields of FIGHT without which it is always the same


@dataclass(frozen=True, eq=False)
class CompiledTerm(TermKind):
    """A term that runs inside the compiled loop over fights."""

    value: Any  # compiled; of the fight and, by the names of its parameters, its memory and facts
    begin: Any  # compiled likewise, for the beginning of a fight; None: nothing to note
    memory: Fields
    facts: Facts | None


@dataclass(frozen=True, eq=False)
class PythonTerm(TermKind):
    """A term that is called with all fights."""

    make: Callable[[int, FightSpec], Term]


def term(
    name: str,
    meaning: str = "",
    *,
    begin: Any = None,
    memory: Fields = (),
    facts: Facts | None = None,
    needs: Sequence[str] = (),
) -> Callable[[Given], Given]:
    """Decorator that makes a term known by `name`.

    It takes a function compiled by Numba's njit, of one `fight` and if it wants of its `memory` and `facts`; or a plain
    function of all `fights`; or what makes a `Term` of `n` and `spec`, such as a class. `memory` are the fields that a
    compiled term keeps of each fight and `begin`, compiled too, sets; `facts` gives numbers that are the same for all
    fights of a spec; `needs` names the fields of FIGHT that an engine must tell for the term to mean anything.
    """

    def add(given: Given) -> Given:
        made = make_term(name, given, meaning, begin=begin, memory=memory, facts=facts, needs=needs)
        register(KIND, name, origin=origin_of(given))(made)
        return given

    return add


def make_term(
    name: str,
    given: Any,
    meaning: str = "",
    *,
    begin: Any = None,
    memory: Fields = (),
    facts: Facts | None = None,
    needs: Sequence[str] = (),
) -> TermKind:
    """The term that a function or class is, as `term` takes it."""
    if not str(name).isidentifier() or keyword.iskeyword(name):
        raise MisuseError(f"reward term cannot be named {name!r}; give a plain word")
    check_needs(f"reward term {name!r}", needs)
    about = name, meaning or inspect.getdoc(given) or "", tuple(needs)
    if is_compiled(given):
        made = CompiledTerm(*about, given, begin, tuple(memory), facts)
        _check_memory(made)
        _check_arguments(made)
        return made
    if begin is not None or memory or facts is not None:
        raise MisuseError(f"reward term {name!r} has memory or facts but is not compiled; put @njit below @term")
    return PythonTerm(*about, (lambda n, spec: _Columns(given)) if takes_fights(given) else given)


def check_needs(what: str, needs: Sequence[str]) -> None:
    """Refuse names that are no fields of a fight."""
    for field in needs:
        if field not in FIELDS:
            raise MisuseError(f"{what} needs {field!r}, which is no field of a fight{suggestion(field, FIELDS)}")


def arguments_of(function: Any) -> tuple[str, ...]:
    """The names of a compiled function's parameters."""
    return tuple(inspect.signature(function.py_func).parameters)


def _check_memory(term: CompiledTerm) -> None:
    try:
        np.dtype(list(term.memory))
    except (TypeError, ValueError) as error:
        raise MisuseError(
            f"memory of reward term {term.name!r} is {term.memory!r}; give names and types, such as [('sp', 'f8')]"
        ) from error


def _check_arguments(term: CompiledTerm) -> None:
    there = {"fight": True, "memory": bool(term.memory), "facts": term.facts is not None}
    for function in (term.value, *([] if term.begin is None else [term.begin])):
        if not is_compiled(function):
            raise MisuseError(f"begin of reward term {term.name!r} is not compiled; put @njit above it")
        for argument in arguments_of(function):
            if not there.get(argument, False):
                raise MisuseError(
                    f"reward term {term.name!r} has a parameter {argument!r}; take fight, and of memory and facts what "
                    "the term declares"
                )


class _Columns:
    """A term that is a plain function of all fights and remembers nothing."""

    def __init__(self, function: Callable[[Fights], npt.NDArray[Any]]) -> None:
        self._function = function

    def begin(self, fights: Fights, mask: Flags) -> None:
        """Nothing to forget."""

    def of(self, fights: Fights) -> npt.NDArray[Any]:
        """What the function says of the last step."""
        return self._function(fights)

    def state(self) -> State:
        """Nothing."""
        return {}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Nothing to go back to."""
