"""The step and reset kernels: six ticks for every fight of a range, and what the record shows afterwards."""

from __future__ import annotations

import math

import numpy as np

from soulsgym.compiling import inlined, inner
from soulsgym.sim.boss import (
    NEW,
    NO_ACT,
    body_tick,
    boss_heading,
    mind_tick,
    set_boss_heading,
    start_boss_move,
)
from soulsgym.sim.combat import (
    boss_blows,
    fall_tick,
    held_tick,
    keep_inside,
    may_riposte,
    player_blows,
    separate,
)
from soulsgym.sim.geometry import cosine, ground_z, heading_to, sine, wrap
from soulsgym.sim.hidden import FALL_MOVE
from soulsgym.sim.player import (
    GRABBED,
    LIGHT,
    NONE,
    ROLL,
    clock_tick,
    hold,
    invulnerable,
    motion_tick,
    press,
    set_heading,
    stamina_tick,
    start_idle,
    start_move,
)
from soulsgym.sim.random import draw, mixed, unit
from soulsgym.state import MAX_DURATION_S, Outcome

STEP_S = 0.1
ROUNDING_S = 1e-6
"""Sixty ticks add up to a little less than they are."""
RUNNING, WON, DIED, FELL = (int(Outcome[name]) for name in ("RUNNING", "WON", "DIED", "FELL"))
EPISODE_SALT = np.uint64(0xA0761D6478BD642F)
NOISE_SALT = np.uint64(0xE7037ED1A0B428DB)


@inner
def camera_tick(f, c):
    """The camera after a step: its pivot follows the player, its view the boss. Without lock-on it stays."""
    f.pivot_x += c.cam_pivot * (f.px - f.pivot_x)
    f.pivot_y += c.cam_pivot * (f.py - f.pivot_y)
    if f.lock == 1:
        error = wrap(heading_to(f.bx - f.pivot_x, f.by - f.pivot_y) - f.cam)
        f.cam = wrap(f.cam + c.cam_yaw * error)


@inner
def _press_camera(f, c):
    """The camera's angle when a press takes effect, a little into the step."""
    if f.lock == 0:
        return f.cam
    error = wrap(heading_to(f.bx - f.pivot_x, f.by - f.pivot_y) - f.cam)
    return wrap(f.cam + c.cam_press * c.cam_yaw * error)


@inner
def allowed(f, timings, what):
    """May the player attack (0), roll (1), walk (2) now, by the label shown and his stamina?"""
    if what < 2 and math.floor(f.sp) <= 0.0:
        return False
    return f.plabel_t >= timings[f.plabel + 1, what] - ROUNDING_S


@inlined
def player_tick(f, g, c, T, key, button, cam, at, tick):
    """One tick of the player alone; `at` is the tick in which a press takes effect."""
    moves = T.player_moves
    if f.pmove == FALL_MOVE:
        fall_tick(f, g, c)
        return
    stamina_tick(f, c, moves)
    # Looked at again: a blow may have come in between.
    if tick == at and button != NONE and allowed(f, T.timings, 1 if button == ROLL else 0):
        r = math.sqrt((f.px - f.bx) ** 2 + (f.py - f.by) ** 2)
        if button == LIGHT and may_riposte(f, c, T, r):
            start_move(f, moves, c.p_riposte)
            f.act = NO_ACT
            start_boss_move(f, c, T, c.b_executed)
        else:
            press(f, c, moves, T.curves, button, key, cam)
    # The key takes its time to start a walk, not to keep one up.
    walk_key = key if button == NONE and (tick >= at or f.held_steps > 1) else -1
    if f.pmove >= 0 and moves[f.pmove].kind == GRABBED:
        held_tick(f, g, c, T)
    motion_tick(f, c, moves, T.curves, walk_key, cam)
    clock_tick(f, c, moves, key if button == NONE else -1)


@inner
def _fight_tick(f, g, c, T, key, button, cam, at, tick):
    player_tick(f, g, c, T, key, button, cam, at, tick)
    dx, dy = f.px - f.bx, f.py - f.by
    r = math.sqrt(dx * dx + dy * dy)
    mind_tick(f, c, T, r)
    boss_x, boss_y = body_tick(f, c, T, r, dx, dy)
    if f.pmove != FALL_MOVE:
        separate(f, c, T, boss_x, boss_y)
    dx, dy = f.px - f.bx, f.py - f.by
    r = math.sqrt(dx * dx + dy * dy)
    if f.hp > 0.0 and f.boss_hp > 0.0:
        player_blows(f, g, c, T, r, dx, dy)
        if f.boss_hp > 0.0 and f.pmove != FALL_MOVE:
            boss_blows(f, g, c, T, r, dx, dy)
    f.poise_t += c.tick_s
    if f.poise_t >= c.poise_recovery_s:
        f.poise = c.poise


@inner
def accepted(f, c, T, control):
    """The key and button that get through: pressed while disabled has no effect, and randomisation may lose some."""
    key, button = control.direction, control.button
    if f.drop > 0.0 and (key >= 0 or button != NONE) and draw(f) < f.drop:
        return -1, NONE
    if button == NONE:
        return (key if key >= 0 and allowed(f, T.timings, 2) else -1), NONE
    if not allowed(f, T.timings, 1 if button == ROLL else 0) or f.pmove == FALL_MOVE:
        return -1, NONE
    return key, button


@inner
def _step(f, g, c, T, key, button):
    cam = _press_camera(f, c) if key >= 0 else f.cam
    at = min(c.ticks - 1, int(c.delay_ticks) + f.delay)
    g.damage_dealt, g.damage_taken = 0.0, 0.0
    g.hit_by, g.landed, g.dodged = -1, -1, -1
    if f.pmove != FALL_MOVE and button == NONE:
        hold(f, c, T.player_moves, T.curves, key)
    # Read from the tables, since a number known to the compiler would make it write out the loop six times.
    for tick in range(c.ticks):
        _fight_tick(f, g, c, T, key, button, cam, at, tick)
        if f.hp <= 0.0 or f.boss_hp <= 0.0:
            break
    # Once a step is enough for the edge of the arena, which nobody is seen beyond.
    keep_inside(f, c, T)
    if f.pmove != FALL_MOVE:
        f.pz = ground_z(c, f.px, f.py)
    camera_tick(f, c)
    g.step += 1
    g.dealt_total += g.damage_dealt
    g.taken_total += g.damage_taken
    if f.boss_hp <= 0.0:
        g.outcome = WON
    elif f.hp <= 0.0:
        g.outcome = FELL if f.pmove == FALL_MOVE else DIED


@inner
def _noise(f, g, index):
    """A number in [-1, 1) that depends on fight, step and index, and disturbs no draw of the fight."""
    return 2.0 * unit(mixed(f.key ^ NOISE_SALT, g.step * 16 + index)) - 1.0


@inner
def show_record(f, g, c, T):
    """Fill the record from the simulator's own state."""
    g.phase = f.phase
    g.player_hp[0] = f.hp
    g.player_sp[0] = math.floor(f.sp)
    g.boss_hp[0] = f.boss_hp
    g.player_pose[0], g.player_pose[1], g.player_pose[2], g.player_pose[3] = f.px, f.py, max(f.pz, c.low_z), f.pa
    g.boss_pose[0], g.boss_pose[1], g.boss_pose[2], g.boss_pose[3] = (
        f.bx,
        f.by,
        ground_z(c, f.bx, f.by),
        boss_heading(f),
    )
    nx, ny = -sine(f.cam), -cosine(f.cam)
    flat = math.sqrt(1.0 - c.cam_view_z * c.cam_view_z)
    g.camera_pose[0] = f.pivot_x - c.cam_distance_m * nx
    g.camera_pose[1] = f.pivot_y - c.cam_distance_m * ny
    g.camera_pose[2] = max(f.pz, c.low_z) + c.cam_height_m
    g.camera_pose[3], g.camera_pose[4], g.camera_pose[5] = nx * flat, ny * flat, c.cam_view_z
    g.player_animation = f.plabel
    g.player_animation_duration[0] = min(f.plabel_t, MAX_DURATION_S)
    g.boss_animation = f.blabel
    g.boss_animation_duration[0] = min(f.blabel_t, MAX_DURATION_S)
    g.lock_on = f.lock
    if f.noise_m > 0.0:
        _blur(f, g)
    over = g.outcome != RUNNING
    walk = not over and f.pmove != FALL_MOVE and allowed(f, T.timings, 2)
    roll = not over and f.pmove != FALL_MOVE and allowed(f, T.timings, 1)
    attack = not over and f.pmove != FALL_MOVE and allowed(f, T.timings, 0)
    for i in range(8):
        g.action_mask[i] = walk
        g.action_mask[8 + i] = roll
    for i in range(16, 19):
        g.action_mask[i] = attack
    g.action_mask[19] = 1
    g.boss_move, g.boss_move_s = f.bmove, f.bt
    g.player_move, g.player_move_s = f.pmove, f.pt
    g.invulnerable = invulnerable(f, c, T.player_moves)
    g.time_s = g.step * STEP_S


@inner
def _blur(f, g):
    for i in range(3):
        g.player_pose[i] += f.noise_m * _noise(f, g, i)
        g.boss_pose[i] += f.noise_m * _noise(f, g, 3 + i)
    g.player_pose[3] = wrap(g.player_pose[3] + f.noise_rad * _noise(f, g, 6))
    g.boss_pose[3] = wrap(g.boss_pose[3] + f.noise_rad * _noise(f, g, 7))
    for shown, index in ((g.player_animation_duration, 8), (g.boss_animation_duration, 9)):
        shown[0] = min(max(shown[0] + f.noise_s * _noise(f, g, index), 0.0), MAX_DURATION_S)


@inner
def _only_nothing(f, g, c, T):
    """Is pressing nothing all that is open?"""
    if g.outcome != RUNNING:
        return False
    return f.pmove == FALL_MOVE or not (
        allowed(f, T.timings, 0) or allowed(f, T.timings, 1) or allowed(f, T.timings, 2)
    )


@inner
def step_fights(fights, hidden, controls, tables, skip, low, high):
    """Step the fights [low, high); those that are over stay as they are. `skip` goes on until there is a choice."""
    for i in range(low, high):
        g = fights[i]
        if g.outcome != RUNNING:
            g.damage_dealt, g.damage_taken = 0.0, 0.0
            g.hit_by, g.landed, g.dodged = -1, -1, -1
            continue
        f = hidden[i]
        T = tables[f.table]
        c = T.const
        key, button = accepted(f, c, T, controls[i])
        _step(f, g, c, T, key, button)
        if skip and _only_nothing(f, g, c, T):
            dealt, taken = g.damage_dealt, g.damage_taken
            hit_by, landed, dodged = g.hit_by, g.landed, g.dodged
            while _only_nothing(f, g, c, T):
                _step(f, g, c, T, -1, NONE)
                dealt += g.damage_dealt
                taken += g.damage_taken
                hit_by, landed, dodged = max(hit_by, g.hit_by), max(landed, g.landed), max(dodged, g.dodged)
            g.damage_dealt, g.damage_taken = dealt, taken
            g.hit_by, g.landed, g.dodged = hit_by, landed, dodged
        show_record(f, g, c, T)


@inner
def _centred(f, bound):
    return bound * (2.0 * draw(f) - 1.0)


@inner
def _randomize(f, c, strength):
    f.boss_clock, f.reach_k, f.damage_k, f.speed_k = 1.0, 1.0, 1.0, 1.0
    f.shift_s, f.drop, f.noise_m, f.noise_rad, f.noise_s, f.delay = 0.0, 0.0, 0.0, 0.0, 0.0, 0
    if strength <= 0.0:
        return
    f.boss_clock += strength * _centred(f, c.rnd_timing)
    f.reach_k += strength * _centred(f, c.rnd_reach)
    f.damage_k += strength * _centred(f, c.rnd_damage)
    f.speed_k += strength * _centred(f, c.rnd_speed)
    f.shift_s = strength * c.rnd_hit_shift_s
    f.drop = strength * c.rnd_drop * draw(f)
    f.delay = int((int(strength * c.rnd_delay + 0.5) + 1) * draw(f))
    f.noise_m, f.noise_rad, f.noise_s = (
        strength * c.rnd_position_m,
        strength * c.rnd_heading,
        strength * c.rnd_duration_s,
    )


@inner
def _or_default(value, default):
    return default if math.isnan(value) else value


@inner
def _reset(f, g, c, T, start, phase, changes, strength):
    f.draws = np.uint64(0)
    _randomize(f, c, strength)
    row = 0
    pick = draw(f)
    if start.random_pose == 1:
        row = 1 + int(pick * (c.starts - 1))
    f.phase = start.phase if start.phase > 0 else phase
    f.changes = changes
    f.hp = _or_default(start.player_hp, c.hp)
    f.sp = _or_default(start.player_sp, c.sp)
    f.boss_hp = min(_or_default(start.boss_hp, c.boss_hp), c.boss_hp)
    f.px, f.py = (
        _or_default(start.player_pose[0], T.starts[row, 0]),
        _or_default(start.player_pose[1], T.starts[row, 1]),
    )
    set_heading(f, wrap(_or_default(start.player_pose[2], T.starts[row, 2])))
    f.bx, f.by = _or_default(start.boss_pose[0], c.boss_x), _or_default(start.boss_pose[1], c.boss_y)
    set_boss_heading(f, wrap(_or_default(start.boss_pose[2], c.boss_a)))
    f.pz = ground_z(c, f.px, f.py)
    f.vx, f.vy, f.car_s, f.flinch_t, f.since_roll, f.phi = 0.0, 0.0, -1.0, -1.0, 99.0, 0.0
    f.walk_x, f.walk_y, f.regen_wait = 0.0, 0.0, 0
    f.held_steps, f.held_key, f.last_roll, f.paid, f.fall_v = 0, 0, c.id_roll_b, 1, 0.0
    start_idle(f, c)
    f.cam = heading_to(f.bx - f.px, f.by - f.py)
    f.pivot_x, f.pivot_y = f.px, f.py
    f.poise, f.poise_t, f.clock_s = c.poise, 0.0, 0.0
    f.goal, f.act, f.goal_t, f.link, f.links, f.pending = NEW, NO_ACT, 0.0, 0, 0, 0
    f.first = 1
    f.safe_r2, f.bsafe_r2 = 0.0, 0.0
    f.bcar_x, f.bcar_y = 0.0, 0.0
    f.blabel, f.blabel_t = -1, 0.0
    for i in range(f.ready_s.shape[0]):
        f.ready_s[i] = 0.0
    for i in range(f.timer_s.shape[0]):
        f.timer_s[i] = 0.0
    f.running = 0
    start_boss_move(f, c, T, c.b_idle)
    g.step = 0
    g.outcome = RUNNING
    g.damage_dealt, g.damage_taken, g.dealt_total, g.taken_total = 0.0, 0.0, 0.0, 0.0
    g.hit_by, g.landed, g.dodged, g.killed_by = -1, -1, -1, -1
    g.player_max_hp, g.player_max_sp, g.boss_max_hp = int(c.hp), int(c.sp), int(c.boss_hp)


@inner
def reset_fights(fights, hidden, mask, starts, seeds, seeded, tables, phase, changes, strength):
    """Begin anew the masked fights: from their seeds, or from what their last fight leads to."""
    for i in range(len(fights)):
        if mask[i]:
            f, g = hidden[i], fights[i]
            f.table = f.next_table
            T = tables[f.table]
            c = T.const
            f.key = mixed(seeds[i], EPISODE_SALT) if seeded else mixed(f.key, EPISODE_SALT)
            _reset(f, g, c, T, starts[i], phase, changes, strength)
            show_record(f, g, c, T)
