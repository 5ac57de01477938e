"""What a player sees: where the boss is from here, what both are doing and for how long, and what was pressed last."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.actions import ACTION_NAMES
from soulsgym.compiling import inner, njit
from soulsgym.errors import MisuseError
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

SHARE, SIGNED, LIMITED = (0.0, 1.0), (-1.0, 1.0), (-LIMIT, LIMIT)
SINE = (-1.001, 1.001)
"""Sines of single precision may be a last digit above 1."""
NUMBERS: Mapping[str, Bounds] = {
    "player_hp": SHARE,
    "player_sp": SIGNED,
    "boss_hp": SHARE,
    "lock_on": SHARE,
    "distance_far": (0.0, LIMIT),
    "distance_near": SHARE,
    "boss_from_player_sin": SINE,  # bearings are positive to the right
    "boss_from_player_cos": SINE,
    "player_from_boss_sin": SINE,
    "player_from_boss_cos": SINE,
    "boss_from_camera_sin": SINE,
    "boss_from_camera_cos": SINE,
    "centre_ahead": LIMITED,  # in the frame of the camera, as the keys are
    "centre_right": LIMITED,
    "edge_room": SHARE,
    "edge_ahead": SINE,
    "edge_right": SINE,
    "cliff_room": SHARE,
    "player_closing": LIMITED,
    "player_sideways": LIMITED,
    "boss_closing": LIMITED,
    "boss_sideways": LIMITED,
    "boss_turning": LIMITED,
    "player_animation_s": LIMITED,
    "boss_animation_s": LIMITED,
    "boss_doing_s": LIMITED,
    "boss_did_s": LIMITED,
}
SEEN = np.dtype([(name, "f4") for name in NUMBERS])
"""The first numbers of a row."""

BLOCKS = ("phase", "player_is", "boss_is", "boss_was", "boss_at", "pressed")
"""What comes after them: a number for each phase, class, mark or action."""
PLACES = np.dtype([(name, "i8") for name in (*BLOCKS, "end")])
"""Where each block begins in a row."""

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

EDGE = np.dtype([("out_x", "f8"), ("out_y", "f8"), ("offset_m", "f8"), ("cliff", "i1")], align=True)
"""As `Edge` of the arena."""


@inner
def _limited(value: float) -> Any:
    return within(value, -LIMIT, LIMIT)


@inner
def _notice(memory: Any, time_s: float, doing: int, shown_s: float, movement: int) -> None:
    """Keep track of what the boss does and what it did before; movement goes on however often its label changes."""
    begun_s = time_s - shown_s
    if not memory.known:
        memory.doing, memory.since_s, memory.did, memory.did_s = doing, begun_s, -1, 0.0
    elif doing != memory.doing or (doing != movement and shown_s < memory.boss_animation_s - RESTART_S):
        memory.did, memory.did_s = memory.doing, begun_s - memory.since_s
        memory.doing, memory.since_s = doing, begun_s


@inner
def _edges_into(edges: Any, x: float, y: float, ahead_x: float, ahead_y: float, seen: Any) -> None:
    """Room to the edge and to the nearest cliff, and where the edge is as far as it is near."""
    nearest, cliff, which = 1e9, 1e9, 0
    for i in range(len(edges)):
        edge = edges[i]
        room_m = edge.offset_m - edge.out_x * x - edge.out_y * y
        if room_m < nearest:
            nearest, which = room_m, i
        if edge.cliff:
            cliff = min(cliff, room_m)
    room = within(nearest / EDGE_M, 0.0, 1.0)
    edge = edges[which]
    seen.edge_room = room
    seen.edge_ahead = (1.0 - room) * (edge.out_x * ahead_x + edge.out_y * ahead_y)
    seen.edge_right = (1.0 - room) * (edge.out_x * ahead_y - edge.out_y * ahead_x)
    seen.cliff_room = within(cliff / EDGE_M, 0.0, 1.0)


@inner
def _motion_into(memory: Any, time_s: float, player: Any, boss: Any, to_x: float, to_y: float, seen: Any) -> None:
    """Metres per 0.1 s that both came nearer to each other and went to the player's right; turns of the boss."""
    passed_s = time_s - memory.time_s
    if not memory.known or passed_s < 1e-3:
        return
    share = STEP_S / passed_s
    player_x, player_y = player[0] - memory.player_m[0], player[1] - memory.player_m[1]
    boss_x, boss_y = boss[0] - memory.boss_m[0], boss[1] - memory.boss_m[1]
    seen.player_closing = _limited(share * (player_x * to_x + player_y * to_y))
    seen.player_sideways = _limited(share * (player_x * to_y - player_y * to_x))
    seen.boss_closing = _limited(-share * (boss_x * to_x + boss_y * to_y))
    seen.boss_sideways = _limited(share * (boss_x * to_y - boss_y * to_x))
    seen.boss_turning = _limited(share * math.sin(boss[3] - memory.boss_heading))


@inner
def _remember(memory: Any, time_s: float, player: Any, boss: Any, boss_animation_s: float) -> None:
    memory.known, memory.time_s, memory.boss_animation_s = 1, time_s, boss_animation_s
    memory.player_m[0], memory.player_m[1] = player[0], player[1]
    memory.boss_m[0], memory.boss_m[1], memory.boss_heading = boss[0], boss[1], boss[3]


@njit(cache=True)
def _encode(
    fights: Any, actions: Any, mask: Any, memories: Any, edges: Any, centre_m: Any,
    player_of_id: Any, boss_of_id: Any, places: Any, movement: int, out: Any, seen_of: Any,
) -> None:  # fmt: skip
    # A heading a looks along (-sin a, -cos a); right of a view along (x, y) is (y, -x).
    at = places[0]
    for i in range(len(fights)):
        if not mask[i]:
            continue
        fight, memory, row, seen = fights[i], memories[i], out[i], seen_of[i]
        player, boss, time_s = fight.player_pose, fight.boss_pose, float(fight.time_s)
        row[:] = 0.0
        seen.player_hp = within(fight.player_hp[0] / fight.player_max_hp, 0.0, 1.0)
        seen.player_sp = within(fight.player_sp[0] / fight.player_max_sp, -1.0, 1.0)
        seen.boss_hp = within(fight.boss_hp[0] / fight.boss_max_hp, 0.0, 1.0)
        seen.lock_on = 1.0 if fight.lock_on else 0.0

        x, y = float(player[0]), float(player[1])
        to_x, to_y = float(boss[0]) - x, float(boss[1]) - y
        distance_m = math.sqrt(to_x * to_x + to_y * to_y)
        seen.distance_far = min(distance_m / FAR_M, LIMIT)
        seen.distance_near = min(distance_m / NEAR_M, 1.0)
        # Where both are at one place the boss is nowhere, which is better than a division by nothing.
        scale = 1.0 / distance_m if distance_m > 1e-6 else 0.0
        to_x, to_y = to_x * scale, to_y * scale

        ahead_x, ahead_y = -math.sin(player[3]), -math.cos(player[3])
        seen.boss_from_player_sin = to_x * ahead_y - to_y * ahead_x
        seen.boss_from_player_cos = to_x * ahead_x + to_y * ahead_y
        ahead_x, ahead_y = -math.sin(boss[3]), -math.cos(boss[3])
        seen.player_from_boss_sin = to_y * ahead_x - to_x * ahead_y
        seen.player_from_boss_cos = -to_x * ahead_x - to_y * ahead_y

        ahead_x, ahead_y = float(fight.camera_pose[3]), float(fight.camera_pose[4])
        length = math.sqrt(ahead_x * ahead_x + ahead_y * ahead_y)
        scale = 1.0 / length if length > 1e-6 else 0.0
        ahead_x, ahead_y = ahead_x * scale, ahead_y * scale
        seen.boss_from_camera_sin = to_x * ahead_y - to_y * ahead_x
        seen.boss_from_camera_cos = to_x * ahead_x + to_y * ahead_y
        centre_x, centre_y = centre_m[0] - x, centre_m[1] - y
        seen.centre_ahead = _limited((centre_x * ahead_x + centre_y * ahead_y) / CENTRE_M)
        seen.centre_right = _limited((centre_x * ahead_y - centre_y * ahead_x) / CENTRE_M)
        _edges_into(edges, x, y, ahead_x, ahead_y, seen)

        player_s, boss_s = float(fight.player_animation_duration[0]), float(fight.boss_animation_duration[0])
        _motion_into(memory, time_s, player, boss, to_x, to_y, seen)
        doing = class_of(fight.boss_animation, boss_of_id)
        _notice(memory, time_s, doing, boss_s, movement)
        _remember(memory, time_s, player, boss, boss_s)
        seen.player_animation_s = _limited(player_s / LONG_S)
        seen.boss_animation_s = _limited(boss_s / LONG_S)
        seen.boss_doing_s = _limited((time_s - memory.since_s) / LONG_S)
        seen.boss_did_s = _limited(memory.did_s / LONG_S)

        place = within(boss_s / MARK_S, 0.0, MARKS - 1.0)
        mark = min(int(place), MARKS - 2)
        row[at.boss_at + mark], row[at.boss_at + mark + 1] = mark + 1 - place, place - mark

        if 1 <= fight.phase <= at.player_is - at.phase:
            row[at.phase + fight.phase - 1] = 1.0
        moving = class_of(fight.player_animation, player_of_id)
        if moving >= 0:
            row[at.player_is + moving] = 1.0
        if doing >= 0:
            row[at.boss_is + doing] = 1.0
        if memory.did >= 0:
            row[at.boss_was + memory.did] = 1.0
        if 0 <= actions[i] < at.end - at.pressed:
            row[at.pressed + actions[i]] = 1.0


@register("encoder", "player")
class PlayerEncoder:
    """Shares, relative poses, speeds, animations with their times, and the last action, all within about 1.5."""

    def __init__(self, n: int, spec: FightSpec) -> None:
        self._players, self._bosses = player_classes(spec), boss_classes(spec)
        blocks = {
            "phase": range(1, len(spec.boss.phases) + 1),
            "player_is": self._players.names,
            "boss_is": self._bosses.names,
            "boss_was": self._bosses.names,
            "boss_at": [f"{mark * MARK_S:.1f}_s" for mark in range(MARKS)],
            "pressed": [name.replace(" ", "_") for name in ACTION_NAMES],
        }
        self.names = (*NUMBERS, *(f"{block}_{name}" for block in BLOCKS for name in blocks[block]))
        self.boss_names = tuple(f"{block}_{name}" for block in ("boss_is", "boss_was") for name in blocks[block])
        self.size = len(self.names)
        self.low, self.high = lows_and_highs(NUMBERS.get(name, SHARE) for name in self.names)
        sizes = [len(NUMBERS), *(len(blocks[block]) for block in BLOCKS)]
        self._places = np.array([tuple(np.cumsum(sizes))], PLACES)
        self._movement = self._bosses.number(MOVEMENT)
        if not spec.arena.corners:
            raise MisuseError(
                f"encoder 'player' needs the edges of {spec.arena.name}, which has none; give another one"
            )
        self._edges = np.array([astuple(edge) for edge in spec.arena.edges], EDGE)
        self._centre_m = np.array(spec.arena.centre_m)
        self._seen, self._memory = NamedRows(SEEN), np.zeros(n, MEMORY)

    def begin(self, fights: Fights, mask: Flags) -> None:
        """Forget where the fighters of `mask` were and what they did."""
        self._memory["known"][mask] = 0

    def encode(self, fights: Fights, actions: Int64s, mask: Flags, out: Float32s) -> None:
        """Write the rows of `mask` of `out`."""
        check_buffers(actions, out, len(self._memory), self.size)
        _encode(
            fights, actions, mask, self._memory, self._edges, self._centre_m,
            self._players.of_id, self._bosses.of_id, self._places, self._movement,
            out, self._seen.of(out),
        )  # fmt: skip

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Copies of what is remembered of each fight."""
        return copy_fields(self._memory)

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to what `state` returned."""
        restore_fields(self._memory, state)
