"""What the boss's blows cost the player."""

from __future__ import annotations

from typing import Any

from soulsgym.compiling import inner
from soulsgym.parts.rewards.term import term


@term("taken", "minus the damage taken, as a share of the player's health")
@inner
def taken(fight: Any) -> Any:
    """By the player's full health."""
    return -fight.damage_taken / fight.player_max_hp
