"""The two fighters, their trails and the camera."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from soulsgym.actions import DIRECTIONS, Button
from soulsgym.render import palette
from soulsgym.render.drawing import Drawing
from soulsgym.render.plan import Point, Stand, sector
from soulsgym.render.story import TRAIL_STEPS, Trace
from soulsgym.spec import FightSpec

FALL_MOVE = -3
VIEW_HALF_DEG = 22.0
VIEW_M = 6.0
TENDRILS = 11


def draw_camera(canvas: Drawing, camera_pose: np.ndarray[tuple[int], np.dtype[np.float32]]) -> None:
    """A faint cone from the camera along its view."""
    eye = Stand(float(camera_pose[0]), float(camera_pose[1]), math.atan2(-camera_pose[3], -camera_pose[4]))
    canvas.polygon(sector(eye, -VIEW_HALF_DEG, VIEW_HALF_DEG, VIEW_M), palette.WHITE, 0.045)
    canvas.polygon(sector(eye, -VIEW_HALF_DEG, VIEW_HALF_DEG, 0.55), palette.WHITE, 0.28)


def draw_trails(canvas: Drawing, traces: list[Trace], step: int, spec: FightSpec) -> None:
    """Where the boss came from, and the shadows of a roll."""
    for last, trace in pairwise(traces):
        fade = 1.0 - (step - trace.step) / TRAIL_STEPS
        canvas.lines([last.boss, trace.boss], palette.BOSS_EDGE, 2.0, 0.45 * fade)
        canvas.lines([last.player, trace.player], palette.PLAYER, 2.0, 0.60 * fade)
    for trace in traces[:-1]:
        if trace.rolling:
            fade = 1.0 - (step - trace.step) / TRAIL_STEPS
            colour = palette.INVULNERABLE if trace.invulnerable else palette.PLAYER
            canvas.circle(trace.player, spec.player.radius_m, colour, 0.55 * fade)


def draw_boss(canvas: Drawing, boss: Stand, fight: np.void, spec: FightSpec) -> None:
    """The boss: its radius, its face, white when hit, golden while open."""
    radius_m = spec.boss.radius_m
    move = int(fight["boss_move"])
    kind = spec.boss.moves[move].kind if move >= 0 else ""
    is_open = kind in ("open", "parried", "executed")
    body = palette.mix(palette.BOSS, palette.WHITE, 0.75 if fight["damage_dealt"] > 0.0 else 0.0)
    edge = palette.BOSS_OPEN if is_open else palette.BOSS_EDGE
    if fight["phase"] > 1 or kind == "transform":
        _draw_tendrils(canvas, boss, radius_m, int(fight["step"]))
    canvas.circle(_lower(boss.at), radius_m * 1.08, palette.BLACK, 0.35)
    _draw_nose(canvas, boss, radius_m, edge)
    canvas.circle(boss.at, radius_m, edge)
    canvas.circle(boss.at, radius_m * 0.86, body)
    canvas.polygon(sector(boss, -38.0, 38.0, radius_m * 0.86), palette.mix(body, edge, 0.45))
    if fight["lock_on"]:
        canvas.circle(boss.at, radius_m * 0.2, palette.BLACK, 0.5)
        canvas.circle(boss.at, radius_m * 0.14, palette.WHITE)


def draw_player(canvas: Drawing, player: Stand, fight: np.void, spec: FightSpec) -> None:
    """The player: green halo while blows pass through him, red when hurt, smaller as he falls."""
    radius_m = spec.player.radius_m * 1.15 * _fallen_share(fight)
    if fight["invulnerable"] and fight["player_move"] != FALL_MOVE:
        canvas.circle(player.at, 1.0, palette.INVULNERABLE, 0.38)
        canvas.circle(player.at, 1.0, palette.INVULNERABLE, ring=2.0)
    hurt = fight["damage_taken"] > 0.0 and fight["player_move"] != FALL_MOVE
    if hurt:
        canvas.circle(player.at, 1.15, palette.DANGER, 0.55)
    if parries(fight, spec):
        canvas.lines(sector(player, -60.0, 60.0, 0.85)[:-1], palette.PARRY, 3.0)
    canvas.circle(_lower(player.at), radius_m * 1.15, palette.BLACK, 0.35)
    _draw_nose(canvas, player, radius_m, palette.PLAYER_EDGE)
    canvas.circle(player.at, radius_m, palette.PLAYER_EDGE)
    canvas.circle(player.at, radius_m * 0.78, palette.mix(palette.PLAYER, palette.DANGER, 0.7 if hurt else 0.0))


def draw_intent(canvas: Drawing, player: Stand, fight: np.void, control: np.void) -> None:
    """A chevron where the pressed direction points, which is in the frame of the camera."""
    if not 0 <= control["direction"] < len(DIRECTIONS):
        return
    view = math.atan2(-fight["camera_pose"][3], -fight["camera_pose"][4])
    way = Stand(player.x_m, player.y_m, view + int(control["direction"]) * 2.0 * math.pi / len(DIRECTIONS))
    colour = palette.INVULNERABLE if control["button"] == Button.ROLL else palette.PLAYER_EDGE
    tips = [way.offset(1.15, -0.22), way.offset(1.40, 0.0), way.offset(1.15, 0.22)]
    canvas.lines(tips, colour, 2.2, 0.85)


def _fallen_share(fight: np.void) -> float:
    return max(0.4, 1.0 - float(fight["player_move_s"])) if fight["player_move"] == FALL_MOVE else 1.0


def parries(fight: np.void, spec: FightSpec) -> bool:
    """Whether a blow would be parried now."""
    move = int(fight["player_move"])
    if move < 0:
        return False
    start_s, end_s = spec.player.moves[move].parry_s
    return start_s <= float(fight["player_move_s"]) < end_s


def _draw_nose(canvas: Drawing, stand: Stand, radius_m: float, colour: palette.Colour) -> None:
    side = radius_m * 0.62
    corners = [
        stand.offset(radius_m * 0.7, -side),
        stand.offset(radius_m * 1.65, 0.0),
        stand.offset(radius_m * 0.7, side),
    ]
    canvas.polygon(corners, colour)


def _draw_tendrils(canvas: Drawing, boss: Stand, radius_m: float, step: int) -> None:
    """The black growth of the second phase, restless behind the body."""
    for i in range(TENDRILS):
        bearing = math.radians(60.0 + 240.0 * i / (TENDRILS - 1)) + 0.12 * math.sin(0.9 * step + 1.7 * i)
        length_m = radius_m * (1.75 + 0.35 * math.sin(0.7 * step + 2.4 * i))
        root = Stand(*boss.at, boss.heading_rad + bearing)
        tip = root.offset(length_m, 0.0)
        canvas.polygon([root.offset(radius_m * 0.6, -0.28), tip, root.offset(radius_m * 0.6, 0.28)], palette.TENDRIL)


def _lower(point: Point) -> Point:
    """Where the shadow falls."""
    return point[0] + 0.08, point[1] - 0.12
