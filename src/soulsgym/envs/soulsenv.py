"""SoulsEnv: the names that SoulsGym's environments have, on ours, and its rewards of a user's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, SupportsIndex, TypeVar

import numpy as np

from soulsgym.batch import FightBatch, Step
from soulsgym.core import FOLDERS
from soulsgym.core.game_state import NO_ANIMATION, GameState
from soulsgym.envs.single import FPS, BossEnv, Observation
from soulsgym.envs.spaces import RecordView, limits_of
from soulsgym.errors import MisuseError, ResetNeeded
from soulsgym.parts.rewards.presets import PRESETS
from soulsgym.parts.rewards.terms.centre import RADIUS_M
from soulsgym.spec import FightSpec
from soulsgym.state import Fights

Kind = TypeVar("Kind", bound="SoulsEnv")
RewardFunction = Callable[[Any, Any], Any]
OWN_REWARD = "compute_reward"
"""The one term of a user's own reward."""


def standard_reward(before: GameState, after: GameState, centre_m: tuple[float, float] | None) -> float:
    """SoulsGym's reward of a step: damage dealt and taken, the end, and the way to the middle if there is one."""
    weights = PRESETS["soulsgym"]
    dealt = (before.boss_hp - after.boss_hp) / before.boss_max_hp
    taken = (before.player_hp - after.player_hp) / before.player_max_hp
    reward = weights["dealt"] * dealt - weights["taken"] * taken
    if after.boss_hp == 0 or after.player_hp == 0:
        return float(reward + (weights["win"] if after.boss_hp == 0 else -weights["death"]))
    if centre_m is None:
        return float(reward)
    was_m, is_m = (math.dist(map(float, state.player_pose[:2]), centre_m) for state in (before, after))
    return float(reward + (weights["centre"] * (was_m - is_m) if is_m > RADIUS_M else 0.0))


class SoulsEnv(BossEnv):
    """A fight with the names of SoulsGym's environments.

    A user's own `compute_reward(game_state, next_game_state)`, in a class of his or put into a class or into one
    environment at any time, gives the reward of `step`. Otherwise the part `reward` says it. There is none by itself,
    for Stable-Baselines3 takes whatever has one for an environment with goals.
    """

    ENV_ID = ""
    step_size = 1.0 / FPS

    def __init__(
        self,
        batch: FightBatch,
        spec: FightSpec,
        render_mode: str | None,
        *,
        phase: int,
        zero_based: bool,
        bools: bool = False,
    ) -> None:
        super().__init__(batch, RecordView(limits_of(spec), zero_based=zero_based, bools=bools), render_mode)
        self.ENV_ID = self.ENV_ID or Path(spec.boss_name).stem
        self._title, self._first_phase = spec.title.id, phase
        # The last name stands for -1.
        self._player_names = [*(label.name for label in spec.player_animations), NO_ANIMATION]
        self._boss_names = [*spec.boss_animations, NO_ANIMATION]

    @property
    def game_id(self) -> str:
        """SoulsGym's id of the game that the fight is of."""
        return next((game_id for game_id, folder in FOLDERS.items() if folder == self._title), self._title)

    @property
    def phase(self) -> int:
        """The phase that is fought; before the first reset, the one it will begin in."""
        return int(self.batch.engine.fights["phase"][0]) if self._begun else self._first_phase

    @property
    def obs(self) -> Observation:
        """The observation of now."""
        self._check_begun()
        return self._observation(self.batch.record())

    @property
    def info(self) -> dict[str, Any]:
        """The info of now, with no reward in it."""
        self._check_begun()
        return self._info(self.batch.record(), None)

    def game_state(self) -> GameState:
        """The fight as it stands, with the names of animations. Health is what is counted, as in the observation."""
        self._check_begun()
        fight = self.batch.record()[0]
        return GameState(
            phase=int(fight["phase"]),
            # Rounded up: nobody who lives has no health.
            player_hp=math.ceil(fight["player_hp"][0]),
            player_max_hp=int(fight["player_max_hp"]),
            player_sp=int(fight["player_sp"][0]),
            player_max_sp=int(fight["player_max_sp"]),
            boss_hp=math.ceil(fight["boss_hp"][0]),
            boss_max_hp=int(fight["boss_max_hp"]),
            player_pose=fight["player_pose"].copy(),
            boss_pose=fight["boss_pose"].copy(),
            camera_pose=fight["camera_pose"].copy(),
            player_animation=self._player_names[fight["player_animation"]],
            player_animation_duration=float(fight["player_animation_duration"][0]),
            boss_animation=self._boss_names[fight["boss_animation"]],
            boss_animation_duration=float(fight["boss_animation_duration"][0]),
            lock_on=bool(fight["lock_on"]),
        )

    def step(self, action: SupportsIndex) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play 0.1 s of the game, or with `decisions` on to the next choice."""
        own = self._own_reward()
        if own is None or not self._is_running():
            return super().step(action)
        before = self.game_state()
        observation, _, terminated, truncated, info = super().step(action)
        reward = _checked_reward(own(before, self.game_state()))
        info["reward_terms"] = {OWN_REWARD: reward}
        return observation, reward, terminated, truncated, info

    def _info(self, record: Fights, step: Step | None) -> dict[str, Any]:
        info = super()._info(record, step)
        if step is None and self._own_reward() is not None:
            info["reward_terms"] = {OWN_REWARD: 0.0}
        return info

    def _own_reward(self) -> RewardFunction | None:
        """The user's `compute_reward`; one that was put into the class of the running game counts everywhere."""
        own: RewardFunction | None = getattr(self, "compute_reward", None)
        if own is None or own in STANDARD_REWARDS:
            own = getattr(CLASSES.get(self.ENV_ID), "compute_reward", None)
        return None if own in STANDARD_REWARDS else own

    def _check_begun(self) -> None:
        if not self._begun:
            raise ResetNeeded("the fight has not begun; call reset()")


class SoulsEnvDemo(SoulsEnv):
    """A full fight: all phases, real health, real deaths."""


CLASSES: dict[str, type[SoulsEnv]] = {}
"""By boss, SoulsGym's class of his fights in the running game, if it was imported."""
STANDARD_REWARDS: list[RewardFunction] = []
"""What these classes have as `compute_reward` by themselves: no reward of the user's."""


def of_boss(kind: type[Kind]) -> type[Kind]:
    """Make the class of a boss known."""
    CLASSES[kind.ENV_ID] = kind
    STANDARD_REWARDS.append(kind.compute_reward)  # type: ignore[attr-defined]
    return kind


def _checked_reward(value: Any) -> float:
    try:
        reward = float(value.item() if isinstance(value, np.ndarray) else value)
    except (TypeError, ValueError):
        raise MisuseError(f"compute_reward gave {value!r}; give a number") from None
    if not math.isfinite(reward):
        raise MisuseError(f"compute_reward gave {reward}; give a finite number")
    return reward
