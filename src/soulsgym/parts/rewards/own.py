"""Terms that users add to those of the kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy.typing as npt

from soulsgym.errors import MisuseError
from soulsgym.parts.rewards.reward import Flags, State, Term
from soulsgym.parts.rewards.terms import TERMS
from soulsgym.spec import FightSpec
from soulsgym.state import Fights

OWN_TERMS: dict[str, Callable[[int, FightSpec], Term]] = {}
"""How each is made, for a number of fights of a moveset."""

Given = TypeVar("Given", bound=Callable[..., Any])


def term(name: str) -> Callable[[Given], Given]:
    """Make a function of the fights, or a class that follows `Term`, known as a reward term of this name."""
    if name in TERMS or not name.isidentifier():
        raise MisuseError(f"reward term cannot be named {name!r}; take a plain word that is no term yet")

    def registered(given: Given) -> Given:
        OWN_TERMS[name] = given if isinstance(given, type) else lambda n, spec: _Plain(given)
        return given

    return registered


class _Plain:
    """A term that is a plain function and remembers nothing."""

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
