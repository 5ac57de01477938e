"""Classes of animations: labels that mean the same to a player are one, in the order of their first appearance."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from soulsgym.parts.encoders.encoder import Int64s
from soulsgym.spec import FightSpec

UNKNOWN = -1

MOVEMENT = "Movement"
BOSS_GROUPS = {MOVEMENT: r"Walk.*|Turn.*"}
PLAYER_GROUPS = {
    "AddDamage": r"AddDamage.*",
    "Free": r"Idle|Move|None|RunStop.*",
    "QuickTurn": r"QuickTurn.*",
    "LandFace": r"LandFace.*",
    "Land": r"Land|LandLow",
    "Fall": r"Fall.*",
}
"""Name of a group and the whole names that belong to it; every other animation is a class of its own."""


@dataclass(frozen=True)
class AnimationClasses:
    """The names of the classes, and for every animation id the number of its class."""

    names: tuple[str, ...]
    of_id: Int64s

    def __len__(self) -> int:
        return len(self.names)

    def number(self, name: str) -> int:
        """The number of a class, or -1 if no animation belongs to it."""
        return self.names.index(name) if name in self.names else UNKNOWN


def boss_classes(spec: FightSpec) -> AnimationClasses:
    """Every attack is a class of its own; walking and turning are one."""
    return _grouped(spec.boss_animations, BOSS_GROUPS)


def player_classes(spec: FightSpec) -> AnimationClasses:
    """Every attack, roll and blow taken is a class of its own; standing and walking are one."""
    return _grouped([animation.name for animation in spec.player_animations], PLAYER_GROUPS)


def _grouped(animations: Sequence[str], groups: Mapping[str, str]) -> AnimationClasses:
    labels = [_group_of(name, groups) for name in animations]
    names = tuple(dict.fromkeys(labels))
    return AnimationClasses(names, np.array([names.index(label) for label in labels], np.int64))


def _group_of(animation: str, groups: Mapping[str, str]) -> str:
    return next((name for name, pattern in groups.items() if re.fullmatch(pattern, animation)), animation)
