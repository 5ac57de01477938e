"""A reward put together from weighted terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.errors import MisuseError
from soulsgym.parts.rewards.reward import Flags, Float64s, State, Term
from soulsgym.parts.rewards.terms import MEMORY, PLACE, TERMS, begin_into, terms_into
from soulsgym.state import Fights

NO_ANIMATION = -2
"""An id no animation has; -1 are those that are not listed."""


class WeightedReward:
    """The sum of terms times their weights: those of the kernel in its order, then `own` ones by name.

    Terms of weight 0 are left out.
    """

    def __init__(
        self,
        n: int,
        weights: Mapping[str, float],
        *,
        centre_m: tuple[float, float],
        roll_animations: tuple[int, int] = (NO_ANIMATION, NO_ANIMATION),
        own: Mapping[str, Term] | None = None,
    ) -> None:
        built_in = [name for name in TERMS if weights.get(name)]
        self._own = {name: term for name, term in sorted((own or {}).items()) if weights.get(name)}
        self.names: tuple[str, ...] = (*built_in, *self._own)
        self._columns = np.array([column for column, name in enumerate(TERMS) if name in built_in], np.int64)
        self._weights = np.array([weights[name] for name in self.names], np.float64)
        self._places = np.array([(*centre_m, roll_animations)], PLACE)
        self._memories = np.zeros(n, MEMORY)

    def begin(self, fights: Fights, mask: Flags) -> None:
        """Note how the fights of `mask` stand before their first step."""
        begin_into(fights, mask, self._places, self._memories)
        for term in self._own.values():
            term.begin(fights, mask)

    def of(self, fights: Fights) -> tuple[Float64s, Float64s]:
        """The rewards of the last step, and their weighted terms: a row per fight, a column per name."""
        terms, rewards = np.empty((len(fights), len(self.names))), np.empty(len(fights))
        terms_into(fights, self._places, self._memories, self._columns, self._weights, terms, rewards)
        if self._own:
            self._add_own(fights, terms, rewards)
        return rewards, terms

    def _add_own(self, fights: Fights, terms: Float64s, rewards: Float64s) -> None:
        for column, (name, term) in enumerate(self._own.items(), start=len(self._columns)):
            terms[:, column] = self._weights[column] * _checked(name, term.of(fights), len(fights))
            rewards += terms[:, column]

    def state(self) -> State:
        """Copies of everything remembered between calls."""
        state = {str(name): self._memories[name].copy() for name in MEMORY.names or ()}
        for name, term in self._own.items():
            state |= {f"{name}.{key}": values for key, values in term.state().items()}
        return state

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to what `state` gave."""
        if state["step"].shape != self._memories.shape:
            raise MisuseError(
                f"reward of {len(state['step'])} fights does not fit {len(self._memories)}; make it for as many"
            )
        for name in MEMORY.names or ():
            self._memories[name] = state[name]
        for name, term in self._own.items():
            mine = f"{name}."
            term.restore({key.removeprefix(mine): values for key, values in state.items() if key.startswith(mine)})


def _checked(name: str, values: object, n: int) -> Float64s:
    numbers = np.asarray(values, np.float64)
    if numbers.shape != (n,):
        raise MisuseError(
            f"reward term {name!r} gave numbers of shape {numbers.shape}; give one for each of {n} fights"
        )
    if not np.isfinite(numbers).all():
        raise MisuseError(f"reward term {name!r} gave {numbers[~np.isfinite(numbers)][0]}; give finite numbers")
    return numbers
