"""The environment ids."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode

from soulsgym.envs.fights import FightSettings
from soulsgym.envs.single import FightEnv
from soulsgym.envs.vector import FightVectorEnv
from soulsgym.movesets import STANDARD

MAX_EPISODE_STEPS = 3000
"""About five minutes of the game."""


def iudex(
    phase: int = 1,
    random_player_pose: bool = False,
    skip_steps: bool = False,
    randomize: float = 0.0,
    variant: str = STANDARD,
    game_speed: float = 1.0,
    render_mode: str | None = None,
) -> FightEnv:
    """One phase of Iudex Gundyr for all his health. `game_speed` paces the window; the simulator waits for nothing."""
    settings = FightSettings("iudex", phase, False, random_player_pose, skip_steps, randomize, variant)
    return FightEnv(settings, render_mode=render_mode, game_speed=game_speed)


def iudex_demo(
    random_player_pose: bool = False,
    skip_steps: bool = False,
    randomize: float = 0.0,
    variant: str = STANDARD,
    game_speed: float = 1.0,
    render_mode: str | None = None,
) -> FightEnv:
    """The full fight: he goes on to his second phase."""
    settings = FightSettings("iudex", 1, True, random_player_pose, skip_steps, randomize, variant)
    return FightEnv(settings, render_mode=render_mode, game_speed=game_speed)


def iudex_vector(
    num_envs: int = 1,
    phase: int = 1,
    random_player_pose: bool = False,
    skip_steps: bool = False,
    randomize: float = 0.0,
    variant: str = STANDARD,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    threads: int = 1,
    max_episode_steps: int | None = None,
    **more: Any,
) -> FightVectorEnv:
    """Many fights of one phase."""
    settings = FightSettings("iudex", phase, False, random_player_pose, skip_steps, randomize, variant)
    return _vector(settings, num_envs, max_episode_steps, autoreset_mode, threads, more)


def iudex_demo_vector(
    num_envs: int = 1,
    random_player_pose: bool = False,
    skip_steps: bool = False,
    randomize: float = 0.0,
    variant: str = STANDARD,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    threads: int = 1,
    max_episode_steps: int | None = None,
    **more: Any,
) -> FightVectorEnv:
    """Many full fights."""
    settings = FightSettings("iudex", 1, True, random_player_pose, skip_steps, randomize, variant)
    return _vector(settings, num_envs, max_episode_steps, autoreset_mode, threads, more)


def _vector(
    settings: FightSettings,
    num_envs: int,
    max_episode_steps: int | None,
    autoreset_mode: AutoresetMode | str,
    threads: int,
    more: dict[str, Any],
) -> FightVectorEnv:
    more.pop("game_speed", None)  # paces a window, and a batch has none
    return FightVectorEnv(
        settings,
        num_envs,
        max_episode_steps=max_episode_steps,
        autoreset_mode=autoreset_mode,
        threads=threads,
        **more,
    )


SIMULATED = {
    "SoulsGymIudexSim-v0": ("iudex", "iudex_vector"),
    "SoulsGymIudexSimDemo-v0": ("iudex_demo", "iudex_demo_vector"),
}


def register_all() -> None:
    """Make the ids known to Gymnasium."""
    for name, (single, vector) in SIMULATED.items():
        gymnasium.register(
            name,
            entry_point=f"{__name__}:{single}",
            vector_entry_point=f"{__name__}:{vector}",
            max_episode_steps=MAX_EPISODE_STEPS,
        )
