"""What an environment shows of a fight, and the space of it: the record by key, or the numbers of an encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from soulsgym.parts.encoders import Encoder
from soulsgym.spec import FightSpec
from soulsgym.state import MAX_DURATION_S, OBSERVATION_KEYS, Fights, observation_of

Point = tuple[float, float, float]
YES_OR_NO = ("lock_on",)
"""Keys of an observation with no other values than 0 and 1."""
UNDECLARED = 1e6
"""Bound of what an encoder shows that declares no `low` and `high`: finite, and far beyond what a network can use."""


@dataclass(frozen=True)
class FightLimits:
    """The numbers that bound what can be seen of a fight."""

    phases: int
    player_hp: float
    player_sp: float
    player_sp_floor: float
    boss_hp: float
    low_m: Point
    high_m: Point
    player_animations: int
    boss_animations: int


def limits_of(spec: FightSpec) -> FightLimits:
    """The limits of a fight, in the simulator or in the game."""
    player, boss, arena = spec.player, spec.boss, spec.arena
    return FightLimits(
        phases=len(boss.phases) or spec.game.phases,
        player_hp=player.hp,
        player_sp=player.sp,
        player_sp_floor=player.sp_floor,
        boss_hp=boss.hp,
        low_m=arena.low_m,
        high_m=arena.high_m,
        player_animations=len(spec.player_animations),
        boss_animations=len(spec.boss_animations),
    )


def observation_space(limits: FightLimits) -> spaces.Dict:
    """Every key of the observation with the values it can take."""
    low, high = np.array([*limits.low_m, -np.pi]), np.array([*limits.high_m, np.pi])

    def number(minimum: float, maximum: float) -> spaces.Box:
        return spaces.Box(minimum, maximum, (1,), np.float32)

    def constant(value: float) -> spaces.Discrete:
        return spaces.Discrete(1, start=int(value))

    # float32 cannot hold pi: the nearest value lies above it, and headings may reach that.
    pose = spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)
    view = np.ones(3)
    camera = spaces.Box(
        np.concatenate([low[:3], -view]).astype(np.float32),
        np.concatenate([high[:3], view]).astype(np.float32),
        dtype=np.float32,
    )
    by_key: dict[str, spaces.Space[object]] = {
        "phase": spaces.Discrete(limits.phases, start=1),
        "player_hp": number(0.0, limits.player_hp),
        "player_max_hp": constant(limits.player_hp),
        "player_sp": number(limits.player_sp_floor, limits.player_sp),
        "player_max_sp": constant(limits.player_sp),
        "boss_hp": number(0.0, limits.boss_hp),
        "boss_max_hp": constant(limits.boss_hp),
        "player_pose": pose,
        "boss_pose": pose,
        "camera_pose": camera,
        "player_animation": spaces.Discrete(limits.player_animations + 1, start=-1),
        "player_animation_duration": number(0.0, MAX_DURATION_S),
        "boss_animation": spaces.Discrete(limits.boss_animations + 1, start=-1),
        "boss_animation_duration": number(0.0, MAX_DURATION_S),
        "lock_on": spaces.Discrete(2),
    }
    return spaces.Dict({key: by_key[key] for key in OBSERVATION_KEYS})


class RecordView:
    """Observations by key. With `zero_based` every whole number counts from 0, as many learners expect it.

    Otherwise with `bools` what is yes or no is a bool, as in SoulsGym; Stable-Baselines3's checker wants an int.
    """

    def __init__(self, limits: FightLimits, *, zero_based: bool = False, bools: bool = False) -> None:
        self.space = observation_space(limits)
        self._first: dict[str, int] = {}
        whole = {key: one for key, one in self.space.items() if isinstance(one, spaces.Discrete)}
        self._whole: dict[str, type[int]] = dict.fromkeys(whole, int)
        if bools and not zero_based:
            self._whole |= dict.fromkeys(YES_OR_NO, bool)
        if zero_based:
            self._first = {key: int(one.start) for key, one in whole.items() if one.start}
            counted = {key: spaces.Discrete(one.n) for key, one in whole.items()}
            self.space = spaces.Dict({**self.space.spaces, **counted})

    def one(self, fight: Any) -> dict[str, Any]:
        """The observation of one copied record, with Python's own numbers where it has whole ones, as JSON needs."""
        observation = self.of(fight)
        for key, kind in self._whole.items():
            observation[key] = kind(observation[key])
        return observation

    def of(self, fights: Fights) -> dict[str, Any]:
        """The observations of copied records; views where nothing has to be counted otherwise."""
        observations: dict[str, Any] = observation_of(fights)
        for key, first in self._first.items():
            observations[key] = observations[key] - first
        return observations


def encoded_space(encoder: Encoder) -> spaces.Box:
    """The space of what an encoder shows, within the `low` and `high` that it declares."""
    low, high = getattr(encoder, "low", -UNDECLARED), getattr(encoder, "high", UNDECLARED)
    shape = (encoder.size,)
    return spaces.Box(
        np.broadcast_to(np.asarray(low, np.float32), shape).copy(),
        np.broadcast_to(np.asarray(high, np.float32), shape).copy(),
        dtype=np.float32,
    )
