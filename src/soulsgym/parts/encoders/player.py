"""What a player sees: where the boss is from here, what both are doing and for how long, and what was pressed last."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.actions import ACTION_NAMES
from soulsgym.compiling import njit
from soulsgym.parts.encoders.classes import MOVEMENT, boss_classes, player_classes
from soulsgym.parts.encoders.encoder import Flags, Float32s, Int64s, check_buffers
from soulsgym.parts.encoders.memory import recall, saved
from soulsgym.spec import FightSpec
from soulsgym.spec.arena import Arena
from soulsgym.state import Fights

LIMIT = 1.5
"""No number is larger: rare sights must not shake a network."""
FAR_M = 15.0
NEAR_M = 5.0
"""The distance is shown twice: up to where blows reach it is seen more finely."""
CENTRE_M = 20.0
EDGE_M = 5.0
LONG_S = 3.0
"""Times are seen up to 4.5 s: a blow may land 3.3 s after its label was first shown."""
MARK_S = 0.2
MARKS = 17
"""How long the boss has been at it is also shown as marks on a ruler, at most two of them lit, in between by shares: a
tenth of a second decides between a dodge and a hit, and is little in a number of seconds."""
STEP_S = 0.1
RESTART_S = 0.2
"""A label whose clock falls back by more than this was started again; noise makes it fall back by less."""

FIXED_NAMES = (
    "player_hp", "player_sp", "boss_hp", "lock_on",
    "distance_far", "distance_near",
    "boss_from_player_sin", "boss_from_player_cos",  # bearings are positive to the right
    "player_from_boss_sin", "player_from_boss_cos",
    "boss_from_camera_sin", "boss_from_camera_cos",
    "centre_ahead", "centre_right",  # in the frame of the camera, as the keys are
    "edge_room", "edge_ahead", "edge_right", "cliff_room",
    "player_closing", "player_sideways", "boss_closing", "boss_sideways", "boss_turning",
    "player_animation_s", "boss_animation_s", "boss_doing_s", "boss_did_s",
)  # fmt: skip
FIXED = len(FIXED_NAMES)

MEMORY = np.dtype(
    [
        ("known", "i1"),  # 0 until the first encoding of the fight
        ("time_s", "f8"),
        ("player_m", "f8", (2,)),
        ("boss_m", "f8", (2,)),
        ("boss_heading", "f8"),
        ("boss_animation_s", "f8"),
        ("doing", "i8"),  # class of the boss's animation, and when it began
        ("since_s", "f8"),
        ("did", "i8"),  # the class before that, -1 none, and how long it was shown
        ("did_s", "f8"),
    ],
    align=True,
)

EDGE = np.dtype([("right_x", "f8"), ("right_y", "f8"), ("offset_m", "f8"), ("cliff", "i1")], align=True)
"""A stretch of the arena's ring: a point is offset_m - right . point inside of it."""


@njit
def _limited(value: float) -> float:
    return min(max(value, -LIMIT), LIMIT)


@njit
def _class_of(animation: int, of_id: Any) -> int:
    return int(of_id[animation]) if 0 <= animation < len(of_id) else -1


@njit
def _notice(memory: Any, time_s: float, doing: int, shown_s: float, movement: int) -> None:
    """Keep track of what the boss does and what it did before; movement goes on however often its label changes."""
    begun_s = time_s - shown_s
    if not memory.known:
        memory.doing, memory.since_s, memory.did, memory.did_s = doing, begun_s, -1, 0.0
    elif doing != memory.doing or (doing != movement and shown_s < memory.boss_animation_s - RESTART_S):
        memory.did, memory.did_s = memory.doing, begun_s - memory.since_s
        memory.doing, memory.since_s = doing, begun_s


@njit
def _edges_into(edges: Any, x: float, y: float, ahead_x: float, ahead_y: float, row: Any) -> None:
    """Room to the edge and to the nearest cliff, and where the edge is as far as it is near."""
    nearest, cliff, which = 1e9, 1e9, 0
    for i in range(len(edges)):
        edge = edges[i]
        room_m = edge.offset_m - edge.right_x * x - edge.right_y * y
        if room_m < nearest:
            nearest, which = room_m, i
        if edge.cliff:
            cliff = min(cliff, room_m)
    room = min(max(nearest / EDGE_M, 0.0), 1.0)
    edge = edges[which]
    row[0] = room
    row[1] = (1.0 - room) * (edge.right_x * ahead_x + edge.right_y * ahead_y)
    row[2] = (1.0 - room) * (edge.right_x * ahead_y - edge.right_y * ahead_x)
    row[3] = min(max(cliff / EDGE_M, 0.0), 1.0)


@njit
def _motion_into(memory: Any, time_s: float, player: Any, boss: Any, to_x: float, to_y: float, row: Any) -> None:
    """Metres per 0.1 s that both came nearer to each other and went to the player's right; turns of the boss."""
    passed_s = time_s - memory.time_s
    if not memory.known or passed_s < 1e-3:
        return
    share = STEP_S / passed_s
    player_x, player_y = player[0] - memory.player_m[0], player[1] - memory.player_m[1]
    boss_x, boss_y = boss[0] - memory.boss_m[0], boss[1] - memory.boss_m[1]
    row[0] = _limited(share * (player_x * to_x + player_y * to_y))
    row[1] = _limited(share * (player_x * to_y - player_y * to_x))
    row[2] = _limited(-share * (boss_x * to_x + boss_y * to_y))
    row[3] = _limited(share * (boss_x * to_y - boss_y * to_x))
    row[4] = _limited(share * math.sin(boss[3] - memory.boss_heading))


@njit
def _remember(memory: Any, time_s: float, player: Any, boss: Any, boss_animation_s: float) -> None:
    memory.known, memory.time_s, memory.boss_animation_s = 1, time_s, boss_animation_s
    memory.player_m[0], memory.player_m[1] = player[0], player[1]
    memory.boss_m[0], memory.boss_m[1], memory.boss_heading = boss[0], boss[1], boss[3]


@njit(cache=True)
def _encode(
    fights: Any, actions: Any, mask: Any, memories: Any, edges: Any, centre_m: Any,
    player_of_id: Any, boss_of_id: Any, first: Any, movement: int, out: Any,
) -> None:  # fmt: skip
    # A heading a looks along (-sin a, -cos a); right of a view along (x, y) is (y, -x).
    phases, players, bosses, did, marks, last = first[0], first[1], first[2], first[3], first[4], first[5]
    for i in range(len(fights)):
        if not mask[i]:
            continue
        fight, memory, row = fights[i], memories[i], out[i]
        player, boss, time_s = fight.player_pose, fight.boss_pose, float(fight.time_s)
        row[:] = 0.0
        row[0] = fight.player_hp[0] / fight.player_max_hp
        row[1] = fight.player_sp[0] / fight.player_max_sp
        row[2] = fight.boss_hp[0] / fight.boss_max_hp
        row[3] = 1.0 if fight.lock_on else 0.0

        x, y = float(player[0]), float(player[1])
        to_x, to_y = float(boss[0]) - x, float(boss[1]) - y
        distance_m = math.sqrt(to_x * to_x + to_y * to_y)
        row[4] = min(distance_m / FAR_M, LIMIT)
        row[5] = min(distance_m / NEAR_M, 1.0)
        # Where both are at one place the boss is nowhere, which is better than a division by nothing.
        scale = 1.0 / distance_m if distance_m > 1e-6 else 0.0
        to_x, to_y = to_x * scale, to_y * scale

        ahead_x, ahead_y = -math.sin(player[3]), -math.cos(player[3])
        row[6], row[7] = to_x * ahead_y - to_y * ahead_x, to_x * ahead_x + to_y * ahead_y
        ahead_x, ahead_y = -math.sin(boss[3]), -math.cos(boss[3])
        row[8], row[9] = to_y * ahead_x - to_x * ahead_y, -to_x * ahead_x - to_y * ahead_y

        ahead_x, ahead_y = float(fight.camera_pose[3]), float(fight.camera_pose[4])
        length = math.sqrt(ahead_x * ahead_x + ahead_y * ahead_y)
        scale = 1.0 / length if length > 1e-6 else 0.0
        ahead_x, ahead_y = ahead_x * scale, ahead_y * scale
        row[10], row[11] = to_x * ahead_y - to_y * ahead_x, to_x * ahead_x + to_y * ahead_y
        centre_x, centre_y = centre_m[0] - x, centre_m[1] - y
        row[12] = _limited((centre_x * ahead_x + centre_y * ahead_y) / CENTRE_M)
        row[13] = _limited((centre_x * ahead_y - centre_y * ahead_x) / CENTRE_M)
        _edges_into(edges, x, y, ahead_x, ahead_y, row[14:18])

        player_s, boss_s = float(fight.player_animation_duration[0]), float(fight.boss_animation_duration[0])
        _motion_into(memory, time_s, player, boss, to_x, to_y, row[18:23])
        doing = _class_of(fight.boss_animation, boss_of_id)
        _notice(memory, time_s, doing, boss_s, movement)
        _remember(memory, time_s, player, boss, boss_s)
        row[23] = _limited(player_s / LONG_S)
        row[24] = _limited(boss_s / LONG_S)
        row[25] = _limited((time_s - memory.since_s) / LONG_S)
        row[26] = _limited(memory.did_s / LONG_S)

        place = min(max(boss_s / MARK_S, 0.0), MARKS - 1.0)
        mark = min(int(place), MARKS - 2)
        row[marks + mark], row[marks + mark + 1] = mark + 1 - place, place - mark

        if 1 <= fight.phase <= players - phases:
            row[phases + fight.phase - 1] = 1.0
        moving = _class_of(fight.player_animation, player_of_id)
        if moving >= 0:
            row[players + moving] = 1.0
        if doing >= 0:
            row[bosses + doing] = 1.0
        if memory.did >= 0:
            row[did + memory.did] = 1.0
        if 0 <= actions[i] < len(row) - last:
            row[last + actions[i]] = 1.0


class PlayerEncoder:
    """Shares, relative poses, speeds, animations with their times, and the last action, all within about 1.5."""

    def __init__(self, n: int, spec: FightSpec) -> None:
        self._players, self._bosses = player_classes(spec), boss_classes(spec)
        blocks = (
            FIXED_NAMES,
            tuple(f"phase_{phase}" for phase in range(1, len(spec.boss.phases) + 1)),
            tuple(f"player_is_{name}" for name in self._players.names),
            tuple(f"boss_is_{name}" for name in self._bosses.names),
            tuple(f"boss_was_{name}" for name in self._bosses.names),
            tuple(f"boss_at_{mark * MARK_S:.1f}_s" for mark in range(MARKS)),
            tuple(f"pressed_{name.replace(' ', '_')}" for name in ACTION_NAMES),
        )
        self.names = tuple(name for block in blocks for name in block)
        self.size = len(self.names)
        self._first = np.cumsum([len(block) for block in blocks[:-1]], dtype=np.int64)
        self._movement = self._bosses.number(MOVEMENT)
        self._edges, self._centre_m = _edges_of(spec.arena), np.array(spec.arena.centre_m)
        self._memory = np.zeros(n, MEMORY)

    def begin(self, fights: Fights, mask: Flags) -> None:
        """Forget where the fighters of `mask` were and what they did."""
        self._memory["known"][mask] = 0

    def encode(self, fights: Fights, actions: Int64s, mask: Flags, out: Float32s) -> None:
        """Write the rows of `mask` of `out`."""
        check_buffers(actions, out, len(self._memory), self.size)
        _encode(
            fights, actions, mask, self._memory, self._edges, self._centre_m,
            self._players.of_id, self._bosses.of_id, self._first, self._movement, out,
        )  # fmt: skip

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Copies of what is remembered of each fight."""
        return saved(self._memory)

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to what `state` returned."""
        recall(self._memory, state)


def _edges_of(arena: Arena) -> npt.NDArray[Any]:
    corners = arena.corners
    edges = np.zeros(len(corners), EDGE)
    for edge, a, b in zip(edges, corners, (*corners[1:], corners[0]), strict=True):
        length_m = math.hypot(b.x_m - a.x_m, b.y_m - a.y_m)
        # The corners go round anticlockwise, so outside is to the right.
        edge["right_x"], edge["right_y"] = (b.y_m - a.y_m) / length_m, (a.x_m - b.x_m) / length_m
        edge["offset_m"] = edge["right_x"] * a.x_m + edge["right_y"] * a.y_m
        edge["cliff"] = a.to_next == "cliff"
    return edges
