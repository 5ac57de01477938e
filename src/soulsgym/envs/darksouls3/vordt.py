"""Vordt of the Boreal Valley by SoulsGym's names."""

from __future__ import annotations

from typing import Any

from soulsgym.core.game_state import GameState
from soulsgym.envs.darksouls3 import arena_limits, with_stand_in
from soulsgym.envs.game import GameEnv
from soulsgym.envs.registry import WITHOUT_CENTRE
from soulsgym.envs.soulsenv import of_boss, standard_reward
from soulsgym.spec import load_fight

SPEC = load_fight("vordt", moves=False)
VordtState = GameState


@of_boss
class VordtEnv(GameEnv):
    """Training: one phase for all of his health."""

    ENV_ID = "vordt"
    BONFIRE = SPEC.game.bonfire
    ARENA_LIM_LOW, ARENA_LIM_HIGH = arena_limits(SPEC)

    def __init__(self, game_speed: float = 1.0, phase: int = 1, skip_steps: bool = False, **keywords: Any) -> None:
        super().__init__(
            **{"boss": self.ENV_ID, "reward": WITHOUT_CENTRE, **with_stand_in(keywords)},
            game_speed=game_speed,
            phase=phase,
            skip_steps=skip_steps,
        )

    @staticmethod
    def compute_reward(game_state: GameState, next_game_state: GameState) -> float:
        """SoulsGym's reward of a step: damage and the end."""
        return standard_reward(game_state, next_game_state, None)
