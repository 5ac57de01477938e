"""Makes environments on the simulator."""

from __future__ import annotations

from gymnasium.vector import AutoresetMode

from soulsgym.envs.fights import FightSettings
from soulsgym.envs.single import FightEnv
from soulsgym.envs.vector import FightVectorEnv
from soulsgym.spec import STANDARD


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
