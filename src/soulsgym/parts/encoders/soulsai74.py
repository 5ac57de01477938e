"""The 74 numbers SoulsAI shows its networks, for policies and recipes made for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.compiling import njit
from soulsgym.parts.encoders.classes import MOVEMENT, boss_classes, player_classes
from soulsgym.parts.encoders.encoder import Flags, Float32s, Int64s, check_buffers
from soulsgym.parts.encoders.memory import recall, saved
from soulsgym.spec import FightSpec
from soulsgym.state import Fights

DISTANCE_M = 50.0
STEP_S = 0.1
NO_ANIMATION = -2
"""In place of the boss's last animation before the first step; -1 is one that is not in the table."""

FIXED_NAMES = (
    "player_hp", "player_sp", "boss_hp", "distance",
    "player_x", "player_y", "player_z", "player_heading_sin", "player_heading_cos",
    "boss_x", "boss_y", "boss_z", "boss_heading_sin", "boss_heading_cos",
    "camera_sin", "camera_cos", "player_animation_s", "boss_animation_s",
)  # fmt: skip
FIXED = len(FIXED_NAMES)

MEMORY = np.dtype([("boss_animation", "i8"), ("movement_s", "f8"), ("earlier_s", "f8")], align=True)
"""The boss's last animation, how long it has been moving, and how much of that was before this animation."""


@njit
def _movement_s(memory: Any, animation: int, duration_s: float, moves: bool) -> float:
    """The time of the boss's animation; walking and turning count as one that goes on, a step longer at each change."""
    if not moves:
        memory.boss_animation, memory.movement_s, memory.earlier_s = animation, 0.0, 0.0
        return duration_s
    if memory.boss_animation != animation:
        memory.boss_animation = animation
        memory.earlier_s = memory.movement_s + STEP_S - duration_s
    memory.movement_s = duration_s + memory.earlier_s
    return float(memory.movement_s)


@njit
def _pose_into(pose: Any, low_m: Any, span_m: Any, row: Any) -> None:
    for axis in range(3):
        row[axis] = (pose[axis] - low_m[axis]) / span_m[axis]
    row[3], row[4] = math.sin(pose[3]), math.cos(pose[3])


@njit
def _one_hot_into(animation: int, of_id: Any, row: Any) -> int:
    number = of_id[animation] if 0 <= animation < len(of_id) else -1
    if number >= 0:
        row[number] = 1.0
    return int(number)


@njit(cache=True)
def _encode(
    fights: Any, mask: Any, memories: Any, player_of_id: Any, boss_of_id: Any, players: int, movement: int,
    low_m: Any, span_m: Any, out: Any,
) -> None:  # fmt: skip
    for i in range(len(fights)):
        if not mask[i]:
            continue
        fight, row = fights[i], out[i]
        row[:] = 0.0
        row[0] = fight.player_hp[0] / fight.player_max_hp
        row[1] = fight.player_sp[0] / fight.player_max_sp
        row[2] = fight.boss_hp[0] / fight.boss_max_hp
        dx = float(fight.boss_pose[0]) - float(fight.player_pose[0])
        dy = float(fight.boss_pose[1]) - float(fight.player_pose[1])
        row[3] = math.sqrt(dx * dx + dy * dy) / DISTANCE_M
        _pose_into(fight.player_pose, low_m, span_m, row[4:9])
        _pose_into(fight.boss_pose, low_m, span_m, row[9:14])
        camera = math.atan2(float(fight.camera_pose[3]), float(fight.camera_pose[4]))
        row[14], row[15] = math.sin(camera), math.cos(camera)
        row[16] = fight.player_animation_duration[0]
        _one_hot_into(fight.player_animation, player_of_id, row[FIXED:])
        number = _one_hot_into(fight.boss_animation, boss_of_id, row[FIXED + players :])
        moves = movement >= 0 and number == movement
        row[17] = _movement_s(memories[i], fight.boss_animation, float(fight.boss_animation_duration[0]), moves)


class SoulsAI74:
    """Absolute poses in the arena's box, animation times, and one-hot animations; 74 numbers for Iudex."""

    def __init__(self, n: int, spec: FightSpec) -> None:
        self._players, self._bosses = player_classes(spec), boss_classes(spec)
        animations = (
            *(f"player_is_{name}" for name in self._players.names),
            *(f"boss_is_{name}" for name in self._bosses.names),
        )
        self.names = (*FIXED_NAMES, *animations)
        self.size = len(self.names)
        self._low_m = np.array(spec.arena.low_m)
        self._span_m = np.array(spec.arena.high_m) - self._low_m
        self._movement = self._bosses.number(MOVEMENT)
        self._memory = np.zeros(n, MEMORY)
        self._memory["boss_animation"] = NO_ANIMATION

    def begin(self, fights: Fights, mask: Flags) -> None:
        """Forget how long the bosses of `mask` have been walking."""
        self._memory["boss_animation"][mask] = NO_ANIMATION
        self._memory["movement_s"][mask] = 0.0

    def encode(self, fights: Fights, actions: Int64s, mask: Flags, out: Float32s) -> None:
        """Write the rows of `mask` of `out`; the last action is not among the numbers."""
        check_buffers(actions, out, len(self._memory), self.size)
        _encode(
            fights, mask, self._memory, self._players.of_id, self._bosses.of_id, len(self._players), self._movement,
            self._low_m, self._span_m, out,
        )  # fmt: skip

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Copies of what is remembered of the bosses' walking."""
        return saved(self._memory)

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to what `state` returned."""
        recall(self._memory, state)
