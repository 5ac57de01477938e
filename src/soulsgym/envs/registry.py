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

SIMULATED: dict[str, dict[str, Any]] = {
    "SoulsGymIudexSim-v0": {"boss": "iudex", "changes": False},
    "SoulsGymIudexSimDemo-v0": {"boss": "iudex", "changes": True},
}
"""By id: whom to fight, and whether he goes on to his next phase or stays in one for all his health."""


def fight(
    boss: str,
    changes: bool,
    phase: int = 1,
    random_player_pose: bool = False,
    skip_steps: bool = False,
    randomize: float = 0.0,
    variant: str = STANDARD,
    game_speed: float = 1.0,
    render_mode: str | None = None,
) -> FightEnv:
    """One fight. `game_speed` paces the window; the simulator waits for nothing."""
    settings = FightSettings(boss, phase, changes, random_player_pose, skip_steps, randomize, variant)
    return FightEnv(settings, render_mode=render_mode, game_speed=game_speed)


def fights(
    boss: str,
    changes: bool,
    num_envs: int = 1,
    phase: int = 1,
    random_player_pose: bool = False,
    skip_steps: bool = False,
    randomize: float = 0.0,
    variant: str = STANDARD,
    game_speed: float = 1.0,
    render_mode: str | None = None,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    threads: int = 1,
    max_episode_steps: int | None = None,
) -> FightVectorEnv:
    """Many fights side by side. `game_speed` is taken so that one set of keywords serves both, and paces nothing."""
    settings = FightSettings(boss, phase, changes, random_player_pose, skip_steps, randomize, variant)
    return FightVectorEnv(
        settings,
        num_envs,
        max_episode_steps=max_episode_steps,
        autoreset_mode=autoreset_mode,
        threads=threads,
        render_mode=render_mode,
    )


def register_all() -> None:
    """Make the ids known to Gymnasium."""
    for name, fixed in SIMULATED.items():
        gymnasium.register(
            name,
            entry_point=f"{__name__}:fight",
            vector_entry_point=f"{__name__}:fights",
            max_episode_steps=MAX_EPISODE_STEPS,
            kwargs=fixed,
        )
