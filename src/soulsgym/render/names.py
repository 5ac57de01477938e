"""Names as players read them."""

from __future__ import annotations

import re

import numpy as np

from soulsgym.actions import DIRECTIONS, Button
from soulsgym.labels import boss_moves_by_label
from soulsgym.spec import FightSpec

UNKNOWN = "unknown"
BUTTON_NAMES = {Button.LIGHT: "light attack", Button.HEAVY: "heavy attack", Button.PARRY: "parry"}
DIRECTION_NAMES = dict(
    zip(
        DIRECTIONS,
        ("forward", "forward right", "right", "back right", "back", "back left", "left", "forward left"),
        strict=True,
    )
)


def plain_name(name: str) -> str:
    """A name of the data files in words: beast_tail as beast tail, RunStopLeft as run stop left."""
    return re.sub(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[0-9])(?=[A-Z])|_", " ", name).lower()


def control_name(control: np.void) -> str:
    """What was pressed, in words."""
    direction, button = int(control["direction"]), Button(int(control["button"]))
    way = DIRECTION_NAMES[DIRECTIONS[direction]] if 0 <= direction < len(DIRECTIONS) else ""
    if button == Button.NONE:
        return f"walk {way}" if way else "nothing"
    if button == Button.ROLL:
        return f"roll {way}" if way else "backstep"
    return f"{way} {BUTTON_NAMES[button]}".strip()


def player_label_names(spec: FightSpec) -> list[str]:
    """By label: what the player does; the last one stands for the unknown label, -1."""
    player = spec.player
    known = dict.fromkeys((*player.flinch_animations, player.flinch_after_animation), "flinch")
    known |= dict.fromkeys(player.fall_animations, "fall") | dict.fromkeys(player.roll.animations, "roll")
    for move in reversed(player.moves):
        known[move.animation] = move.name
    return [*(plain_name(known.get(label.name, label.name)) for label in spec.player_animations), UNKNOWN]


def boss_label_names(spec: FightSpec, phase: int) -> list[str]:
    """By label: what the boss does in a phase; the last one stands for the unknown label, -1."""
    moves, known = boss_moves_by_label(spec, phase), {move.animation: move.name for move in reversed(spec.boss.moves)}
    names = (
        spec.boss.moves[moves[i]].name if i in moves else known.get(name, name)
        for i, name in enumerate(spec.boss_animations)
    )
    return [*map(plain_name, names), UNKNOWN]
