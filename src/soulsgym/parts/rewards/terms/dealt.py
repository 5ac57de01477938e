"""What the player's blows cost the boss."""

from __future__ import annotations

from typing import Any

from soulsgym.compiling import inner
from soulsgym.parts.rewards.term import term


@term("dealt", "damage dealt, as a share of the boss's health")
@inner
def dealt(fight: Any) -> Any:
    """By the boss's full health."""
    return fight.damage_dealt / fight.boss_max_hp
