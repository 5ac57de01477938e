"""One tick of the player: input, stamina, motion, animations."""

from __future__ import annotations

import math

from soulsgym.actions import Button
from soulsgym.compiling import inner
from soulsgym.sim.geometry import PI, arctan2, blend_direction, cosine, heading_to, sine, turn_towards, wrap
from soulsgym.sim.hidden import FALL_MOVE, NO_MOVE, ROLL_MOVE, Hidden
from soulsgym.sim.records import Floats
from soulsgym.sim.tables import TICKS_PER_STEP, Constants, Tables
from soulsgym.spec.player import PLAYER_KINDS

REACTION = PLAYER_KINDS.index("reaction")
GRABBED = PLAYER_KINDS.index("grabbed")
NONE, ROLL, LIGHT, HEAVY, PARRY = (int(button) for button in Button)

KEY_ANGLE = PI / 4.0
BACKWARD = -0.4
"""The forward part of a walking direction below which it counts as backward: B, BL and RB, but not R and L."""
STOP_BY_DIRECTION = (0, 0, 3, 1, 1, 1, 2, 0)
"""Which of RunStopFront, Back, Left, Right follows a walk in that direction."""


@inner
def curve_at(curves: Floats, offset: int, tick: float) -> float:
    """A cumulative curve at a fractional tick."""
    whole = int(tick)
    share = tick - whole
    low: float = curves[offset + whole]
    high: float = curves[offset + whole + 1]
    return low + share * (high - low)


@inner
def curve_step(curves: Floats, offset: int, tick: float) -> float:
    """What a cumulative curve gains in the tick that begins at a fractional one."""
    whole = int(tick)
    share = tick - whole
    first: float = curves[offset + whole]
    middle: float = curves[offset + whole + 1]
    last: float = curves[offset + whole + 2]
    return (1.0 - share) * (middle - first) + share * (last - middle)


@inner
def set_heading(hidden: Hidden, angle: float) -> None:
    """Turn the player to a heading."""
    hidden.player_heading = angle
    hidden.player_sin = sine(angle)
    hidden.player_cos = cosine(angle)


@inner
def heading_to_boss(hidden: Hidden) -> float:
    """The heading that looks from the player to the boss."""
    return heading_to(hidden.boss_x - hidden.player_x, hidden.boss_y - hidden.player_y)


@inner
def turn_to_boss(hidden: Hidden, limit: float) -> None:
    """Turn the player towards the boss by at most `limit`."""
    dx, dy = hidden.boss_x - hidden.player_x, hidden.boss_y - hidden.player_y
    hidden.player_sin, hidden.player_cos = turn_towards(
        hidden.player_sin, hidden.player_cos, dx, dy, math.sqrt(dx * dx + dy * dy), limit
    )
    hidden.player_heading = arctan2(hidden.player_sin, hidden.player_cos)


@inner
def show(hidden: Hidden, animation: int) -> None:
    """Show an animation from its beginning."""
    hidden.player_animation = animation
    hidden.player_animation_s = 0.0


@inner
def start_move(hidden: Hidden, tables: Tables, move: int) -> None:
    """Begin a move of the table; what went on before is over."""
    moves = tables.player_moves
    row = moves[move]
    hidden.player_move = move
    hidden.player_move_s = 0.0
    hidden.forward_factor = 1.0
    hidden.right_factor = 1.0
    hidden.forward_curve = row.forward_curve
    hidden.right_curve = row.right_curve
    hidden.payments = 0
    hidden.strikes_landed = 0
    hidden.since_flinch_s = -1.0
    hidden.walk_ticks = 0
    hidden.held_steps = 0
    hidden.carried_until_s = -1.0
    hidden.walk_after_roll = 0
    show(hidden, row.animation)


@inner
def start_reaction(hidden: Hidden, tables: Tables, move: int, heading: float) -> None:
    """Be hit: a reaction begins, seen from `heading`, and what was not yet paid is not paid any more."""
    if not _regenerates(hidden, tables):
        hidden.regen_wait_ticks = tables.constants.regen_delay_ticks
    start_move(hidden, tables, move)
    set_heading(hidden, heading)


@inner
def start_flinch(hidden: Hidden, animation: int) -> None:
    """Be hit in a roll: it is shown, but the roll goes on."""
    hidden.since_flinch_s = 0.0
    show(hidden, animation)


@inner
def start_idle(hidden: Hidden, constants: Constants) -> None:
    """Stand."""
    hidden.player_move = NO_MOVE
    hidden.player_move_s = 0.0
    hidden.since_walk_s = constants.linger_s
    hidden.walk_ticks = 0
    hidden.walk_after_roll = 0
    hidden.carried_until_s = -1.0
    hidden.lock_on = 1
    show(hidden, constants.idle_animation)


@inner
def choose_roll_curves(hidden: Hidden, constants: Constants, angle: float) -> None:
    """Set the curves of a roll at an angle from the heading, and how much of each is used."""
    hidden.roll_angle = angle
    hidden.forward_factor = cosine(angle)
    hidden.right_factor = sine(angle)
    forward = constants.roll_forward_curve
    if hidden.forward_factor < 0.0:
        # Straight back is the right one, up to rounding.
        forward = constants.roll_back_right_curve if hidden.right_factor > -1e-6 else constants.roll_back_left_curve
    hidden.forward_curve = forward
    hidden.right_curve = constants.roll_right_curve if hidden.right_factor > 0.0 else constants.roll_left_curve


@inner
def _move_on(hidden: Hidden, tables: Tables, ticks: int) -> tuple[float, float]:
    """Metres per tick, in the heading's frame, that the running motion would do in the next `ticks`."""
    curves = tables.curves
    now = hidden.player_move_s * tables.constants.ticks_per_label_s
    forward, right = 0.0, 0.0
    if hidden.forward_curve >= 0:
        metres = curve_at(curves, hidden.forward_curve, now + ticks) - curve_at(curves, hidden.forward_curve, now)
        forward = hidden.forward_factor * metres / ticks
    if hidden.right_curve >= 0:
        metres = curve_at(curves, hidden.right_curve, now + ticks) - curve_at(curves, hidden.right_curve, now)
        right = hidden.right_factor * metres / ticks
    return forward, right


@inner
def _carry(hidden: Hidden, forward: float, right: float, until_s: float) -> None:
    hidden.carried_x = -hidden.player_sin * forward - hidden.player_cos * right
    hidden.carried_y = -hidden.player_cos * forward + hidden.player_sin * right
    hidden.carried_until_s = until_s


@inner
def start_roll(hidden: Hidden, tables: Tables, angle: float) -> None:
    """Roll towards a heading in the world."""
    constants = tables.constants
    rolling = hidden.player_move == ROLL_MOVE
    again = rolling or hidden.since_roll_s <= constants.roll_again_s
    old_forward, old_right, old_angle = 0.0, 0.0, hidden.roll_angle
    if rolling:
        old_forward, old_right = _move_on(hidden, tables, constants.first_ticks)
    if hidden.lock_on == 1:
        set_heading(hidden, heading_to_boss(hidden))
    else:
        set_heading(hidden, angle)
    share, metres = constants.roll_carry_from_roll, constants.roll_carry_direction_m / constants.first_ticks
    forward, right = share * old_forward + metres * cosine(old_angle), share * old_right + metres * sine(old_angle)
    _carry(hidden, forward, right, constants.roll_first_s)
    if hidden.held_steps > 0:
        share = constants.roll_carry_from_walk * TICKS_PER_STEP / constants.first_ticks
        hidden.carried_x += hidden.walk_x * share
        hidden.carried_y += hidden.walk_y * share
    choose_roll_curves(hidden, constants, blend_direction(angle - hidden.player_heading))
    hidden.player_move = ROLL_MOVE
    hidden.player_move_s = 0.0
    hidden.payments = 0
    hidden.since_flinch_s = -1.0
    hidden.walk_ticks = 0
    hidden.held_steps = 0
    hidden.walk_after_roll = 0
    hidden.roll_animation = (
        constants.roll_again_animation
        if again and hidden.roll_animation == constants.roll_animation
        else constants.roll_animation
    )
    show(hidden, hidden.roll_animation)


@inner
def _start_get_up(hidden: Hidden, tables: Tables, angle: float) -> None:
    move = tables.constants.get_up_move
    start_move(hidden, tables, move)
    set_heading(hidden, heading_to_boss(hidden) if hidden.lock_on == 1 else angle)
    hidden.roll_angle = blend_direction(angle - hidden.player_heading)
    hidden.forward_factor, hidden.right_factor = cosine(hidden.roll_angle), sine(hidden.roll_angle)
    if hidden.forward_factor < 0.0:
        hidden.forward_curve = tables.player_moves[move].backward_curve


@inner
def press(hidden: Hidden, tables: Tables, button: int, direction: int, camera_heading: float) -> None:
    """What a button does that the mask let through."""
    constants = tables.constants
    moves = tables.player_moves
    angle = wrap(camera_heading + direction * KEY_ANGLE) if direction >= 0 else camera_heading
    if button == ROLL:
        if hidden.player_move >= 0 and moves[hidden.player_move].on_roll >= 0:
            _start_get_up(hidden, tables, angle)
        elif direction >= 0:
            start_roll(hidden, tables, angle)
        else:
            start_move(hidden, tables, constants.backstep_move)
        return
    walked = hidden.held_steps > 0
    if button == LIGHT:
        move = constants.light_move
        if hidden.player_move == ROLL_MOVE:
            move = constants.roll_light_move
        elif hidden.player_move >= 0 and moves[hidden.player_move].on_light >= 0:
            move = moves[hidden.player_move].on_light
    elif button == HEAVY:
        move = constants.heavy_move
        if hidden.player_move == ROLL_MOVE:
            move = constants.roll_heavy_move
        elif hidden.player_move >= 0 and moves[hidden.player_move].on_heavy >= 0:
            move = moves[hidden.player_move].on_heavy
    else:
        move = constants.parry_move
    was_rolling = hidden.player_move == ROLL_MOVE
    start_move(hidden, tables, move)
    if was_rolling:
        hidden.since_roll_s = 0.0
    if walked:
        hidden.carried_x = hidden.walk_x * constants.attack_carry_from_walk
        hidden.carried_y = hidden.walk_y * constants.attack_carry_from_walk
        hidden.carried_until_s = constants.roll_first_s


@inner
def _stops(hidden: Hidden, constants: Constants) -> int:
    """Which of the animations that end a walk is shown: 0 front, 1 back, 2 left, 3 right, -1 none."""
    stop = hidden.player_animation - constants.stop_animation
    return stop if 0 <= stop < 4 else -1


@inner
def hold(hidden: Hidden, tables: Tables, direction: int) -> None:
    """A direction is held through this step, or none (-1): begins, keeps up or ends a walk and its animation."""
    constants = tables.constants
    if direction >= 0:
        if hidden.player_move != NO_MOVE:
            if not _regenerates(hidden, tables):
                hidden.regen_wait_ticks = constants.regen_delay_ticks
            if hidden.player_move == ROLL_MOVE:
                forward, right = _move_on(hidden, tables, TICKS_PER_STEP)
                share = constants.walk_carry_from_roll
                _carry(hidden, share * forward, share * right, constants.label_step_s)
                hidden.walk_after_roll = 1
                hidden.since_roll_s = 0.0
            else:
                hidden.walk_after_roll = 0
                hidden.carried_until_s = -1.0
            hidden.player_move = NO_MOVE
            hidden.player_move_s = 0.0
            hidden.walk_ticks = 0
            hidden.held_steps = 0
            hidden.lock_on = 1
            show(hidden, constants.walk_animation)
        elif hidden.held_steps == 0:
            hidden.walk_ticks = 0
            hidden.walk_after_roll = 0
            hidden.carried_until_s = -1.0
            if hidden.player_animation == constants.idle_animation:
                show(hidden, constants.walk_animation)
        elif _stops(hidden, constants) >= 0:
            show(hidden, constants.walk_animation)
        hidden.held_steps += 1
        hidden.held_direction = direction
        hidden.since_walk_s = 0.0
    elif hidden.player_move == NO_MOVE and hidden.held_steps > 0:
        if hidden.lock_on == 1:
            set_heading(hidden, heading_to_boss(hidden))
        if hidden.held_steps >= constants.stops_after_steps:
            show(hidden, constants.stop_animation + STOP_BY_DIRECTION[hidden.held_direction])
            speed = math.sqrt(hidden.walk_x * hidden.walk_x + hidden.walk_y * hidden.walk_y)
            if speed > 0.0:
                hidden.stop_x, hidden.stop_y = hidden.walk_x / speed, hidden.walk_y / speed
        hidden.held_steps = 0
        hidden.walk_ticks = 0


@inner
def _walk(hidden: Hidden, constants: Constants, direction: int, camera_heading: float) -> None:
    if hidden.lock_on == 1:
        turn_to_boss(hidden, constants.walk_turn_per_tick)
        angle = blend_direction(camera_heading + direction * KEY_ANGLE - hidden.player_heading)
    else:
        set_heading(hidden, wrap(camera_heading + direction * KEY_ANGLE))
        angle = 0.0
    forward, right = cosine(angle), sine(angle)
    if hidden.walk_ticks < constants.first_ticks:
        if hidden.walk_after_roll == 1:
            share = constants.after_roll_first_share
        else:
            share = constants.walk_first_share_back if forward < BACKWARD else constants.walk_first_share
    elif hidden.walk_after_roll == 1 and hidden.walk_ticks < constants.first_ticks + TICKS_PER_STEP:
        share = constants.after_roll_second_share
    else:
        share = 1.0
    hidden.walk_ticks += 1
    per_tick = share * hidden.speed_factor / TICKS_PER_STEP
    forward *= per_tick * (constants.walk_m[0] if forward > 0.0 else constants.walk_m[2])
    right *= per_tick * (constants.walk_m[1] if right > 0.0 else constants.walk_m[3])
    hidden.walk_x = -hidden.player_sin * forward - hidden.player_cos * right
    hidden.walk_y = -hidden.player_cos * forward + hidden.player_sin * right
    hidden.player_moved_x += hidden.walk_x
    hidden.player_moved_y += hidden.walk_y


@inner
def _stand(hidden: Hidden, constants: Constants) -> None:
    stopping = _stops(hidden, constants)
    if stopping >= 0:
        if hidden.player_animation_s < constants.label_step_s:
            metres = constants.stop_m[stopping] / TICKS_PER_STEP
        elif hidden.player_animation_s < 2.0 * constants.label_step_s:
            metres = constants.stop_tail_m / TICKS_PER_STEP
        else:
            metres = 0.0
        hidden.player_moved_x += hidden.stop_x * metres
        hidden.player_moved_y += hidden.stop_y * metres


@inner
def _regenerates(hidden: Hidden, tables: Tables) -> bool:
    if hidden.player_move == NO_MOVE:
        return True
    if hidden.player_move == ROLL_MOVE:
        return hidden.player_move_s >= tables.constants.roll_regen_s
    if hidden.player_move == FALL_MOVE:
        return False
    return hidden.player_move_s >= tables.player_moves[hidden.player_move].regen_s


@inner
def stamina_tick(hidden: Hidden, tables: Tables) -> None:
    """Recover, then pay: the cost of a roll is due at once, of an attack when it gets going."""
    constants = tables.constants
    if hidden.regen_wait_ticks > 0:
        hidden.regen_wait_ticks -= 1
    elif _regenerates(hidden, tables):
        recovers = constants.sp_per_tick
        for i in range(constants.status_count):
            if hidden.status_left_s[i] > 0.0:
                recovers = max(0.0, recovers - tables.statuses[i].sp_per_tick_lost)
        hidden.player_sp = min(constants.player_max_sp, hidden.player_sp + recovers)
    if hidden.player_move == ROLL_MOVE:
        if hidden.payments == 0:
            hidden.player_sp = max(constants.sp_floor, hidden.player_sp - constants.roll_sp_cost)
            hidden.payments = 1
    elif hidden.player_move >= 0:
        row = tables.player_moves[hidden.player_move]
        if hidden.payments < row.payments and hidden.player_move_s >= row.payment_s[hidden.payments]:
            hidden.player_sp = max(constants.sp_floor, hidden.player_sp - row.sp_per_payment)
            hidden.payments += 1


@inner
def motion_tick(hidden: Hidden, tables: Tables, direction: int, camera_heading: float) -> None:
    """Move for one tick; sets the pose and how far that was. `direction` is the walk direction or -1."""
    constants = tables.constants
    moves = tables.player_moves
    curves = tables.curves
    hidden.player_moved_x, hidden.player_moved_y = 0.0, 0.0
    if hidden.player_move == NO_MOVE:
        if direction >= 0:
            _walk(hidden, constants, direction, camera_heading)
        else:
            _stand(hidden, constants)
        if hidden.carried_until_s > 0.0 and hidden.player_move_s < hidden.carried_until_s:
            hidden.player_moved_x += hidden.carried_x
            hidden.player_moved_y += hidden.carried_y
        hidden.player_x += hidden.player_moved_x
        hidden.player_y += hidden.player_moved_y
        return
    if hidden.player_move == ROLL_MOVE:
        if hidden.lock_on == 1 and (
            hidden.player_move_s < constants.roll_settle_s
            or constants.roll_turn_from_s < hidden.player_move_s < constants.roll_turn_to_s
        ):
            turn_to_boss(hidden, constants.roll_turn_per_tick)
    else:
        row = moves[hidden.player_move]
        if hidden.lock_on == 1 and row.turn_from_s <= hidden.player_move_s < row.turn_to_s:
            turn_to_boss(hidden, constants.roll_turn_per_tick)
    now = hidden.player_move_s * constants.ticks_per_label_s
    forward, right = 0.0, 0.0
    if hidden.forward_curve >= 0:
        forward = hidden.forward_factor * curve_step(curves, hidden.forward_curve, now)
    if hidden.right_curve >= 0:
        right = hidden.right_factor * curve_step(curves, hidden.right_curve, now)
    hidden.player_moved_x = -hidden.player_sin * forward - hidden.player_cos * right
    hidden.player_moved_y = -hidden.player_cos * forward + hidden.player_sin * right
    if hidden.player_move_s < hidden.carried_until_s:
        hidden.player_moved_x += hidden.carried_x
        hidden.player_moved_y += hidden.carried_y
    hidden.player_x += hidden.player_moved_x
    hidden.player_y += hidden.player_moved_y


@inner
def clock_tick(hidden: Hidden, tables: Tables, direction: int) -> None:
    """Let the clocks of move and animation run, and end what is over."""
    constants = tables.constants
    moves = tables.player_moves
    hidden.player_move_s += constants.tick_s
    hidden.player_animation_s += constants.tick_s
    if hidden.player_move == ROLL_MOVE:
        hidden.since_roll_s = 0.0
        if hidden.player_move_s >= moves[constants.get_up_move].lock_s:
            hidden.lock_on = 1
        if hidden.since_flinch_s >= 0.0:
            hidden.since_flinch_s += constants.tick_s
            if hidden.since_flinch_s >= constants.flinch_s + constants.flinch_after_s:
                hidden.since_flinch_s = -1.0
                show(hidden, hidden.roll_animation)
            elif (
                hidden.since_flinch_s >= constants.flinch_s
                and hidden.player_animation != constants.flinch_after_animation
            ):
                show(hidden, constants.flinch_after_animation)
        elif (
            hidden.player_animation_s >= constants.roll_end_s
            or hidden.player_move_s >= 2.0 * constants.roll_end_s - constants.label_step_s
        ):
            # Shown again after a flinch it must not keep the roll up beyond its curve, which is twice its length.
            start_idle(hidden, constants)
        return
    hidden.since_roll_s += constants.tick_s
    if hidden.player_move == NO_MOVE:
        if direction < 0:
            if _stops(hidden, constants) >= 0 and hidden.player_animation_s >= constants.stop_s:
                start_idle(hidden, constants)
            elif hidden.player_animation == constants.walk_animation:
                hidden.since_walk_s += constants.tick_s
                if hidden.since_walk_s > constants.linger_s:
                    start_idle(hidden, constants)
    elif hidden.player_move >= 0:
        row = moves[hidden.player_move]
        if hidden.player_move_s >= row.lock_s:
            hidden.lock_on = 1
        if hidden.player_move_s >= row.end_s:
            if row.on_end >= 0:
                start_move(hidden, tables, row.on_end)
            else:
                start_idle(hidden, constants)


@inner
def is_invulnerable(hidden: Hidden, tables: Tables) -> bool:
    """Do blows pass through the player now?"""
    if hidden.player_move == ROLL_MOVE:
        constants = tables.constants
        return constants.roll_invulnerable_from_s <= hidden.player_move_s < constants.roll_invulnerable_to_s
    if hidden.player_move >= 0:
        row = tables.player_moves[hidden.player_move]
        return row.invulnerable_from_s <= hidden.player_move_s < row.invulnerable_to_s
    return hidden.player_move == FALL_MOVE


@inner
def is_knocked_down(hidden: Hidden, tables: Tables) -> bool:
    """Is the player on the ground?"""
    return hidden.player_move >= 0 and tables.player_moves[hidden.player_move].knocked_down == 1


@inner
def is_grabbed(hidden: Hidden, tables: Tables) -> bool:
    """Does the boss hold the player?"""
    return hidden.player_move >= 0 and tables.player_moves[hidden.player_move].kind == GRABBED
