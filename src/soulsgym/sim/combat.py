"""Blows and bodies: who hits whom, what it does, and that nobody stands inside anybody or off the ground."""

from __future__ import annotations

import math

from soulsgym.compiling import inner
from soulsgym.sim.boss import (
    EXECUTED,
    NO_ACT,
    OPEN,
    PARRIED,
    TRANSFORM,
    bearing_of_player,
    boss_heading,
    start_boss_move,
)
from soulsgym.sim.geometry import HALF_PI, PI, ground_z, heading_to, nearest_edge, wrap
from soulsgym.sim.hidden import FALL_MOVE, ROLL_MOVE
from soulsgym.sim.player import GRABBED, invulnerable, show, start_flinch, start_reaction
from soulsgym.spec.boss import HIT_SHAPES
from soulsgym.spec.player import PLAYER_KINDS

SECTOR, THRUST, DISC = range(len(HIT_SHAPES))
CORNER_TRIES = 4
"""How often a body is pushed back from one edge into, perhaps, the next."""
RIPOSTE = PLAYER_KINDS.index("riposte")


@inner
def _in_hit(f, hit, r, dx, dy, share):
    """Is the player inside the blow? `share` of its time is over."""
    reach = hit.reach_m * f.reach_k
    if hit.shape == DISC:
        x = dx + f.bsin * hit.offset_m
        y = dy + f.bcos * hit.offset_m
        return x * x + y * y <= reach * reach
    if r > reach or r < hit.inner_m:
        return False
    if hit.shape == THRUST:
        along = -f.bsin * dx - f.bcos * dy
        across = -f.bcos * dx + f.bsin * dy
        return along > 0.0 and abs(across) <= hit.half_width_m
    bearing = bearing_of_player(f)
    if hit.sweep == 0:
        return hit.arc_from <= bearing <= hit.arc_to
    blade = hit.arc_from + share * (hit.arc_to - hit.arc_from)
    return abs(wrap(bearing - blade)) <= hit.blade


@inner
def _flinch_side(f):
    """0 front, 1 right, 2 back, 3 left: where the boss stands, seen from the player."""
    bearing = wrap(heading_to(f.bx - f.px, f.by - f.py) - f.pa)
    if abs(bearing) <= HALF_PI / 2.0:
        return 0
    if abs(bearing) >= 1.5 * HALF_PI:
        return 2
    return 1 if bearing > 0.0 else 3


@inner
def hurt(f, g, damage, move):
    """Take damage from a boss move."""
    damage = min(f.hp, damage)
    f.hp -= damage
    g.damage_taken += damage
    g.hit_by = move
    if f.hp <= 0.0:
        g.killed_by = move


@inner
def _grab(f, c, T, grab):
    start_reaction(f, c, T.player_moves, c.p_throw, wrap(boss_heading(f) + PI))
    f.lock = 0
    held_m = T.player_moves[c.p_throw].held_m
    f.px, f.py = f.bx - f.bsin * held_m, f.by - f.bcos * held_m
    f.links = 0
    start_boss_move(f, c, T, grab)


@inner
def _faces_boss(f):
    """Is the boss in the half of the world that the player looks at?"""
    return abs(wrap(heading_to(f.bx - f.px, f.by - f.py) - f.pa)) <= HALF_PI


@inner
def _struck(f, g, c, T, hit, row):
    """A blow reached the player, who is neither invulnerable nor parrying."""
    moves = T.player_moves
    damage = round(hit.damage * f.damage_k)
    if row.grab >= 0:
        _grab(f, c, T, row.grab)
        g.hit_by = f.bmove
        return
    reaction = hit.reaction
    if f.pmove >= 0 and moves[f.pmove].guard_from <= f.pt < moves[f.pmove].guard_to and _faces_boss(f):
        # Recorded once: 9 stamina against a blow of 68 held. The shield gives way where stamina cannot fall any more.
        guarding = f.sp - hit.stamina > c.sp_floor
        f.sp = max(c.sp_floor, f.sp - hit.stamina)
        if guarding:
            hurt(f, g, round(damage * moves[f.pmove].guard_factor), f.bmove)
            return
        reaction = c.p_guard_break
    hurt(f, g, damage, f.bmove)
    if f.pmove == ROLL_MOVE and moves[reaction].down == 0:
        start_flinch(f, c.flinch[_flinch_side(f)])
        return
    start_reaction(f, c, moves, reaction, heading_to(f.bx - f.px, f.by - f.py))
    if hit.push_m > 0.0 and reaction == hit.reaction and moves[reaction].moved_m > 0.0:
        f.kf = hit.push_m / moves[reaction].moved_m
        f.kr = f.kf


@inner
def boss_blows(f, g, c, T, r, dx, dy):
    """The blows of the boss's move in this tick."""
    row = T.boss_moves[f.bmove]
    if f.bt < row.hits_from_s + f.shift or f.bt > row.hits_to_s + f.shift:
        return
    for i in range(row.hits):
        bit = 1 << i
        if f.hit_bits & bit:
            continue
        hit = T.hits[row.hit + i]
        since = f.bt - hit.from_s - f.shift
        lasts = hit.to_s - hit.from_s
        if since < 0.0 or since > lasts:
            continue
        if not _in_hit(f, hit, r, dx, dy, since / lasts):
            continue
        if invulnerable(f, c, T.player_moves):
            if not f.dodge_bits & bit:
                f.dodge_bits |= bit
                g.dodged = f.bmove
            continue
        f.hit_bits |= bit
        if f.pmove >= 0 and hit.parriable == 1:
            mine = T.player_moves[f.pmove]
            if mine.parry_from <= f.pt < mine.parry_to and _faces_boss(f):
                f.act = NO_ACT
                f.links = 0
                start_boss_move(f, c, T, c.b_parried)
                return
        _struck(f, g, c, T, hit, row)
        return


@inner
def _wound_boss(f, g, damage, move):
    damage = min(f.boss_hp, damage)
    f.boss_hp -= damage
    g.damage_dealt += damage
    g.landed = move


@inner
def player_blows(f, g, c, T, r, dx, dy):
    """The blows of the player's move in this tick."""
    if f.pmove < 0:
        return
    mine = T.player_moves[f.pmove]
    if not mine.strikes_from_s <= f.pt <= mine.strikes_to_s:
        return
    for i in range(mine.strikes):
        strike = T.strikes[mine.strike + i]
        bit = 1 << i
        if f.struck & bit or not strike.from_s <= f.pt <= strike.to_s:
            continue
        if mine.kind != RIPOSTE and (r > strike.reach_m or abs(wrap(heading_to(-dx, -dy) - f.pa)) > strike.arc):
            continue
        f.struck |= bit
        _strike_boss(f, g, c, T, strike)


@inner
def _strike_boss(f, g, c, T, strike):
    kind = T.boss_moves[f.bmove].kind
    opened = kind in (OPEN, PARRIED)
    _wound_boss(f, g, round(strike.damage * (c.opened_factor if opened else 1.0)), f.pmove)
    f.poise_t = 0.0
    # A change of phase is never broken off: it would begin again, with all its openings.
    if opened or kind in (EXECUTED, TRANSFORM):
        return
    f.poise -= strike.poise
    if f.poise <= 0.0 and T.boss_moves[f.bmove].throws == 0 and f.boss_hp > 0.0:
        f.poise = c.poise
        f.act = NO_ACT
        f.links = 0
        start_boss_move(f, c, T, c.b_stagger)


@inner
def may_riposte(f, c, T, r):
    """Does a light attack now become the riposte?"""
    if T.boss_moves[f.bmove].kind != PARRIED or r > c.riposte_m or not _faces_boss(f):
        return False
    return abs(wrap(boss_heading(f) - f.pa)) >= c.riposte_facing


@inner
def held_tick(f, g, c, T):
    """A grabbed player takes the damage of the throw."""
    boss = T.boss_moves[f.bmove]
    while f.thrown < boss.throws and f.bt >= T.throws[boss.throw + f.thrown].at_s:
        hurt(f, g, round(T.throws[boss.throw + f.thrown].damage * f.damage_k), f.bmove)
        f.thrown += 1


@inner
def separate(f, c, T, boss_x, boss_y):
    """Keep the bodies apart: whoever moves in is stopped. (boss_x, boss_y) is the boss's motion in this tick."""
    if f.pmove >= 0 and T.player_moves[f.pmove].kind == GRABBED:
        return
    dx, dy = f.px - f.bx, f.py - f.by
    square = dx * dx + dy * dy
    if square >= c.least_m * c.least_m:
        return
    r = math.sqrt(square)
    if r < 1e-9:
        dx, dy, r = -f.bsin, -f.bcos, 1.0
        f.px, f.py = f.bx, f.by
        square = 0.0
    nx, ny = dx / r, dy / r
    overlap = c.least_m - math.sqrt(square)
    mine = max(0.0, -(f.vx * nx + f.vy * ny))
    its = max(0.0, boss_x * nx + boss_y * ny)
    share = mine / (mine + its) if mine + its > 1e-9 else 1.0
    # The boss is not pushed farther than he came; the rest is the player's.
    stopped = min(its, overlap * (1.0 - share))
    if stopped > 0.0:
        held = c.contact_drag * stopped / its
        f.bx -= nx * stopped + held * (boss_x - nx * its)
        f.by -= ny * stopped + held * (boss_y - ny * its)
    f.px += nx * (overlap - stopped)
    f.py += ny * (overlap - stopped)


@inner
def _start_fall(f, c):
    f.pmove = FALL_MOVE
    f.pt = 0.0
    f.fall_v = 0.0
    f.cf = -1
    f.cr = -1
    f.flinch_t = -1.0
    show(f, c.id_fall_start)


@inner
def keep_inside(f, c, T):
    """Walls stop both; a cliff stops the boss, and drops the player. Looks only once out of the last safe circle."""
    dx, dy = f.bx - f.bsafe_x, f.by - f.bsafe_y
    if dx * dx + dy * dy > f.bsafe_r2:
        _keep_boss(f, c, T)
    dx, dy = f.px - f.safe_x, f.py - f.safe_y
    if f.pmove != FALL_MOVE and dx * dx + dy * dy > f.safe_r2:
        _keep_player(f, c, T)
        if f.pmove != FALL_MOVE:
            _make_room(f, c, T)


@inner
def _make_room(f, c, T):
    """A player held by a wall cannot give way, so the boss does."""
    if f.pmove >= 0 and T.player_moves[f.pmove].kind == GRABBED:
        return
    dx, dy = f.bx - f.px, f.by - f.py
    r = math.sqrt(dx * dx + dy * dy)
    if 1e-9 < r < c.least_m:
        f.bx += dx / r * (c.least_m - r)
        f.by += dy / r * (c.least_m - r)


@inner
def _keep_boss(f, c, T):
    which, left = nearest_edge(T, f.bx, f.by)
    for _ in range(CORNER_TRIES):
        if left >= c.boss_radius_m:
            break
        f.bx += T.edges[which].nx * (left - c.boss_radius_m)
        f.by += T.edges[which].ny * (left - c.boss_radius_m)
        which, left = nearest_edge(T, f.bx, f.by)
    left = max(0.0, left - c.boss_radius_m)
    f.bsafe_x, f.bsafe_y, f.bsafe_r2 = f.bx, f.by, left * left


@inner
def _keep_player(f, c, T):
    which, left = nearest_edge(T, f.px, f.py)
    for _ in range(CORNER_TRIES):
        if left >= 0.0:
            break
        if T.edges[which].cliff == 1 and not (f.pmove >= 0 and T.player_moves[f.pmove].kind == GRABBED):
            _start_fall(f, c)
            return
        f.px += T.edges[which].nx * left
        f.py += T.edges[which].ny * left
        which, left = nearest_edge(T, f.px, f.py)
    left = max(0.0, left)
    f.safe_x, f.safe_y, f.safe_r2 = f.px, f.py, left * left


@inner
def fall_tick(f, g, c):
    """Fall; deep enough is deadly."""
    f.fall_v += c.fall_per_tick2
    f.pz -= f.fall_v
    f.pt += c.tick_s
    f.plabel_t += c.tick_s
    if f.pt >= c.fall_loop_s and f.plabel == c.id_fall_start:
        show(f, c.id_fall_loop)
    if f.pz < ground_z(c, f.px, f.py) - c.deadly_drop_m:
        g.damage_taken += f.hp
        f.hp = 0.0
