"""The player rolls."""

from __future__ import annotations

from typing import Any

from soulsgym.compiling import inner
from soulsgym.parts.rewards.term import term
from soulsgym.spec import FightSpec


def rolls(spec: FightSpec) -> dict[str, list[int]]:
    """The ids of the animations that the player's roll is shown by."""
    names = [animation.name for animation in spec.player_animations]
    return {"animations": [names.index(name) for name in spec.player.roll.animations]}


@term("roll", "-1 in a rolling animation", facts=rolls)
@inner
def roll(fight: Any, facts: Any) -> float:
    """Once for a call, however many steps it stands for."""
    for animation in facts.animations:
        if fight.player_animation == animation:
            return -1.0
    return 0.0
