"""Fights in the running game as Gymnasium environments, with the ids and keywords of SoulsGym."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from soulsgym.batch import FightBatch
from soulsgym.envs.single import Observation, checked_render_mode
from soulsgym.envs.soulsenv import SoulsEnv
from soulsgym.errors import MisuseError
from soulsgym.game.attach import Game
from soulsgym.game.capture import Frames
from soulsgym.game.engine import GameOptions
from soulsgym.parts import PartChoices, make_parts
from soulsgym.rehearsal.engine import RehearsalOptions
from soulsgym.spec import load_fight
from soulsgym.state import Fights
from soulsgym.target import fields_not_told, open_target

RESOLUTION = (90, 160)
"""Height and width of the picture that an agent sees, unless told otherwise."""


class GameEnv(SoulsEnv):
    """A fight in the running game. Close it: that leaves the game as it was found.

    Without `changes` it is a training fight: health is counted here and restored in the game, and the boss stays in one
    phase. With it whoever dies is dead. `rehearse` is a file of a boss, or an overlay, that stands in for the game in a
    process of its own, `pace` steps a second.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 (Gymnasium declares it so)

    def __init__(
        self,
        boss: str,
        changes: bool = False,
        game_speed: float = 1.0,
        phase: int = 1,
        random_player_pose: bool = False,
        skip_steps: bool = False,
        stepping: str = "auto",
        pid: int | None = None,
        launch: str | Sequence[str] | None = None,
        render_mode: str | None = None,
        *,
        display: str = "",
        rehearse: str = "",
        pace: float = 0.0,
        decisions: bool = False,
        zero_based: bool = False,
        **choices: Unpack[PartChoices],
    ) -> None:
        checked_render_mode(render_mode, self.metadata["render_modes"])
        options = (
            RehearsalOptions(rehearse, pace) if rehearse else GameOptions(game_speed, stepping, pid, launch, display)
        )
        spec = load_fight(boss, moves=bool(rehearse))
        self.plan = spec.game
        missing = fields_not_told(spec, options)
        parts = make_parts(1, spec, choices, random_pose=random_player_pose, full=changes, phase=phase, missing=missing)
        self._engine = open_target(spec, options, phase=phase, changes=changes)
        batch = FightBatch(
            self._engine,
            parts,
            decisions=skip_steps or decisions,
            autoreset=AutoresetMode.DISABLED,
            move_names=self.plan.move_names,
        )
        super().__init__(batch, spec, render_mode, phase=phase, zero_based=zero_based, bools=True)
        # A boss names what he builds up in the player, such as frost; the title has the numbers that belong to it.
        names = self._engine.statuses.dtype.names or ()
        self._statuses = tuple(name for name in names if name.startswith(self.plan.statuses))
        if self._statuses and isinstance(self.observation_space, spaces.Dict):
            share = spaces.Box(0.0, 1.0, (1,), np.float32)
            self.observation_space = spaces.Dict(
                {**self.observation_space.spaces, **dict.fromkeys(self._statuses, share)}
            )

    @property
    def game(self) -> Any:
        """The title of the running game with all its properties, such as `player_hp`."""
        return self._attached.title

    @property
    def _attached(self) -> Game:
        """The game that is attached now; another one after a restart."""
        return self._engine.games[0]

    def _observation(self, record: Fights) -> Observation:
        observation = super()._observation(record)
        if self._statuses and isinstance(observation, dict):
            observation |= {name: self._engine.statuses[name][0].copy() for name in self._statuses}
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
    """A fight of which the agent sees the game's screen alone, `resolution` high and wide."""

    def __init__(self, boss: str, *, resolution: tuple[int, int] = RESOLUTION, **keywords: Any) -> None:
        height, width = resolution
        if not (1 <= height <= 4320 and 1 <= width <= 7680):
            raise MisuseError(f"resolution {tuple(resolution)} is not possible; give (height, width) in pixels")
        if keywords.get("encoder") is not None:
            raise MisuseError("encoder cannot be used with the screen; give it to an environment of the state")
        self._size = int(height), int(width)
        self._frames: tuple[Game, Frames] | None = None
        super().__init__(boss=boss, **keywords)
        self.observation_space = spaces.Box(0, 255, (*self._size, 3), np.uint8)

    def _observation(self, record: Fights) -> Observation:
        if self._frames is None or self._frames[0] is not self._attached:
            self._frames = self._attached, Frames(self._attached, self._size)
        return self._frames[1].frame()
