"""Parts of an environment: encoders, rewards, actions, endings, starts, and how a user chooses them."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from soulsgym.errors import MisuseError
from soulsgym.parts.actions import ActionSet, make_actions
from soulsgym.parts.encoders import ENCODERS, Encoder, make_encoder
from soulsgym.parts.endings import AnyOf, Ending, FightOver, make_ending
from soulsgym.parts.rewards import Reward, SoulsGymReward, make_reward
from soulsgym.parts.starts import Starts, make_starts
from soulsgym.spec import FightSpec
from soulsgym.spec.reader import suggestion

STEP_LIMIT = 3000
"""Environment steps after which an ending that is given by name or settings cuts a fight off."""
ENDINGS: dict[str, dict[str, Any]] = {"fight_over": {}, "no_hit": {"no_hit": True}}
STARTS: dict[str, dict[str, Any]] = {
    "standard": {},
    "random_pose": {"random_pose": True},
    "mid_fight": {"mid_fight": 0.5},
}
"""Settings by name; half of the fights of `mid_fight` begin in the middle."""
SETTINGS = {
    "encoder": ("name", "history"),
    "reward": ("preset", "weights"),
    "actions": ("preset", "names"),
    "ending": ("step_limit", "no_hit"),
    "starts": ("random_pose", "mid_fight", "boss_hp_share", "player_hp_share", "late_phase", "curriculum"),
}
"""The keys of a part that is given as a dict."""
METHODS = {
    "encoder": ("size", "begin", "encode"),
    "reward": ("names", "begin", "of"),
    "actions": ("names", "numbers", "open"),
    "ending": ("of", "won"),
    "starts": ("draw", "report", "is_standard"),
}
"""What an object has to have to be used as a part."""


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
) -> FightParts:
    """The parts of a choice for `n` fights that begin in `phase`; if not `full` the boss stays in it.

    What is left out is as in SoulsGym: its reward, all twenty actions, a fight to the death from the standard start.
    """
    for kind in choices:
        if kind not in SETTINGS:
            raise TypeError(f"unexpected keyword argument {kind!r}{suggestion(kind, tuple(SETTINGS))}")
    fight = {"full": full, "phase": phase}
    encoder = _part("encoder", choices, n, spec, lambda **given: make_encoder(n=n, spec=spec, **given))
    reward = _part("reward", choices, n, spec, lambda **given: make_reward(n=n, spec=spec, **given))
    actions = _part("actions", choices, n, spec, make_actions)
    ending = _part("ending", choices, n, spec, lambda **given: make_ending(**_ENDING | given))
    starts = _part("starts", choices, n, spec, lambda **given: make_starts(n, spec, **{**fight, **given}))
    return FightParts(
        encoder=encoder,
        reward=reward or SoulsGymReward(n, spec.arena.centre_m),
        actions=actions or make_actions(),
        # A fight that is over cannot go on, whatever else a user's own rule says.
        ending=AnyOf(FightOver(), ending) if ending else FightOver(),
        starts=starts or make_starts(n, spec, random_pose=random_pose),
    )


_ENDING: dict[str, Any] = {"step_limit": STEP_LIMIT, "no_hit": False}


def _part(kind: str, choices: PartChoices, n: int, spec: FightSpec, make: Any) -> Any:
    given = choices.get(kind)
    if given is None:
        return None
    if isinstance(given, (str, Mapping)) or (kind == "actions" and isinstance(given, Sequence)):
        return make(**_settings(kind, given))
    if _is_part(kind, given) and not isinstance(given, type):
        # A copy: several environments may be given the same object, and each has its own fights to remember.
        return copy.deepcopy(given)
    if not callable(given):
        raise MisuseError(
            f"{kind} {given!r} cannot be used; give a name, a dict of settings, or an object or a class "
            f"with {', '.join(METHODS[kind])}"
        )
    made = given(n, spec)
    if not _is_part(kind, made):
        missing = [name for name in METHODS[kind] if not hasattr(made, name)]
        raise MisuseError(f"{kind} {type(made).__name__} has no {', '.join(missing)}; write what is missing")
    return made


def _settings(kind: str, given: Any) -> dict[str, Any]:
    """A name, a list of actions or a mapping as keywords."""
    if isinstance(given, str):
        return _by_name(kind, given)
    if not isinstance(given, Mapping):
        return {"names": tuple(given)}
    for key in given:
        if key not in SETTINGS[kind]:
            raise MisuseError(f"{kind} has no setting {key!r}{suggestion(str(key), SETTINGS[kind])}")
    defaults = {"encoder": {"name": next(iter(ENCODERS))}, "reward": {"preset": "soulsgym"}}
    return {**defaults.get(kind, {}), **given}


def _by_name(kind: str, name: str) -> dict[str, Any]:
    named = {"ending": ENDINGS, "starts": STARTS}.get(kind)
    if named is None:
        return {"name" if kind == "encoder" else "preset": name}
    if name not in named:
        raise MisuseError(f"{kind} {name!r} is not known{suggestion(name, tuple(named))}")
    return named[name]


def _is_part(kind: str, given: object) -> bool:
    return all(hasattr(given, name) for name in METHODS[kind])
