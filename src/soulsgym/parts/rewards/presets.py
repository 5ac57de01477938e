"""Rewards by name, and how one is made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from soulsgym.errors import MisuseError, suggestion
from soulsgym.parts.rewards.own import OWN_TERMS
from soulsgym.parts.rewards.reward import Reward
from soulsgym.parts.rewards.terms import TERMS
from soulsgym.parts.rewards.weighted import NO_ANIMATION, WeightedReward
from soulsgym.spec import FightSpec

PRESETS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        # Without the cost of distance, players learn to run away; with these weights three of three seeds did not.
        "duel": {"dealt": 6.0, "taken": 3.0, "win": 3.0, "far": 0.03},
        # The default of SoulsGym.
        "soulsgym": {"dealt": 1.0, "taken": 1.0, "win": 0.1, "death": 0.1, "centre": 0.01},
        # The last reward of RL-Souls, the only one of its series that beat both phases.
        "rl-souls": {"dealt": 1.2, "taken": 1.0, "win": 5.0, "death": 0.1, "centre": 0.02},
    }
)
ROLL_ANIMATIONS = ("RollingMedium", "RollingMediumSelftra")


def make_reward(preset: str, n: int, spec: FightSpec, *, weights: Mapping[str, float] = MappingProxyType({})) -> Reward:
    """The reward of a preset for `n` fights; `weights` replace those of its terms or add terms."""
    if preset not in PRESETS:
        raise MisuseError(f"reward preset {preset!r} is not known{suggestion(preset, tuple(PRESETS))}")
    for name, weight in weights.items():
        _check(name, weight)
    all_weights = {**PRESETS[preset], **weights}
    if not any(all_weights.values()):
        raise MisuseError(f"reward {preset!r} has no term left; give one of them a weight other than 0")
    first, second = (_animation(spec, name) for name in ROLL_ANIMATIONS)
    own = {name: OWN_TERMS[name](n, spec) for name, weight in weights.items() if name in OWN_TERMS and weight}
    return WeightedReward(n, all_weights, centre_m=spec.arena.centre_m, roll_animations=(first, second), own=own)


def _check(name: str, weight: object) -> None:
    known = (*TERMS, *OWN_TERMS)
    if name not in known:
        raise MisuseError(f"reward term {name!r} is not known{suggestion(name, known)}")
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not math.isfinite(weight):
        raise MisuseError(f"weight of reward term {name!r} is {weight!r}; give a finite number")


def _animation(spec: FightSpec, name: str) -> int:
    names = [animation.name for animation in spec.player_animations]
    return names.index(name) if name in names else NO_ANIMATION
