"""Rewards by name, and how one is made."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from soulsgym.compiling import is_compiled
from soulsgym.errors import MisuseError
from soulsgym.parts.registry import find, make_part, refuse_unknown, register, resolve, takes_fights
from soulsgym.parts.rewards.reward import Reward
from soulsgym.parts.rewards.term import KIND, TermKind, check_needs, make_term
from soulsgym.parts.rewards.terms import ORDER
from soulsgym.parts.rewards.weighted import WeightedReward
from soulsgym.spec import FightSpec

Weights = Mapping[str, float]

PRESETS: Mapping[str, Weights] = MappingProxyType(
    {
        # Without the cost of distance, players learn to run away; with these weights three of three seeds did not.
        "duel": {"dealt": 6.0, "taken": 3.0, "win": 3.0, "far": 0.03},
        # The default of SoulsGym.
        "soulsgym": {"dealt": 1.0, "taken": 1.0, "win": 0.1, "death": 0.1, "centre": 0.01},
        # The last reward of RL-Souls, the only one of its series that beat both phases.
        "rl-souls": {"dealt": 1.2, "taken": 1.0, "win": 5.0, "death": 0.1, "centre": 0.02},
    }
)
SOULSGYM: Mapping[str, Any] = MappingProxyType(
    {"preset": "soulsgym", "weights": {"win": 0.0, "death": 0.0, "end": PRESETS["soulsgym"]["win"]}}
)
"""SoulsGym's reward as its environments show it, with winning and dying as one term."""

for _name, _weights in PRESETS.items():
    register("reward", _name, origin=__name__)(_weights)


def make_reward(
    given: Any, n: int, spec: FightSpec, *, weights: Weights = MappingProxyType({}), missing: Collection[str] = ()
) -> Reward:
    """The reward that is meant by `given`, for `n` fights.

    That is a preset's name; a table of a preset and `weights` that replace those of its terms or add terms; a reward;
    a class or function that makes one of `n` and `spec`; or a function that is a term by itself. `missing` are fields
    of FIGHT that the engine does not tell: terms that need them are refused, and rewards with such a field in `needs`.
    """
    part, settings = resolve("reward", given, key="preset", default={})
    if isinstance(part, Mapping):
        refuse_unknown("reward", settings, ("weights",))
        own = {**settings.get("weights", {}), **weights}
        terms = _terms({**part, **_check_weights(own)}, given)
    elif is_compiled(part) or takes_fights(part):
        name = getattr(part, "__name__", "")
        terms = [(make_term(name if name.isidentifier() else "reward", part), 1.0)]
    else:
        settings |= {"weights": weights} if weights else {}
        reward: Reward = make_part("reward", part, n, spec, keys=("preset",), **settings)
        what, needs = f"reward {type(reward).__name__}", getattr(reward, "needs", ())
        check_needs(what, needs)
        _refuse_missing(what, needs, missing, "use another one")
        return reward
    for term, _ in terms:
        _refuse_missing(f"reward term {term.name!r}", term.needs, missing, "give it the weight 0")
    return WeightedReward(n, spec, terms, checked=any(term.name not in ORDER for term, _ in terms))


def weights_of(name: str) -> Weights:
    """The weights of a reward by name; none if it is no sum of terms."""
    part = find("reward", name)
    return part if isinstance(part, Mapping) else {}


def _check_weights(weights: Mapping[str, Any]) -> Weights:
    """The same weights, if they are finite numbers of known terms."""
    for name, weight in weights.items():
        find(KIND, name)
        is_number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
        if not is_number or not math.isfinite(weight):
            raise MisuseError(f"weight of reward term {name!r} is {weight!r}; give a finite number")
    return weights


def _terms(weights: Weights, given: Any) -> list[tuple[TermKind, float]]:
    """The terms that have a weight: ours in their order, then others by name."""
    own = sorted(name for name in weights if name not in ORDER)
    terms = [(find(KIND, name), weights[name]) for name in (*ORDER, *own) if weights.get(name)]
    if not terms:
        raise MisuseError(f"reward {given!r} has no term left; give one of them a weight other than 0")
    return terms


def _refuse_missing(what: str, needs: Collection[str], missing: Collection[str], way_out: str) -> None:
    for field in needs:
        if field in missing:
            raise MisuseError(f"{what} needs {field!r}, which this engine cannot tell; {way_out}")
