"""What is drawn of a fight on the ground: areas of blows, the two fighters, their trails and the camera."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from soulsgym.actions import DIRECTIONS, Button
from soulsgym.render import palette
from soulsgym.render.areas import (
    Point,
    Pose,
    area_of_blade,
    area_of_hit,
    area_of_strike,
    blade_deg,
    sector,
    stand_at_hit,
)
from soulsgym.render.history import FALL_MOVE, TRAIL_STEPS, MoveSpan, Trace
from soulsgym.render.palette import Colour
from soulsgym.spec import FightSpec
from soulsgym.spec.boss import Hit

POLYGON, LINE, CLOSED, DASHES, DISC, RING = range(6)
HIT_COMES_S, STRIKE_COMES_S = 0.6, 0.3
"""How long before a blow of the boss, and of the player, its area appears."""
OPEN_KINDS = ("open", "parried", "executed")
"""Moves of the boss in which he can be struck without danger."""
VIEW_HALF_DEG, VIEW_M = 22.0, 6.0
TENDRILS = 11


class Shape(NamedTuple):
    """Something to draw: a polygon, a line through points, a dashed line, or a disc or ring around one point."""

    kind: int
    points: Sequence[Point]  # [m]
    colour: Colour
    alpha: float = 1.0
    width_px: float = 0.0  # of lines
    radius_m: float = 0.0  # of discs and rings
    dash_px: float = 0.0


def is_open(fight: np.void, spec: FightSpec) -> bool:
    """Whether the boss can be struck without danger."""
    return _boss_move_kind(fight, spec) in OPEN_KINDS


def is_parrying(fight: np.void, spec: FightSpec) -> bool:
    """Whether a blow would be parried now."""
    if fight["player_move"] < 0:
        return False
    start_s, end_s = spec.player.moves[int(fight["player_move"])].parry_s
    return start_s <= float(fight["player_move_s"]) < end_s


def _boss_move_kind(fight: np.void, spec: FightSpec) -> str:
    move = int(fight["boss_move"])
    return spec.boss.moves[move].kind if move >= 0 else ""


# ---------------------------------------------------------------- blows


def boss_blows(fight: np.void, boss: Pose, player: Pose, spec: FightSpec, spans: Iterable[MoveSpan]) -> Iterator[Shape]:
    """Every blow of the boss that comes, or landed within the last step: its `spans` of moves."""
    if fight["boss_move"] >= 0:
        move, move_s = spec.boss.moves[int(fight["boss_move"])], float(fight["boss_move_s"])
        for hit in move.hits:
            if 0.0 < hit.from_s - move_s <= HIT_COMES_S:
                place = stand_at_hit(move, move_s, hit, boss, player.at, spec.boss.least_distance_m)
                yield from _coming(hit, place, 1.0 - (hit.from_s - move_s) / HIT_COMES_S)
    for span in spans:
        for hit in spec.boss.moves[span.move].hits:
            if span.meets(hit.from_s, hit.to_s):
                yield from _landing(hit, boss, span)


def player_blows(fight: np.void, player: Pose, spec: FightSpec) -> Iterator[Shape]:
    """The blows of the player's move; those of a riposte have no area."""
    if fight["player_move"] < 0:
        return
    move, move_s = spec.player.moves[int(fight["player_move"])], float(fight["player_move_s"])
    for strike in move.strikes if move.kind != "riposte" else ():
        area = area_of_strike(strike, player)
        if strike.from_s <= move_s and move_s - spec.player.label_s_per_step < strike.to_s:
            yield Shape(POLYGON, area, palette.PLAYER_STRIKE, 0.55)
            yield Shape(CLOSED, area, palette.WHITE, width_px=1.5)
        elif 0.0 < strike.from_s - move_s <= STRIKE_COMES_S:
            yield Shape(POLYGON, area, palette.PLAYER_STRIKE, 0.12)
            yield Shape(CLOSED, area, palette.PLAYER_STRIKE, 0.6, 1.2)


def _coming(hit: Hit, boss: Pose, progress: float) -> Iterator[Shape]:
    colour = palette.mix(palette.WARNING, palette.DANGER, progress)
    area = area_of_hit(hit, boss)
    yield Shape(POLYGON, area, colour, 0.10)
    yield Shape(POLYGON, area_of_hit(hit, boss, progress), colour, 0.16 + 0.14 * progress)
    yield Shape(CLOSED, area, colour, 0.35 + 0.5 * progress, 1.5)
    if hit.sweep:
        yield _blade(hit, boss, hit.from_s, 0.5)
        yield from _arrow(hit, boss)


def _landing(hit: Hit, boss: Pose, span: MoveSpan) -> Iterator[Shape]:
    area = area_of_hit(hit, boss)
    if hit.sweep:
        yield Shape(POLYGON, area, palette.DANGER, 0.14)
        yield Shape(CLOSED, area, palette.DANGER, 0.6, 1.5)
        area = area_of_blade(hit, boss, span.from_s, span.to_s)
    yield Shape(POLYGON, area, palette.DANGER, 0.62)
    yield Shape(CLOSED, area, palette.BLADE, width_px=2.5)
    if hit.sweep:
        yield _blade(hit, boss, span.to_s, 1.0)


def _blade(hit: Hit, boss: Pose, move_s: float, alpha: float) -> Shape:
    blade = Pose(*boss.at, boss.heading_rad + np.deg2rad(blade_deg(hit, move_s)))
    return Shape(LINE, [blade.offset(hit.inner_m, 0.0), blade.offset(hit.reach_m, 0.0)], palette.BLADE, alpha, 3.0)


def _arrow(hit: Hit, boss: Pose) -> Iterator[Shape]:
    """An arrow along the arc that the blade will take."""
    start, end = hit.arc_deg
    radius_m = hit.reach_m * 0.8
    back, tip = np.deg2rad(end - np.sign(end - start) * 7.0), boss.towards(np.deg2rad(end), radius_m)
    head = [boss.towards(back, radius_m - 0.25), tip, boss.towards(back, radius_m + 0.25)]
    yield Shape(LINE, sector(boss, start, end, radius_m)[:-1], palette.BLADE, 0.4, 1.2)
    yield Shape(LINE, head, palette.BLADE, 0.6, 1.2)


# ---------------------------------------------------------------- fighters


def camera_view(fight: np.void) -> Iterator[Shape]:
    """A faint cone from the camera along its view."""
    pose = fight["camera_pose"]
    eye = Pose(float(pose[0]), float(pose[1]), _view_heading(fight))
    yield Shape(POLYGON, sector(eye, -VIEW_HALF_DEG, VIEW_HALF_DEG, VIEW_M), palette.WHITE, 0.045)
    yield Shape(POLYGON, sector(eye, -VIEW_HALF_DEG, VIEW_HALF_DEG, 0.55), palette.WHITE, 0.28)


def trails(traces: Sequence[Trace], now: float, spec: FightSpec) -> Iterator[Shape]:
    """Where both came from, and the shadows of a roll; `now` is counted in steps."""
    for last, trace in pairwise(traces):
        fade = 1.0 - (now - trace.step) / TRAIL_STEPS
        yield Shape(LINE, [last.boss, trace.boss], palette.BOSS_EDGE, 0.45 * fade, 2.0)
        yield Shape(LINE, [last.player, trace.player], palette.PLAYER, 0.60 * fade, 2.0)
    for trace in traces[:-1]:
        if trace.rolling:
            fade = 1.0 - (now - trace.step) / TRAIL_STEPS
            colour = palette.INVULNERABLE if trace.invulnerable else palette.PLAYER
            yield Shape(DISC, [trace.player], colour, 0.55 * fade, radius_m=spec.player.radius_m)


def boss_body(boss: Pose, fight: np.void, spec: FightSpec, now: float) -> Iterator[Shape]:
    """The boss: its radius, its face, white when hit, golden while open."""
    radius_m = spec.boss.radius_m
    body = palette.mix(palette.BOSS, palette.WHITE, 0.75 if fight["damage_dealt"] > 0.0 else 0.0)
    edge = palette.BOSS_OPEN if is_open(fight, spec) else palette.BOSS_EDGE
    if fight["phase"] > 1 or _boss_move_kind(fight, spec) == "transform":
        yield from _tendrils(boss, radius_m, now)
    yield _shadow(boss, radius_m * 1.08)
    yield _nose(boss, radius_m, edge)
    yield Shape(DISC, [boss.at], edge, radius_m=radius_m)
    yield Shape(DISC, [boss.at], body, radius_m=radius_m * 0.86)
    yield Shape(POLYGON, sector(boss, -38.0, 38.0, radius_m * 0.86), palette.mix(body, edge, 0.45))
    if fight["lock_on"]:
        yield Shape(DISC, [boss.at], palette.BLACK, 0.5, radius_m=radius_m * 0.2)
        yield Shape(DISC, [boss.at], palette.WHITE, radius_m=radius_m * 0.14)


def player_body(player: Pose, fight: np.void, spec: FightSpec) -> Iterator[Shape]:
    """The player: green halo while blows pass through him, red when hurt, smaller as he falls."""
    falls = fight["player_move"] == FALL_MOVE
    radius_m = spec.player.radius_m * 1.15 * (max(0.4, 1.0 - float(fight["player_move_s"])) if falls else 1.0)
    hurt = fight["damage_taken"] > 0.0 and not falls
    if fight["invulnerable"] and not falls:
        yield Shape(DISC, [player.at], palette.INVULNERABLE, 0.38, radius_m=1.0)
        yield Shape(RING, [player.at], palette.INVULNERABLE, width_px=2.0, radius_m=1.0)
    if hurt:
        yield Shape(DISC, [player.at], palette.DANGER, 0.55, radius_m=1.15)
    if is_parrying(fight, spec):
        yield Shape(LINE, sector(player, -60.0, 60.0, 0.85)[:-1], palette.PARRY, width_px=3.0)
    yield _shadow(player, radius_m * 1.15)
    yield _nose(player, radius_m, palette.PLAYER_EDGE)
    yield Shape(DISC, [player.at], palette.PLAYER_EDGE, radius_m=radius_m)
    body = palette.mix(palette.PLAYER, palette.DANGER, 0.7 if hurt else 0.0)
    yield Shape(DISC, [player.at], body, radius_m=radius_m * 0.78)


def pressed_direction(player: Pose, fight: np.void, control: np.void) -> Iterator[Shape]:
    """A chevron where the pressed direction points, which is in the frame of the camera."""
    if not 0 <= control["direction"] < len(DIRECTIONS):
        return
    turn = int(control["direction"]) * 2.0 * math.pi / len(DIRECTIONS)
    way = Pose(*player.at, _view_heading(fight) + turn)
    colour = palette.INVULNERABLE if control["button"] == Button.ROLL else palette.PLAYER_EDGE
    tips = [way.offset(1.15, -0.22), way.offset(1.40, 0.0), way.offset(1.15, 0.22)]
    yield Shape(LINE, tips, colour, 0.85, 2.2)


def _view_heading(fight: np.void) -> float:
    return math.atan2(-fight["camera_pose"][3], -fight["camera_pose"][4])


def _nose(pose: Pose, radius_m: float, colour: Colour) -> Shape:
    root_m, side_m = radius_m * 0.7, radius_m * 0.62
    tip = pose.offset(radius_m * 1.65, 0.0)
    return Shape(POLYGON, [pose.offset(root_m, -side_m), tip, pose.offset(root_m, side_m)], colour)


def _tendrils(boss: Pose, radius_m: float, now: float) -> Iterator[Shape]:
    """The black growth of later phases, restless behind the body."""
    for i in range(TENDRILS):
        bearing = math.radians(60.0 + 240.0 * i / (TENDRILS - 1)) + 0.12 * math.sin(0.9 * now + 1.7 * i)
        length_m = radius_m * (1.75 + 0.35 * math.sin(0.7 * now + 2.4 * i))
        root = Pose(*boss.at, boss.heading_rad + bearing)
        sides = root.offset(radius_m * 0.6, -0.28), root.offset(radius_m * 0.6, 0.28)
        yield Shape(POLYGON, [sides[0], root.offset(length_m, 0.0), sides[1]], palette.TENDRIL)


def _shadow(pose: Pose, radius_m: float) -> Shape:
    return Shape(DISC, [(pose.x_m + 0.08, pose.y_m - 0.12)], palette.BLACK, 0.35, radius_m=radius_m)
