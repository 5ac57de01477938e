"""Parts of an environment: encoders, rewards, actions, endings, starts, and how a user chooses them."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from soulsgym.errors import suggestion
from soulsgym.parts.actions import ActionSet, make_actions
from soulsgym.parts.encoders import Encoder, make_encoder
from soulsgym.parts.endings import Ending, make_ending
from soulsgym.parts.rewards import SOULSGYM, Reward, make_reward
from soulsgym.parts.starts import Starts, make_starts
from soulsgym.spec import FightSpec


class PartChoices(TypedDict, total=False):
    """The parts of an environment as a user gives them.

    Each is a name, a dict of settings, an object with the methods of the part, or whatever makes one when called with
    the number of fights and the `FightSpec`, such as a class. None is the standard one.
    """

    encoder: Any
    reward: Any
    actions: Any
    ending: Any
    starts: Any


KINDS = tuple(PartChoices.__annotations__)


@dataclass(frozen=True)
class FightParts:
    """The parts around an engine, all for the same number of fights. Without an encoder the record itself is seen."""

    reward: Reward
    actions: ActionSet
    ending: Ending
    starts: Starts
    encoder: Encoder | None = None


def make_parts(
    n: int,
    spec: FightSpec,
    choices: PartChoices,
    *,
    random_pose: bool = False,
    full: bool = True,
    phase: int = 1,
    missing: Collection[str] = (),
) -> FightParts:
    """The parts of a choice for `n` fights that begin in `phase`; if not `full` the boss stays in it.

    What is left out is as in SoulsGym: its reward, all twenty actions, a fight to the death from the standard start.
    `missing` are fields of FIGHT that the engine does not tell.
    """
    for kind in choices:
        if kind not in KINDS:
            raise TypeError(f"unexpected keyword argument {kind!r}{suggestion(kind, KINDS)}")
    given = {kind: _own_copy(choice) for kind, choice in choices.items() if choice is not None}
    starts = given.get("starts", {"random_pose": random_pose})
    return FightParts(
        encoder=make_encoder(given["encoder"], n, spec) if "encoder" in given else None,
        reward=make_reward(given.get("reward", SOULSGYM), n, spec, missing=missing),
        actions=make_actions(given.get("actions", "all")),
        ending=make_ending(given.get("ending", "standard")),
        starts=make_starts(starts, n, spec, full=full, phase=phase),
    )


def _own_copy(choice: Any) -> Any:
    """A copy of an object that is a part: several environments may be given it, and each has fights to remember."""
    plain = isinstance(choice, (str, int, Mapping, Sequence, ActionSet)) or callable(choice)
    return choice if plain else copy.deepcopy(choice)
