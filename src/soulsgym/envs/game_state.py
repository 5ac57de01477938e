"""Where SoulsGym had GameState for a while."""

from soulsgym.core.game_state import GameState

__all__ = ["GameState"]
