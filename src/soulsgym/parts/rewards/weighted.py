"""A reward put together from weighted terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.errors import MisuseError
from soulsgym.parts.rewards.kernel import begin_loop, step_loop
from soulsgym.parts.rewards.reward import Flags, Float64s, State
from soulsgym.parts.rewards.term import CompiledTerm, PythonTerm, TermKind
from soulsgym.spec import FightSpec
from soulsgym.state import Fights

NOTHING = ("nothing", "i1")
"""Field of a record that would otherwise have none."""


class WeightedReward:
    """The sum of terms times their weights, the compiled ones first. With `checked`, values must be finite."""

    def __init__(
        self, n: int, spec: FightSpec, terms: Sequence[tuple[TermKind, float]], *, checked: bool = False
    ) -> None:
        compiled = [(term, weight) for term, weight in terms if isinstance(term, CompiledTerm)]
        python = [(term, weight) for term, weight in terms if isinstance(term, PythonTerm)]
        self.names = tuple(term.name for term, _ in (*compiled, *python))
        self._weights = np.array([weight for _, weight in (*compiled, *python)], np.float64)
        kinds = tuple(term for term, _ in compiled)
        self._begin, self._step = begin_loop(kinds), step_loop(kinds)
        self._memories, self._facts = _memories(n, kinds), _facts(spec, kinds)
        self._python = {term.name: term.make(n, spec) for term, _ in python}
        self._checked = checked

    def begin(self, fights: Fights, mask: Flags) -> None:
        """Note how the fights of `mask` stand before their first step."""
        self._begin(fights, mask, self._memories, self._facts)
        for term in self._python.values():
            term.begin(fights, mask)

    def of(self, fights: Fights) -> tuple[Float64s, Float64s]:
        """The rewards of the last step, and their weighted terms: a row per fight, a column per name."""
        terms, rewards = np.empty((len(fights), len(self.names))), np.empty(len(fights))
        self._step(fights, self._memories, self._facts, self._weights, terms, rewards)
        if self._python:
            self._add_python(fights, terms, rewards)
        if self._checked and not np.isfinite(rewards).all():
            self._refuse(terms)
        return rewards, terms

    def _add_python(self, fights: Fights, terms: Float64s, rewards: Float64s) -> None:
        for column, (name, term) in enumerate(self._python.items(), start=len(self.names) - len(self._python)):
            terms[:, column] = self._weights[column] * _one_each(name, term.of(fights), len(fights))
            rewards += terms[:, column]

    def _refuse(self, terms: Float64s) -> None:
        row, column = np.argwhere(~np.isfinite(terms))[0]
        value = terms[row, column] / self._weights[column]
        raise MisuseError(f"reward term {self.names[column]!r} gave {value}; give finite numbers")

    def state(self) -> State:
        """Copies of everything remembered between calls."""
        state = {f"{term}.{field}": self._memories[term][field].copy() for term, field in self._fields()}
        for name, term in self._python.items():
            state |= {f"{name}.{key}": values for key, values in term.state().items()}
        return state

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to what `state` gave."""
        for term, field in self._fields():
            memory, key = self._memories[term][field], f"{term}.{field}"
            if key not in state:
                raise MisuseError(f"state lacks {key!r}; give what state() of a reward of the same terms returned")
            if np.shape(state[key]) != memory.shape:
                raise MisuseError(f"reward of {len(state[key])} fights does not fit {len(memory)}; make it for as many")
        for term, field in self._fields():
            self._memories[term][field] = state[f"{term}.{field}"]
        for name, own in self._python.items():
            mine = f"{name}."
            own.restore({key.removeprefix(mine): values for key, values in state.items() if key.startswith(mine)})

    def _fields(self) -> list[tuple[str, str]]:
        dtype = self._memories.dtype
        return [(term, field) for term in dtype.names or () for field in dtype[term].names or ()]


@cache
def _same(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The first dtype that was equal: Numba takes longer to call a loop with one that is equal but not the same."""
    return dtype


def _record(fields: list[Any]) -> np.dtype[Any]:
    return _same(np.dtype(fields or [NOTHING], align=True))


def _memories(n: int, terms: Sequence[CompiledTerm]) -> npt.NDArray[Any]:
    fields = [(term.name, np.dtype(list(term.memory), align=True)) for term in terms if term.memory]
    return np.zeros(n, _record(fields))


def _facts(spec: FightSpec, terms: Sequence[CompiledTerm]) -> npt.NDArray[Any]:
    """One record with a field for every term that has facts."""
    values = {
        term.name: {name: np.asarray(value) for name, value in term.facts(spec).items()}
        for term in terms
        if term.facts is not None
    }
    fields = [
        (name, np.dtype([(key, value.dtype, value.shape) for key, value in facts.items()], align=True))
        for name, facts in values.items()
    ]
    record = np.zeros(1, _record(fields))
    for name, facts in values.items():
        for key, value in facts.items():
            record[name][key] = value
    return record


def _one_each(name: str, values: object, n: int) -> Float64s:
    numbers = np.asarray(values, np.float64)
    if numbers.shape != (n,):
        raise MisuseError(
            f"reward term {name!r} gave numbers of shape {numbers.shape}; give one for each of {n} fights"
        )
    return numbers
