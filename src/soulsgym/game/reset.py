"""Setup: brings a running game to the start of a fight, stage by stage, and falls back further when one fails."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from soulsgym.errors import (
    FocusLost,
    GameError,
    GameGone,
    GameHung,
    ReadFailed,
    SpeedControlError,
    StageFailed,
)
from soulsgym.game import stages
from soulsgym.game.camera import CameraKeys
from soulsgym.game.pacing import Pacer
from soulsgym.game.titles import Boss, FightTitle, Sight, fight_title
from soulsgym.game.waits import TimeSource, Waits
from soulsgym.spec.game import GameSetup, Pose

if TYPE_CHECKING:
    from soulsgym.game.addresses import AnimationNames
    from soulsgym.game.attach import Game

log = logging.getLogger(__name__)

AGAIN, ARENA, RELOAD, RESTART = 0, 1, 2, 3
"""How far back an attempt begins: as things are, at the fog wall, at the bonfire, with another process."""
MOST_ATTEMPTS = 7
HARD_RESET_S = 900.0
"""After so long a training fight begins with a reload: the game's input has been seen to lag after hours."""
SETUP_SPEED = 3.0
"""How fast the game runs while a fight is set up."""
RECOVERABLE = (StageFailed, FocusLost, GameHung, GameGone, ReadFailed, SpeedControlError)


@dataclass(frozen=True)
class Start:
    """How a fight is to begin."""

    phase: int
    player_poses: tuple[Pose, ...]  # the first is wanted; the others will do when it cannot be had
    boss_pose: Pose
    player_hp: float = float("nan")
    player_sp: float = float("nan")
    boss_hp: float = float("nan")


@dataclass(frozen=True)
class Body:
    """The player, wherever he is."""

    pose: tuple[float, ...]
    animation: str


@dataclass(frozen=True)
class Stage:
    """One stage: what must hold when it is done, in how long, and how far back to fall if it does not."""

    name: str
    limit_s: float
    holds: str
    is_needed: Callable[[Setup, Start], bool]
    act: Callable[[Setup, Start, Waits], None]
    fall_back: int


@dataclass
class Setup:
    """One game and what is known about it between fights."""

    plan: GameSetup
    game: Game
    training: bool
    source: TimeSource
    choose: Callable[[Game], Pacer]
    relaunch: Callable[[Game], Game] | None = None
    hard_reset_s: float = HARD_RESET_S
    speed: float = SETUP_SPEED
    camera: CameraKeys = field(default_factory=CameraKeys)
    pacer: Pacer | None = None
    sight: Sight | None = None
    in_arena: bool = False
    phase: int = 0  # the boss's in the game; 0 is not known
    fought: bool = False
    reload_because: str = "nothing is known about the game yet"
    values_hold: bool = False
    boss_holds: bool = False
    keys_work: bool = False
    weapon_works: bool = False
    pressing_works: bool = False
    at_fog_wall: bool = False  # enter the arena without a reload
    reloaded_at: float = 0.0
    notes: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._stages: dict[str, float] = {}
        _ = self.boss, self.names  # refused now if the title lacks them

    @property
    def title(self) -> FightTitle:
        """The title of the game that runs now."""
        return fight_title(self.game.title)

    @property
    def boss(self) -> Boss:
        """The boss in the game that runs now."""
        return self.title.boss(self.plan.boss)

    @property
    def names(self) -> AnimationNames:
        """What the names of animations mean."""
        return self.title.names

    def look(self) -> Sight:
        """What is seen now. A game that ticks faster than its memory can be read is stopped for it."""
        clock = self.game.clock
        try:
            return self.title.look(self.plan.boss)
        except ReadFailed:
            speed = clock.speed
            if speed == 0.0:
                raise
            clock.pause()
            try:
                return self.title.look(self.plan.boss)
            finally:
                clock.set_speed(speed)

    def body(self) -> Body:
        """The player alone, who can be seen where the boss cannot."""
        title = self.title
        return Body(tuple(map(float, title.player_pose)), title.player_animation)

    def run(self, start: Start) -> Sight:
        """Bring the game to the start of a fight, or say in one sentence what was tried."""
        begun, level, tried = self.source.now(), AGAIN, list[str]()
        self._stages = {}
        for _ in range(MOST_ATTEMPTS):
            try:
                self._run_stages(start)
            except RECOVERABLE as error:
                stage, reason = self._where(error)
                tried.append(f"{stage.name}: {reason}")
                log.warning("setting up a fight failed at %s: %s", stage.name, reason)
                level = max(level + 1, RESTART if isinstance(error, GameGone) else stage.fall_back)
                if level > RESTART or (level == RESTART and self.relaunch is None):
                    break
                self._fall_back(level, f"{stage.name} failed", tried)
            else:
                self.notes |= {
                    "reset_s": self.source.now() - begun,
                    "stages": dict(self._stages),
                    "attempts": tried,
                }
                assert self.sight is not None
                return self.sight
        self.notes |= {"reset_s": self.source.now() - begun, "stages": dict(self._stages), "attempts": tried}
        raise StageFailed("reset", _gave_up(tried, self.relaunch is None))

    def note_failure(self, error: GameError) -> None:
        """A fight was broken off by this; the next one must not trust what was set up."""
        self.in_arena = self.keys_work = False
        self.reload_because = f"the last fight broke off: {error}"

    def _run_stages(self, start: Start) -> None:
        for stage in STAGES:
            self._current = stage
            if not stage.is_needed(self, start):
                continue
            begin = self.source.now()
            waits = Waits(stage.name, stage.limit_s, self.source, self.game.process.is_running, self._pulse)
            try:
                stage.act(self, start, waits)
            finally:
                self._stages[stage.name] = self._stages.get(stage.name, 0.0) + self.source.now() - begin

    def _pulse(self) -> int:
        return self.game.clock.queries

    def _where(self, error: GameError) -> tuple[Stage, str]:
        if not isinstance(error, GameGone) and not self.game.process.is_running():
            return self._current, "the game has ended"
        return self._current, error.reason if isinstance(error, StageFailed) else str(error)

    def _fall_back(self, level: int, reason: str, tried: list[str]) -> None:
        self.keys_work = self.at_fog_wall = self.in_arena = False
        if level == ARENA:
            self.at_fog_wall = True
        elif level == RELOAD:
            self.reload_because = reason
        else:
            self._restart(tried)

    def _restart(self, tried: list[str]) -> None:
        assert self.relaunch is not None
        try:
            self.game = self.relaunch(self.game)
        except GameError as error:
            tried.append(f"restart: {error}")
            raise StageFailed("reset", _gave_up(tried, False)) from error
        self.pacer, self.phase = None, 0
        self.weapon_works = self.pressing_works = self.values_hold = self.boss_holds = False
        self.reload_because = "the game was restarted"
        self.notes["restarts"] = self.notes.get("restarts", 0) + 1


def _gave_up(tried: list[str], without_relaunch: bool) -> str:
    way_out = "give a launch command so that it can be restarted, or " if without_relaunch else ""
    return f"the fight could not be set up ({'; '.join(tried)}); {way_out}look at the game and run souls doctor"


def wanted_pose(plan: GameSetup, given: np.ndarray[Any, Any], standard: Pose) -> Pose:
    """A pose given as x, y and heading, with the height of the nearest known place; NaN stands for the standard one."""
    if np.isnan(given[0]):
        return standard
    x, y, heading = map(float, given)
    known = (*plan.player_starts, plan.boss_start)
    nearest = min(known, key=lambda pose: (pose[0] - x) ** 2 + (pose[1] - y) ** 2)
    return x, y, nearest[2], heading


STAGES: tuple[Stage, ...] = (
    Stage("focus", 10.0, "the window has the focus, no key is down", stages.always, stages.focus, RESTART),
    Stage("in_game", 120.0, "a character is loaded", stages.always, stages.in_game, RESTART),
    Stage("values", 10.0, "what is read can be true", stages.values_are_unsure, stages.values, RESTART),
    Stage("flags", 5.0, "character and world are those of the fight", stages.always, stages.flags, RELOAD),
    Stage("reload", 90.0, "the player stands at the bonfire", stages.reload_is_due, stages.reload, RESTART),
    Stage("menu", 15.0, "keys reach the player", stages.keys_are_unsure, stages.menu, RELOAD),
    Stage("fog_gate", 45.0, "the player has passed the fog wall", stages.is_outside, stages.fog_gate, RELOAD),
    Stage("arena", 10.0, "player and boss are alive", stages.always, stages.arena, RELOAD),
    Stage("weapon", 15.0, "an attack key gives an attack", stages.weapon_is_unsure, stages.weapon, RELOAD),
    Stage("pressing", 30.0, "keys have an effect by the step", stages.pressing_is_unsure, stages.pressing, RELOAD),
    Stage("phase", 60.0, "the boss is in the phase", stages.phase_is_missing, stages.phase, RELOAD),
    Stage("freeze", 5.0, "nobody moves, attacks or is hit", stages.always, stages.freeze, RELOAD),
    Stage("poses", 12.0, "both stand in their places at full health", stages.always, stages.poses, ARENA),
    Stage("lock_on", 10.0, "the camera is locked on the boss", stages.always, stages.lock_on, ARENA),
    Stage("ready", 20.0, "the clock stands and the fight may begin", stages.always, stages.ready, ARENA),
)
"""In this order. Those that are not needed are passed over."""
