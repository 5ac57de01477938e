"""The 74 numbers SoulsAI shows its networks, for policies and recipes made for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.compiling import inner, njit
from soulsgym.parts.encoders.classes import MOVEMENT, boss_classes, class_of, player_classes
from soulsgym.parts.encoders.encoder import (
    Bounds,
    Flags,
    Float32s,
    Int64s,
    NamedRows,
    check_buffers,
    copy_fields,
    lows_and_highs,
    restore_fields,
    within,
)
from soulsgym.parts.registry import register
from soulsgym.spec import FightSpec
from soulsgym.state import MAX_DURATION_S, Fights

DISTANCE_M = 50.0
STEP_S = 0.1
NO_ANIMATION = -2
"""In place of the boss's last animation before the first step; -1 is one that is not in the table."""

FAR = 10.0
"""No distance and no place is shown as farther than this: who falls leaves the arena's box."""
LONGEST_S = 600.0
SHARE, SIGNED, PLACE, TIME_S = (0.0, 1.0), (-1.0, 1.0), (-FAR, FAR), (-MAX_DURATION_S, LONGEST_S)
NUMBERS: Mapping[str, Bounds] = {
    "player_hp": SHARE,
    "player_sp": SIGNED,
    "boss_hp": SHARE,
    "distance": (0.0, FAR),
    "player_x": PLACE,  # in the arena's box, where they are 0 to 1
    "player_y": PLACE,
    "player_z": PLACE,
    "player_heading_sin": SIGNED,
    "player_heading_cos": SIGNED,
    "boss_x": PLACE,
    "boss_y": PLACE,
    "boss_z": PLACE,
    "boss_heading_sin": SIGNED,
    "boss_heading_cos": SIGNED,
    "camera_sin": SIGNED,
    "camera_cos": SIGNED,
    "player_animation_s": TIME_S,
    "boss_animation_s": TIME_S,
}
SEEN = np.dtype([(name, "f4") for name in NUMBERS])
"""The first numbers of a row."""
FIXED = len(NUMBERS)

MEMORY = np.dtype([("boss_animation", "i8"), ("movement_s", "f8"), ("earlier_s", "f8")], align=True)
"""The boss's last animation, how long it has been moving, and how much of that was before this animation."""


@inner
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


@inner
def _in_box(pose: Any, low_m: Any, span_m: Any, axis: int) -> Any:
    return within((pose[axis] - low_m[axis]) / span_m[axis], -FAR, FAR)


@njit(cache=True)
def _encode(
    fights: Any, mask: Any, memories: Any, player_of_id: Any, boss_of_id: Any, players: int, movement: int,
    low_m: Any, span_m: Any, out: Any, seen_of: Any,
) -> None:  # fmt: skip
    for i in range(len(fights)):
        if not mask[i]:
            continue
        fight, row, seen = fights[i], out[i], seen_of[i]
        player, boss = fight.player_pose, fight.boss_pose
        row[:] = 0.0
        seen.player_hp = within(fight.player_hp[0] / fight.player_max_hp, 0.0, 1.0)
        seen.player_sp = within(fight.player_sp[0] / fight.player_max_sp, -1.0, 1.0)
        seen.boss_hp = within(fight.boss_hp[0] / fight.boss_max_hp, 0.0, 1.0)
        dx, dy = float(boss[0]) - float(player[0]), float(boss[1]) - float(player[1])
        seen.distance = min(math.sqrt(dx * dx + dy * dy) / DISTANCE_M, FAR)
        seen.player_x = _in_box(player, low_m, span_m, 0)
        seen.player_y = _in_box(player, low_m, span_m, 1)
        seen.player_z = _in_box(player, low_m, span_m, 2)
        seen.player_heading_sin, seen.player_heading_cos = math.sin(player[3]), math.cos(player[3])
        seen.boss_x = _in_box(boss, low_m, span_m, 0)
        seen.boss_y = _in_box(boss, low_m, span_m, 1)
        seen.boss_z = _in_box(boss, low_m, span_m, 2)
        seen.boss_heading_sin, seen.boss_heading_cos = math.sin(boss[3]), math.cos(boss[3])
        camera = math.atan2(float(fight.camera_pose[3]), float(fight.camera_pose[4]))
        seen.camera_sin, seen.camera_cos = math.sin(camera), math.cos(camera)
        seen.player_animation_s = within(fight.player_animation_duration[0], -MAX_DURATION_S, LONGEST_S)
        moving, doing = class_of(fight.player_animation, player_of_id), class_of(fight.boss_animation, boss_of_id)
        if moving >= 0:
            row[FIXED + moving] = 1.0
        if doing >= 0:
            row[FIXED + players + doing] = 1.0
        moves = movement >= 0 and doing == movement
        shown_s = _movement_s(memories[i], fight.boss_animation, float(fight.boss_animation_duration[0]), moves)
        seen.boss_animation_s = within(shown_s, -MAX_DURATION_S, LONGEST_S)


@register("encoder", "soulsai74")
class SoulsAI74:
    """Absolute poses in the arena's box, animation times, and one-hot animations; 74 numbers for Iudex."""

    def __init__(self, n: int, spec: FightSpec) -> None:
        self._players, self._bosses = player_classes(spec), boss_classes(spec)
        self.boss_names = tuple(f"boss_is_{name}" for name in self._bosses.names)
        self.names = (*NUMBERS, *(f"player_is_{name}" for name in self._players.names), *self.boss_names)
        self.size = len(self.names)
        self.low, self.high = lows_and_highs(NUMBERS.get(name, SHARE) for name in self.names)
        self._low_m = np.array(spec.arena.low_m)
        self._span_m = np.array(spec.arena.high_m) - self._low_m
        self._movement = self._bosses.number(MOVEMENT)
        self._seen, self._memory = NamedRows(SEEN), np.zeros(n, MEMORY)
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
            self._low_m, self._span_m, out, self._seen.of(out),
        )  # fmt: skip

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Copies of what is remembered of the bosses' walking."""
        return copy_fields(self._memory)

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to what `state` returned."""
        restore_fields(self._memory, state)
