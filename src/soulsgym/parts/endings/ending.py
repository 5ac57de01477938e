"""The rules by which fights end, and how they are put together."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from soulsgym.errors import MisuseError
from soulsgym.parts.registry import make_part, register, resolve
from soulsgym.state import Fights, Outcome

Flags = npt.NDArray[np.bool_]

RUNNING, WON, BROKEN = int(Outcome.RUNNING), int(Outcome.WON), int(Outcome.BROKEN)


class Ending(Protocol):
    """Says which fights end here."""

    def of(self, fights: Fights) -> tuple[Flags, Flags]:
        """Fights that are over, and fights that would go on but are cut off."""

    def won(self, fights: Fights) -> Flags:
        """Fights that are not lost by this rule; won are those that no rule calls lost."""


@register("ending", "standard")
class FightOver:
    """Ends the fights that were won or lost, and cuts off those that the game broke off."""

    def of(self, fights: Fights) -> tuple[Flags, Flags]:
        """Fights that are over, and fights that a failure of the game ended."""
        broken = np.asarray(fights["outcome"] == BROKEN)
        return (fights["outcome"] != RUNNING) & ~broken, broken

    def won(self, fights: Fights) -> Flags:
        """Fights in which the boss died."""
        return np.asarray(fights["outcome"] == WON)


@register("ending", "no_hit")
class NoHit:
    """Ends a fight, as lost, once the player has taken damage."""

    def of(self, fights: Fights) -> tuple[Flags, Flags]:
        """Fights in which the player was hit, and none cut off."""
        return fights["taken_total"] > 0.0, np.zeros(len(fights), np.bool_)

    def won(self, fights: Fights) -> Flags:
        """Fights without a hit: one taken together with the winning blow still loses."""
        return np.asarray(fights["taken_total"] == 0.0)


class StepLimit:
    """Cuts a fight off after `limit` environment steps; merged steps all count."""

    def __init__(self, limit: int) -> None:
        whole = isinstance(limit, (int, np.integer))
        if not whole or limit < 1:
            raise MisuseError(f"step limit {limit!r} is not possible; give 1 or more")
        self._limit = limit

    def of(self, fights: Fights) -> tuple[Flags, Flags]:
        """No fight that is over, and those that took too long."""
        return np.zeros(len(fights), np.bool_), fights["step"] >= self._limit

    def won(self, fights: Fights) -> Flags:
        """All: how long a won fight took does not matter."""
        return np.ones(len(fights), np.bool_)


class AnyOf:
    """Ends a fight where one of its parts does; over counts before cut off."""

    def __init__(self, *parts: Ending) -> None:
        self._parts = parts

    def of(self, fights: Fights) -> tuple[Flags, Flags]:
        """Fights that one part calls over, and of the others those that one part cuts off."""
        terminated, truncated = zip(*(part.of(fights) for part in self._parts), strict=True)
        over = np.logical_or.reduce(terminated)
        return over, np.logical_or.reduce(truncated) & ~over

    def won(self, fights: Fights) -> Flags:
        """Fights that no part calls lost."""
        return np.asarray(np.logical_and.reduce([part.won(fights) for part in self._parts]))


def make_ending(given: Any = "standard", *, no_hit: bool = False) -> Ending:
    """The ending that is meant by `given`; where somebody died, every fight is over.

    That is a name; a step limit; a table of `name`, `step_limit`, `no_hit` and further settings of what is named; an
    ending; or a class or function that makes one. With `no_hit` a fight is lost at the first hit taken.
    """
    if isinstance(given, int):
        given = {"step_limit": given}
    part, settings = resolve("ending", given, key="name", default="standard")
    limit, no_hit = settings.pop("step_limit", None), settings.pop("no_hit", no_hit)
    rules: list[Ending] = [FightOver()]
    if limit is not None:
        rules.append(StepLimit(limit))
    if no_hit:
        rules.append(NoHit())
    own = make_part("ending", part, keys=("name", "step_limit", "no_hit"), **settings)
    if type(own) is not FightOver:  # one that builds on it is another
        rules.append(own)
    return AnyOf(*rules) if len(rules) > 1 else rules[0]
