"""The observation space of a fight."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from soulsgym.movesets import Moveset
from soulsgym.state import MAX_DURATION_S, OBSERVATION_KEYS


def observation_space(moveset: Moveset) -> spaces.Dict:
    """Every key of the observation with the values it can take."""
    player, boss, arena = moveset.player, moveset.boss, moveset.arena
    low, high = np.array([*arena.low_m, -np.pi]), np.array([*arena.high_m, np.pi])

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
        "phase": spaces.Discrete(len(boss.phases), start=1),
        "player_hp": number(0.0, player.hp),
        "player_max_hp": constant(player.hp),
        "player_sp": number(player.sp_floor, player.sp),
        "player_max_sp": constant(player.sp),
        "boss_hp": number(0.0, boss.hp),
        "boss_max_hp": constant(boss.hp),
        "player_pose": pose,
        "boss_pose": pose,
        "camera_pose": camera,
        "player_animation": spaces.Discrete(len(moveset.player_animations) + 1, start=-1),
        "player_animation_duration": number(0.0, MAX_DURATION_S),
        "boss_animation": spaces.Discrete(len(moveset.boss_animations) + 1, start=-1),
        "boss_animation_duration": number(0.0, MAX_DURATION_S),
        "lock_on": spaces.Discrete(2),
    }
    return spaces.Dict({key: by_key[key] for key in OBSERVATION_KEYS})
