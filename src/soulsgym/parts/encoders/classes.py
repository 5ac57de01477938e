"""Classes of animations: labels that mean the same to a player are one, in the order of their first appearance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from soulsgym.compiling import inner
from soulsgym.parts.encoders.encoder import Int64s
from soulsgym.spec import FightSpec

UNKNOWN = -1

MOVEMENT = "Movement"
MOVEMENT_KINDS = ("walk", "strafe", "retreat", "turn")
"""Kinds of the boss's moves that are one to a player."""


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


@inner
def class_of(animation: int, of_id: Any) -> int:
    """The number of an animation's class, -1 for one that is not in the table."""
    return int(of_id[animation]) if 0 <= animation < len(of_id) else UNKNOWN


def boss_classes(spec: FightSpec) -> AnimationClasses:
    """Every attack is a class of its own; walking and turning are one."""
    moving = {move.animation for move in spec.boss.moves if move.kind in MOVEMENT_KINDS}
    return _classes([MOVEMENT if name in moving else name for name in spec.boss_animations])


def player_classes(spec: FightSpec) -> AnimationClasses:
    """The groups of the player's animations, as his labels' file has them."""
    return _classes([animation.group or animation.name for animation in spec.player_animations])


def _classes(labels: Sequence[str]) -> AnimationClasses:
    names = tuple(dict.fromkeys(labels))
    return AnimationClasses(names, np.array([names.index(label) for label in labels], np.int64))
