"""Fights in the running game as Gymnasium environments, with the ids and keywords of SoulsGym."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from soulsgym.envs.boss_env import BossEnv, Observation, checked_render_mode
from soulsgym.envs.fights import EngineBatch, FightSettings
from soulsgym.envs.spaces import FightLimits, observation_space
from soulsgym.errors import MisuseError
from soulsgym.game.attach import Game
from soulsgym.game.capture import Frames
from soulsgym.game.engine import GameOptions, open_engine
from soulsgym.parts.rewards import SOULSGYM, Reward, make_reward
from soulsgym.spec import FightSpec, load_fight
from soulsgym.spec.game import GameSetup
from soulsgym.state import Fights

RESOLUTION = (90, 160)
"""Height and width of the picture that an agent sees, unless told otherwise."""
STATUSES = ("frost_resistance", "frost_effect")


class GameEnv(BossEnv):
    """A fight in the running game. Close it: that leaves the game as it was found."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 (Gymnasium declares it so)

    def __init__(
        self,
        settings: FightSettings,
        options: GameOptions,
        *,
        render_mode: str | None = None,
    ) -> None:
        checked_render_mode(render_mode, self.metadata["render_modes"])
        spec = load_fight(settings.boss, moves=False)
        self.plan = spec.game
        self._engine = open_engine(self.plan, options, phase=settings.phase, changes=settings.changes)
        batch = EngineBatch(self._engine, reward_of(spec), self.plan.move_names, settings)
        super().__init__(batch, self._space(), render_mode)

    @property
    def game(self) -> Any:
        """The title of the running game with all its properties, such as `player_hp`."""
        return self._attached.title

    @property
    def _attached(self) -> Game:
        """The game that is attached now; another one after a restart."""
        return self._engine.games[0]

    def _space(self) -> spaces.Space[Any]:
        space = observation_space(limits_of_plan(self.plan))
        if "frost" not in self.plan.statuses:
            return space
        share = spaces.Box(0.0, 1.0, (1,), np.float32)
        return spaces.Dict(dict(space.spaces) | dict.fromkeys(STATUSES, share))

    def _observation(self, record: Fights) -> Observation:
        observation = super()._observation(record)
        if "frost" in self.plan.statuses:
            observation |= {name: self._engine.statuses[name][0].copy() for name in STATUSES}
        return observation

    def _more_info(self, record: Fights) -> dict[str, Any]:
        numbers = {key: float(record[key][0, 0]) for key in ("player_hp", "player_sp", "boss_hp")}
        return {
            **numbers,
            "phase": int(record["phase"][0]),
            "allowed_actions": np.flatnonzero(record["action_mask"][0]).tolist(),
            **copy.deepcopy(self._engine.notes[0]),
        }

    def _picture(self) -> npt.NDArray[np.uint8] | None:
        return self._attached.window.grab()


class ScreenEnv(GameEnv):
    """A fight of which the agent sees the game's screen alone."""

    def __init__(
        self,
        settings: FightSettings,
        options: GameOptions,
        *,
        resolution: tuple[int, int] = RESOLUTION,
        render_mode: str | None = None,
    ) -> None:
        height, width = resolution
        if not (1 <= height <= 4320 and 1 <= width <= 7680):
            raise MisuseError(f"resolution {tuple(resolution)} is not possible; give (height, width) in pixels")
        self._size = int(height), int(width)
        self._frames: tuple[Game, Frames] | None = None
        super().__init__(settings, options, render_mode=render_mode)

    def _space(self) -> spaces.Space[Any]:
        return spaces.Box(0, 255, (*self._size, 3), np.uint8)

    def _observation(self, record: Fights) -> Observation:
        if self._frames is None or self._frames[0] is not self._attached:
            self._frames = self._attached, Frames(self._attached, self._size)
        return self._frames[1].frame()


def reward_of(spec: FightSpec, n: int = 1) -> Reward:
    """SoulsGym's reward; only where his moves are described does the middle of the arena draw the player."""
    return make_reward(SOULSGYM, n, spec, weights={} if spec.boss.moves else {"centre": 0.0})


def limits_of_plan(plan: GameSetup) -> FightLimits:
    """The limits of a fight in the game."""
    return FightLimits(
        phases=plan.phases,
        player_hp=plan.player_hp,
        player_sp=plan.player_sp,
        player_sp_floor=plan.player_sp_floor,
        boss_hp=plan.boss_hp,
        low_m=plan.low_m,
        high_m=plan.high_m,
        player_animations=len(plan.player_animations),
        boss_animations=len(plan.boss_animations),
    )


def fight(
    boss: str,
    game_speed: float = 1.0,
    phase: int = 1,
    random_player_pose: bool = False,
    skip_steps: bool = False,
    stepping: str = "auto",
    pid: int | None = None,
    launch: str | Sequence[str] | None = None,
    render_mode: str | None = None,
) -> GameEnv:
    """A training fight: health is counted here and restored in the game, and the boss stays in one phase."""
    settings = FightSettings(boss, phase, False, random_player_pose, skip_steps)
    return GameEnv(settings, GameOptions(game_speed, stepping, pid, launch), render_mode=render_mode)


def demo_fight(
    boss: str,
    game_speed: float = 1.0,
    random_player_pose: bool = False,
    skip_steps: bool = False,
    stepping: str = "auto",
    pid: int | None = None,
    launch: str | Sequence[str] | None = None,
    render_mode: str | None = None,
) -> GameEnv:
    """The real fight: both phases, and whoever dies is dead."""
    settings = FightSettings(boss, 1, True, random_player_pose, skip_steps)
    return GameEnv(settings, GameOptions(game_speed, stepping, pid, launch), render_mode=render_mode)


def screen_fight(
    boss: str,
    game_speed: float = 1.0,
    phase: int = 1,
    random_player_pose: bool = False,
    skip_steps: bool = False,
    resolution: tuple[int, int] = RESOLUTION,
    stepping: str = "auto",
    pid: int | None = None,
    launch: str | Sequence[str] | None = None,
    render_mode: str | None = None,
) -> ScreenEnv:
    """A training fight seen on the screen."""
    settings = FightSettings(boss, phase, False, random_player_pose, skip_steps)
    options = GameOptions(game_speed, stepping, pid, launch)
    return ScreenEnv(settings, options, resolution=resolution, render_mode=render_mode)
