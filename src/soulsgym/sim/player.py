"""One tick of the player: input, stamina, motion, labels."""

from __future__ import annotations

import math

from soulsgym.actions import Button
from soulsgym.compiling import inner
from soulsgym.sim.geometry import PI, arctan2, blend_direction, cosine, heading_to, sine, turned, wrap
from soulsgym.sim.hidden import FALL_MOVE, NO_MOVE, ROLL_MOVE
from soulsgym.spec.player import PLAYER_KINDS

REACTION = PLAYER_KINDS.index("reaction")
GRABBED = PLAYER_KINDS.index("grabbed")
NONE, ROLL, LIGHT, HEAVY, PARRY = (int(button) for button in Button)

KEY_ANGLE = PI / 4.0
BACKWARD = -0.4
"""The forward part of a walking direction below which it counts as backward: B, BL and RB, but not R and L."""
FIRST_TICKS = 5
"""Ticks of motion in the step of a press: six less the one the input takes."""
STOP_BY_KEY = (0, 0, 3, 1, 1, 1, 2, 0)
"""Which of RunStopFront, Back, Left, Right follows a walk with that key."""


@inner
def curve_at(curves, offset, tick):
    """A cumulative curve at a fractional tick."""
    whole = int(tick)
    share = tick - whole
    low = curves[offset + whole]
    return low + share * (curves[offset + whole + 1] - low)


@inner
def curve_step(curves, offset, tick):
    """What a cumulative curve gains in the tick that begins at a fractional one."""
    whole = int(tick)
    share = tick - whole
    at = offset + whole
    middle = curves[at + 1]
    return (1.0 - share) * (middle - curves[at]) + share * (curves[at + 2] - middle)


@inner
def set_heading(f, angle):
    """Turn the player to a heading."""
    f.pa = angle
    f.psin = sine(angle)
    f.pcos = cosine(angle)


@inner
def turn_to_boss(f, limit):
    """Turn the player towards the boss by at most `limit`."""
    dx, dy = f.bx - f.px, f.by - f.py
    f.psin, f.pcos = turned(f.psin, f.pcos, dx, dy, math.sqrt(dx * dx + dy * dy), limit)
    f.pa = arctan2(f.psin, f.pcos)


@inner
def show(f, label):
    """Show a label from its beginning."""
    f.plabel = label
    f.plabel_t = 0.0


@inner
def start_move(f, moves, move):
    """Begin a move of the table; what went on before is over."""
    row = moves[move]
    f.pmove = move
    f.pt = 0.0
    f.kf = 1.0
    f.kr = 1.0
    f.cf = row.curve_f
    f.cr = row.curve_r
    f.paid = 0
    f.struck = 0
    f.flinch_t = -1.0
    f.walk_ticks = 0
    f.held_steps = 0
    f.car_s = -1.0
    f.after_roll = 0
    show(f, row.label)


@inner
def start_reaction(f, c, moves, move, heading):
    """Be hit: a reaction begins, seen from `heading`, and what was not yet paid is not paid any more."""
    if not _regenerates(f, c, moves):
        f.regen_wait = int(c.regen_delay)
    start_move(f, moves, move)
    set_heading(f, heading)


@inner
def start_flinch(f, label):
    """Be hit in a roll: it is shown, but the roll goes on."""
    f.flinch_t = 0.0
    show(f, label)


@inner
def start_idle(f, c):
    """Stand."""
    f.pmove = NO_MOVE
    f.pt = 0.0
    f.stop_t = c.linger_s
    f.walk_ticks = 0
    f.after_roll = 0
    f.car_s = -1.0
    f.lock = 1
    show(f, c.id_idle)


@inner
def roll_profiles(f, c, phi):
    """Choose the curves of a roll in the direction `phi` from the heading."""
    f.phi = phi
    f.kf = cosine(phi)
    f.kr = sine(phi)
    forward = c.c_roll_f
    if f.kf < 0.0:
        # Straight back is the right one, up to rounding.
        forward = c.c_roll_br if f.kr > -1e-6 else c.c_roll_bl
    f.cf = forward
    f.cr = c.c_roll_r if f.kr > 0.0 else c.c_roll_l


@inner
def _move_on(f, c, curves, ticks):
    """Metres per tick, in the heading's frame, that the running motion would do in the next `ticks`."""
    now = f.pt * c.ticks_per_label_s
    forward, right = 0.0, 0.0
    if f.cf >= 0:
        forward = f.kf * (curve_at(curves, f.cf, now + ticks) - curve_at(curves, f.cf, now)) / ticks
    if f.cr >= 0:
        right = f.kr * (curve_at(curves, f.cr, now + ticks) - curve_at(curves, f.cr, now)) / ticks
    return forward, right


@inner
def _carry(f, forward, right, until_s):
    f.car_x = -f.psin * forward - f.pcos * right
    f.car_y = -f.pcos * forward + f.psin * right
    f.car_s = until_s


@inner
def start_roll(f, c, curves, angle):
    """Roll towards a heading in the world."""
    rolling = f.pmove == ROLL_MOVE
    again = rolling or f.since_roll <= c.roll_again_s
    old_forward, old_right, old_phi = 0.0, 0.0, f.phi
    if rolling:
        old_forward, old_right = _move_on(f, c, curves, FIRST_TICKS)
    if f.lock == 1:
        set_heading(f, heading_to(f.bx - f.px, f.by - f.py))
    else:
        set_heading(f, angle)
    k = c.roll_carry_m / FIRST_TICKS
    _carry(
        f, c.roll_carry_roll * old_forward + k * cosine(old_phi), c.roll_carry_roll * old_right + k * sine(old_phi),
        c.roll_first_s,
    )  # fmt: skip
    if f.held_steps > 0:
        share = c.roll_carry * 6.0 / FIRST_TICKS
        f.car_x += f.walk_x * share
        f.car_y += f.walk_y * share
    roll_profiles(f, c, blend_direction(angle - f.pa))
    f.pmove = ROLL_MOVE
    f.pt = 0.0
    f.paid = 0
    f.flinch_t = -1.0
    f.walk_ticks = 0
    f.held_steps = 0
    f.after_roll = 0
    f.last_roll = c.id_roll_b if again and f.last_roll == c.id_roll_a else c.id_roll_a
    show(f, f.last_roll)


@inner
def _start_get_up(f, c, moves, angle):
    start_move(f, moves, c.p_get_up)
    set_heading(f, heading_to(f.bx - f.px, f.by - f.py) if f.lock == 1 else angle)
    f.phi = blend_direction(angle - f.pa)
    f.kf, f.kr = cosine(f.phi), sine(f.phi)
    if f.kf < 0.0:
        f.cf = moves[c.p_get_up].curve_b


@inner
def press(f, c, moves, curves, button, key, cam):
    """What a button does that the mask let through."""
    angle = wrap(cam + key * KEY_ANGLE) if key >= 0 else cam
    if button == ROLL:
        if f.pmove >= 0 and moves[f.pmove].on_roll >= 0:
            _start_get_up(f, c, moves, angle)
        elif key >= 0:
            start_roll(f, c, curves, angle)
        else:
            start_move(f, moves, c.p_backstep)
        return
    walked = f.held_steps > 0
    if button == LIGHT:
        move = c.p_light
        if f.pmove == ROLL_MOVE:
            move = c.roll_light
        elif f.pmove >= 0 and moves[f.pmove].on_light >= 0:
            move = moves[f.pmove].on_light
    elif button == HEAVY:
        move = c.p_heavy
        if f.pmove == ROLL_MOVE:
            move = c.roll_heavy
        elif f.pmove >= 0 and moves[f.pmove].on_heavy >= 0:
            move = moves[f.pmove].on_heavy
    else:
        move = c.p_parry
    was_rolling = f.pmove == ROLL_MOVE
    start_move(f, moves, move)
    if was_rolling:
        f.since_roll = 0.0
    if walked:
        f.car_x, f.car_y, f.car_s = f.walk_x * c.attack_carry, f.walk_y * c.attack_carry, c.roll_first_s


@inner
def hold(f, c, moves, curves, key):
    """A direction is held through this step (key) or not (-1): labels and the start or end of walking."""
    if key >= 0:
        if f.pmove != NO_MOVE:
            if not _regenerates(f, c, moves):
                f.regen_wait = int(c.regen_delay)
            if f.pmove == ROLL_MOVE:
                forward, right = _move_on(f, c, curves, 6)
                _carry(f, c.walk_carry_roll * forward, c.walk_carry_roll * right, c.label_step_s)
                f.after_roll = 1
                f.since_roll = 0.0
            else:
                f.after_roll = 0
                f.car_s = -1.0
            f.pmove = NO_MOVE
            f.pt = 0.0
            f.walk_ticks = 0
            f.held_steps = 0
            f.lock = 1
            show(f, c.id_move)
        elif f.held_steps == 0:
            f.walk_ticks = 0
            f.after_roll = 0
            f.car_s = -1.0
            if f.plabel == c.id_idle:
                show(f, c.id_move)
        elif 0 <= f.plabel - c.id_stop_front < 4:
            show(f, c.id_move)
        f.held_steps += 1
        f.held_key = key
        f.stop_t = 0.0
    elif f.pmove == NO_MOVE and f.held_steps > 0:
        if f.lock == 1:
            set_heading(f, heading_to(f.bx - f.px, f.by - f.py))
        if f.held_steps >= c.stops_after_steps:
            show(f, c.id_stop_front + STOP_BY_KEY[f.held_key])
            speed = math.sqrt(f.walk_x * f.walk_x + f.walk_y * f.walk_y)
            if speed > 0.0:
                f.held_x, f.held_y = f.walk_x / speed, f.walk_y / speed
        f.held_steps = 0
        f.walk_ticks = 0


@inner
def _walk(f, c, key, cam):
    if f.lock == 1:
        turn_to_boss(f, c.walk_turn)
        phi = blend_direction(cam + key * KEY_ANGLE - f.pa)
    else:
        set_heading(f, wrap(cam + key * KEY_ANGLE))
        phi = 0.0
    forward, right = cosine(phi), sine(phi)
    if f.walk_ticks < FIRST_TICKS:
        share = (
            c.after_roll_first if f.after_roll == 1 else (c.first_share_back if forward < BACKWARD else c.first_share)
        )
    elif f.after_roll == 1 and f.walk_ticks < FIRST_TICKS + 6:
        share = c.after_roll_second
    else:
        share = 1.0
    f.walk_ticks += 1
    k = share * f.speed_k / 6.0
    forward *= k * (c.full_walk[0] if forward > 0.0 else c.full_walk[2])
    right *= k * (c.full_walk[1] if right > 0.0 else c.full_walk[3])
    f.walk_x = -f.psin * forward - f.pcos * right
    f.walk_y = -f.pcos * forward + f.psin * right
    f.vx += f.walk_x
    f.vy += f.walk_y


@inner
def _stand(f, c):
    stopping = f.plabel - c.id_stop_front
    if 0 <= stopping < 4:
        if f.plabel_t < c.label_step_s:
            metres = c.stop_walk[stopping] / 6.0
        elif f.plabel_t < 2.0 * c.label_step_s:
            metres = c.stop_tail_m / 6.0
        else:
            metres = 0.0
        f.vx += f.held_x * metres
        f.vy += f.held_y * metres


@inner
def _regenerates(f, c, moves):
    if f.pmove == NO_MOVE:
        return True
    if f.pmove == ROLL_MOVE:
        return f.pt >= c.roll_regen_s
    if f.pmove == FALL_MOVE:
        return False
    return f.pt >= moves[f.pmove].regen_s


@inner
def stamina_tick(f, c, moves):
    """Recover, then pay: the cost of a roll is due at once, of an attack when it gets going."""
    if f.regen_wait > 0:
        f.regen_wait -= 1
    elif _regenerates(f, c, moves):
        f.sp = min(c.sp, f.sp + c.sp_per_tick)
    if f.pmove == ROLL_MOVE:
        if f.paid == 0:
            f.sp = max(c.sp_floor, f.sp - c.roll_cost)
            f.paid = 1
    elif f.pmove >= 0:
        row = moves[f.pmove]
        if f.paid < row.payments and f.pt >= row.sp_s[f.paid]:
            f.sp = max(c.sp_floor, f.sp - row.sp_part)
            f.paid += 1


@inner
def motion_tick(f, c, moves, curves, key, cam):
    """Move for one tick; sets vx, vy and the pose. `key` is the walk direction or -1."""
    f.vx, f.vy = 0.0, 0.0
    if f.pmove == NO_MOVE:
        if key >= 0:
            _walk(f, c, key, cam)
        else:
            _stand(f, c)
        if f.car_s > 0.0 and f.pt < f.car_s:
            f.vx += f.car_x
            f.vy += f.car_y
        f.px += f.vx
        f.py += f.vy
        return
    if f.pmove == ROLL_MOVE:
        if f.lock == 1 and (f.pt < c.roll_settle_s or c.roll_turn_from < f.pt < c.roll_turn_to):
            turn_to_boss(f, c.roll_turn)
    else:
        row = moves[f.pmove]
        if f.lock == 1 and row.turn_from <= f.pt < row.turn_to:
            turn_to_boss(f, c.roll_turn)
    now = f.pt * c.ticks_per_label_s
    forward, right = 0.0, 0.0
    if f.cf >= 0:
        forward = f.kf * curve_step(curves, f.cf, now)
    if f.cr >= 0:
        right = f.kr * curve_step(curves, f.cr, now)
    f.vx = -f.psin * forward - f.pcos * right
    f.vy = -f.pcos * forward + f.psin * right
    if f.pt < f.car_s:
        f.vx += f.car_x
        f.vy += f.car_y
    f.px += f.vx
    f.py += f.vy


@inner
def clock_tick(f, c, moves, key):
    """Let the clocks of move and label run, and end what is over."""
    f.pt += c.tick_s
    f.plabel_t += c.tick_s
    if f.pmove == ROLL_MOVE:
        f.since_roll = 0.0
        if f.pt >= moves[c.p_get_up].lock_s:
            f.lock = 1
        if f.flinch_t >= 0.0:
            f.flinch_t += c.tick_s
            if f.flinch_t >= c.flinch_s + c.flinch_after_s:
                f.flinch_t = -1.0
                show(f, f.last_roll)
            elif f.flinch_t >= c.flinch_s and f.plabel != c.id_flinch_after:
                show(f, c.id_flinch_after)
        elif f.plabel_t >= c.roll_end_s or f.pt >= 2.0 * c.roll_end_s - c.label_step_s:
            # A label shown anew after a flinch must not keep the roll up beyond its curve, which is twice its length.
            start_idle(f, c)
        return
    f.since_roll += c.tick_s
    if f.pmove == NO_MOVE:
        if key < 0:
            stopping = 0 <= f.plabel - c.id_stop_front < 4
            if stopping and f.plabel_t >= c.stop_s:
                start_idle(f, c)
            elif f.plabel == c.id_move:
                f.stop_t += c.tick_s
                if f.stop_t > c.linger_s:
                    start_idle(f, c)
    elif f.pmove >= 0:
        row = moves[f.pmove]
        if f.pt >= row.lock_s:
            f.lock = 1
        if f.pt >= row.end_s:
            if row.on_end >= 0:
                start_move(f, moves, row.on_end)
            else:
                start_idle(f, c)


@inner
def invulnerable(f, c, moves):
    """Do blows pass through the player now?"""
    if f.pmove == ROLL_MOVE:
        return c.roll_inv_from <= f.pt < c.roll_inv_to
    if f.pmove >= 0:
        row = moves[f.pmove]
        return row.inv_from <= f.pt < row.inv_to
    return f.pmove == FALL_MOVE


@inner
def knocked_down(f, moves):
    """Is the player on the ground?"""
    return f.pmove >= 0 and moves[f.pmove].down == 1
