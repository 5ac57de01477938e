"""The areas of blows: growing while a blow comes, lit while it lands."""

from __future__ import annotations

import numpy as np

from soulsgym.render import palette
from soulsgym.render.drawing import Drawing
from soulsgym.render.plan import Stand, at_the_blow, blade_area, blade_deg, hit_area, sector, strike_area
from soulsgym.render.story import Stretch
from soulsgym.spec import FightSpec
from soulsgym.spec.boss import Hit

COMING_S = 0.6
"""How long before a blow its area appears."""
STRIKE_COMING_S = 0.3


def draw_boss_blows(
    canvas: Drawing, fight: np.void, boss: Stand, player: Stand, spec: FightSpec, stretches: list[Stretch]
) -> None:
    """Every blow of the boss that comes, or landed within the last step."""
    landed = [
        (hit, stretch)
        for stretch in stretches
        for hit in spec.boss.moves[stretch.move].hits
        if stretch.meets(hit.from_s, hit.to_s)
    ]
    if fight["boss_move"] >= 0:
        move, move_s = spec.boss.moves[int(fight["boss_move"])], float(fight["boss_move_s"])
        for hit in move.hits:
            if 0.0 < hit.from_s - move_s <= COMING_S:
                place = at_the_blow(move, move_s, hit, boss, player.at, spec.boss.least_distance_m)
                _draw_coming(canvas, hit, place, 1.0 - (hit.from_s - move_s) / COMING_S)
    for hit, stretch in landed:
        _draw_landing(canvas, hit, boss, stretch)


def draw_player_blow(canvas: Drawing, fight: np.void, player: Stand, spec: FightSpec) -> None:
    """The blows of the player's move; those of a riposte have no area."""
    if fight["player_move"] < 0:
        return
    move, move_s = spec.player.moves[int(fight["player_move"])], float(fight["player_move_s"])
    for strike in move.strikes if move.kind != "riposte" else ():
        area = strike_area(strike, player)
        if strike.from_s <= move_s and move_s - spec.player.label_s_per_step < strike.to_s:
            canvas.polygon(area, palette.PLAYER_STRIKE, 0.55)
            canvas.lines(area, palette.WHITE, 1.5, closed=True)
        elif 0.0 < strike.from_s - move_s <= STRIKE_COMING_S:
            canvas.polygon(area, palette.PLAYER_STRIKE, 0.12)
            canvas.lines(area, palette.PLAYER_STRIKE, 1.2, 0.6, closed=True)


def _draw_coming(canvas: Drawing, hit: Hit, boss: Stand, progress: float) -> None:
    colour = palette.mix(palette.WARNING, palette.DANGER, progress)
    area = hit_area(hit, boss)
    canvas.polygon(area, colour, 0.10)
    canvas.polygon(hit_area(hit, boss, progress), colour, 0.16 + 0.14 * progress)
    canvas.lines(area, colour, 1.5, 0.35 + 0.5 * progress, closed=True)
    if hit.sweep:
        _draw_blade(canvas, hit, boss, hit.from_s, 0.5)
        _draw_way(canvas, hit, boss)


def _draw_landing(canvas: Drawing, hit: Hit, boss: Stand, stretch: Stretch) -> None:
    if hit.sweep:
        whole = hit_area(hit, boss)
        canvas.polygon(whole, palette.DANGER, 0.14)
        canvas.lines(whole, palette.DANGER, 1.5, 0.6, closed=True)
        area = blade_area(hit, boss, stretch.from_s, stretch.to_s)
    else:
        area = hit_area(hit, boss)
    canvas.polygon(area, palette.DANGER, 0.62)
    canvas.lines(area, palette.BLADE, 2.5, closed=True)
    if hit.sweep:
        _draw_blade(canvas, hit, boss, stretch.to_s, 1.0)


def _draw_blade(canvas: Drawing, hit: Hit, boss: Stand, move_s: float, alpha: float) -> None:
    blade = Stand(*boss.at, boss.heading_rad + np.deg2rad(blade_deg(hit, move_s)))
    canvas.lines([blade.offset(hit.inner_m, 0.0), blade.offset(hit.reach_m, 0.0)], palette.BLADE, 3.0, alpha)


def _draw_way(canvas: Drawing, hit: Hit, boss: Stand) -> None:
    """An arrow along the arc that the blade will take."""
    start, end = hit.arc_deg
    radius_m = hit.reach_m * 0.8
    canvas.lines(sector(boss, start, end, radius_m)[:-1], palette.BLADE, 1.2, 0.4)
    back = np.deg2rad(end - np.sign(end - start) * 7.0)
    tip = boss.towards(np.deg2rad(end), radius_m)
    canvas.lines(
        [boss.towards(back, radius_m - 0.25), tip, boss.towards(back, radius_m + 0.25)], palette.BLADE, 1.2, 0.6
    )
