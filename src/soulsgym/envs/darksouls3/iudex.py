"""Iudex Gundyr by SoulsGym's names."""

from __future__ import annotations

from typing import Any

from soulsgym.core.game_state import GameState
from soulsgym.envs.darksouls3 import arena_limits, with_stand_in
from soulsgym.envs.game import RESOLUTION, GameEnv, ScreenEnv
from soulsgym.envs.soulsenv import SoulsEnvDemo, of_boss, standard_reward
from soulsgym.spec import load_fight

SPEC = load_fight("iudex", moves=False)
IudexState = GameState


@of_boss
class IudexEnv(GameEnv):
    """Training: one phase for all of his health. `init_pose_randomization` is an older name of `random_player_pose`."""

    ENV_ID = "iudex"
    BONFIRE = SPEC.game.bonfire
    ARENA_LIM_LOW, ARENA_LIM_HIGH = arena_limits(SPEC)

    def __init__(
        self,
        game_speed: float = 1.0,
        phase: int = 1,
        random_player_pose: bool = False,
        skip_steps: bool = False,
        *,
        init_pose_randomization: bool = False,
        **keywords: Any,
    ) -> None:
        super().__init__(
            **{"boss": self.ENV_ID, **with_stand_in(keywords)},
            game_speed=game_speed,
            phase=phase,
            random_player_pose=random_player_pose or init_pose_randomization,
            skip_steps=skip_steps,
        )

    @staticmethod
    def compute_reward(game_state: GameState, next_game_state: GameState) -> float:
        """SoulsGym's reward of a step: damage, the end, and the way to the middle of the arena."""
        return standard_reward(game_state, next_game_state, SPEC.arena.centre_m)


class IudexImgEnv(ScreenEnv, IudexEnv):
    """The same, seen on the screen."""

    def __init__(
        self,
        game_speed: float = 1.0,
        phase: int = 1,
        random_player_pose: bool = False,
        skip_steps: bool = False,
        resolution: tuple[int, int] = RESOLUTION,
        **keywords: Any,
    ) -> None:
        super().__init__(
            **{"boss": self.ENV_ID, **keywords},
            resolution=resolution,
            game_speed=game_speed,
            phase=phase,
            random_player_pose=random_player_pose,
            skip_steps=skip_steps,
        )


class IudexEnvDemo(SoulsEnvDemo, IudexEnv):
    """The full fight."""

    def __init__(self, game_speed: float = 1.0, random_player_pose: bool = False, **keywords: Any) -> None:
        IudexEnv.__init__(self, game_speed, random_player_pose=random_player_pose, **{"changes": True, **keywords})
