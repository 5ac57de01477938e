"""What the labels of an observation stand for: the moves behind the ids of animations."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.spec import FightSpec
from soulsgym.spec.game import boss_moves_by_animation
from soulsgym.state import Fights


def player_labels(spec: FightSpec) -> list[str]:
    """The names of the player's labels, in the order of their ids."""
    return [label.name for label in spec.player_animations]


def label_begins(label: npt.NDArray[Any], shown_s: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Where in a row of records another label appears, or the same one again; always at the first record."""
    begins = np.ones(len(label), np.bool_)
    begins[1:] = (label[1:] != label[:-1]) | (shown_s[1:] < shown_s[:-1])
    return begins


def without_unknown_labels(fights: Fights, spec: FightSpec) -> Fights:
    """A copy of the records in which labels that this fight does not have are -1."""
    fights = fights.copy()
    known = {"player_animation": len(spec.player_animations), "boss_animation": len(spec.boss_animations)}
    for name, count in known.items():
        fights[name][(fights[name] < 0) | (fights[name] >= count)] = -1
    return fights


def boss_moves_by_label(spec: FightSpec, phase: int) -> dict[int, int]:
    """The move behind each label in a phase."""
    by_phase = boss_moves_by_animation(spec.boss)
    moves = by_phase[min(max(phase, 1), len(by_phase)) - 1]
    return {label: moves[name] for label, name in enumerate(spec.boss_animations) if name in moves}
