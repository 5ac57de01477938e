"""A step of fights: six ticks each, and what the record shows afterwards."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from soulsgym.actions import DIRECTIONS, NOTHING
from soulsgym.compiling import inlined, inner
from soulsgym.sim.boss import (
    NO_ACT,
    body_tick,
    boss_heading,
    mind_tick,
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
    shots_tick,
    status_tick,
)
from soulsgym.sim.geometry import cosine, ground_z, heading_to, sine, wrap
from soulsgym.sim.hidden import FALL_MOVE, Hidden
from soulsgym.sim.player import (
    LIGHT,
    NONE,
    ROLL,
    clock_tick,
    hold,
    is_grabbed,
    is_invulnerable,
    motion_tick,
    press,
    stamina_tick,
    start_move,
)
from soulsgym.sim.random import draw, mix, unit
from soulsgym.sim.records import Control, Fight, Ints
from soulsgym.sim.tables import Constants, Tables
from soulsgym.state import MAX_DURATION_S, Outcome

STEP_S = 0.1
ROUNDING_S = 1e-6
"""Sixty ticks add up to a little less than they are."""
RUNNING, WON, DIED, FELL = (int(Outcome[name]) for name in ("RUNNING", "WON", "DIED", "FELL"))
TO_ATTACK, TO_ROLL, TO_WALK = range(3)
"""What an animation allows from some time on: the columns of the table of timings."""
FIRST_ROLL, FIRST_ATTACK = len(DIRECTIONS), 2 * len(DIRECTIONS)
"""Among the twenty actions: the eight of walking come first, NOTHING is the last."""
NOISE_SALT = np.uint64(0xE7037ED1A0B428DB)


@inner
def camera_tick(hidden: Hidden, constants: Constants) -> None:
    """The camera after a step: its pivot follows the player, its view the boss. Without lock-on it stays."""
    hidden.pivot_x += constants.camera_pivot_share * (hidden.player_x - hidden.pivot_x)
    hidden.pivot_y += constants.camera_pivot_share * (hidden.player_y - hidden.pivot_y)
    if hidden.lock_on == 1:
        error = wrap(heading_to(hidden.boss_x - hidden.pivot_x, hidden.boss_y - hidden.pivot_y) - hidden.camera_heading)
        hidden.camera_heading = wrap(hidden.camera_heading + constants.camera_yaw_share * error)


@inner
def _press_camera(hidden: Hidden, constants: Constants) -> float:
    """The camera's angle when a press takes effect, a little into the step."""
    if hidden.lock_on == 0:
        return hidden.camera_heading
    error = wrap(heading_to(hidden.boss_x - hidden.pivot_x, hidden.boss_y - hidden.pivot_y) - hidden.camera_heading)
    return wrap(hidden.camera_heading + constants.camera_press_share * constants.camera_yaw_share * error)


@inner
def may(hidden: Hidden, tables: Tables, what: int) -> bool:
    """May the player do it now (TO_ATTACK, TO_ROLL, TO_WALK), by the animation shown and his stamina?"""
    if hidden.player_move == FALL_MOVE or (what != TO_WALK and math.floor(hidden.player_sp) <= 0.0):
        return False
    from_s: float = tables.timings[hidden.player_animation + 1, what]
    return hidden.player_animation_s >= from_s - ROUNDING_S


@inner
def fill_mask(mask: Ints, hidden: Hidden, tables: Tables) -> None:
    """Set the mask of the twenty actions to what is open to the player."""
    walk, roll = may(hidden, tables, TO_WALK), may(hidden, tables, TO_ROLL)
    for i in range(FIRST_ROLL):
        mask[i] = walk
        mask[FIRST_ROLL + i] = roll
    attack = may(hidden, tables, TO_ATTACK)
    for i in range(FIRST_ATTACK, NOTHING):
        mask[i] = attack
    mask[NOTHING] = 1


@inlined
def player_tick(
    hidden: Hidden,
    fight: Fight,
    tables: Tables,
    direction: int,
    button: int,
    camera_heading: float,
    press_tick: int,
    tick: int,
) -> None:
    """One tick of the player alone; `press_tick` is the one in which a press takes effect."""
    constants = tables.constants
    if hidden.player_move == FALL_MOVE:
        fall_tick(hidden, fight, constants)
        return
    stamina_tick(hidden, tables)
    # Looked at again: a blow may have come in between.
    if tick == press_tick and button != NONE and may(hidden, tables, TO_ROLL if button == ROLL else TO_ATTACK):
        distance = math.sqrt((hidden.player_x - hidden.boss_x) ** 2 + (hidden.player_y - hidden.boss_y) ** 2)
        if button == LIGHT and may_riposte(hidden, tables, distance):
            start_move(hidden, tables, constants.riposte_move)
            hidden.act = NO_ACT
            start_boss_move(hidden, tables, constants.boss_executed_move)
        else:
            press(hidden, tables, button, direction, camera_heading)
    # The direction takes its time to start a walk, not to keep one up.
    walk_direction = direction if button == NONE and (tick >= press_tick or hidden.held_steps > 1) else -1
    if is_grabbed(hidden, tables):
        held_tick(hidden, fight, tables)
    motion_tick(hidden, tables, walk_direction, camera_heading)
    clock_tick(hidden, tables, direction if button == NONE else -1)


@inner
def _fight_tick(
    hidden: Hidden,
    fight: Fight,
    tables: Tables,
    direction: int,
    button: int,
    camera_heading: float,
    press_tick: int,
    tick: int,
) -> None:
    constants = tables.constants
    player_tick(hidden, fight, tables, direction, button, camera_heading, press_tick, tick)
    dx, dy = hidden.player_x - hidden.boss_x, hidden.player_y - hidden.boss_y
    distance = math.sqrt(dx * dx + dy * dy)
    mind_tick(hidden, tables, distance)
    boss_x, boss_y = body_tick(hidden, tables, distance, dx, dy)
    if hidden.player_move != FALL_MOVE:
        separate(hidden, tables, boss_x, boss_y)
    dx, dy = hidden.player_x - hidden.boss_x, hidden.player_y - hidden.boss_y
    distance = math.sqrt(dx * dx + dy * dy)
    if hidden.player_hp > 0.0 and hidden.boss_hp > 0.0:
        player_blows(hidden, fight, tables, distance, dx, dy)
        if hidden.boss_hp > 0.0 and hidden.player_move != FALL_MOVE:
            boss_blows(hidden, fight, tables, distance, dx, dy)
            if hidden.shots > 0:
                shots_tick(hidden, fight, tables)
    if constants.status_count > 0 and hidden.player_hp > 0.0 and hidden.boss_hp > 0.0:
        status_tick(hidden, fight, tables, distance)
    hidden.since_strike_s += constants.tick_s
    if hidden.since_strike_s >= constants.poise_recovery_s:
        hidden.boss_poise = constants.boss_max_poise


@inner
def accept(hidden: Hidden, tables: Tables, control: Control) -> tuple[int, int]:
    """The direction and button that get through: what is not open has no effect, and randomisation may lose some."""
    direction, button = control.direction, control.button
    if hidden.drop_chance > 0.0 and (direction >= 0 or button != NONE) and draw(hidden) < hidden.drop_chance:
        return -1, NONE
    if button == NONE:
        return (direction if direction >= 0 and may(hidden, tables, TO_WALK) else -1), NONE
    if not may(hidden, tables, TO_ROLL if button == ROLL else TO_ATTACK):
        return -1, NONE
    return direction, button


@inner
def _step(hidden: Hidden, fight: Fight, tables: Tables, direction: int, button: int) -> None:
    constants = tables.constants
    camera_heading = _press_camera(hidden, constants) if direction >= 0 else hidden.camera_heading
    press_tick = min(constants.ticks_per_step - 1, constants.input_delay_ticks + hidden.extra_delay_ticks)
    if hidden.player_move != FALL_MOVE and button == NONE:
        hold(hidden, tables, direction)
    # Read from the tables, since a number known to the compiler would make it write out the loop six times.
    for tick in range(constants.ticks_per_step):
        _fight_tick(hidden, fight, tables, direction, button, camera_heading, press_tick, tick)
        if hidden.player_hp <= 0.0 or hidden.boss_hp <= 0.0:
            break
    _end_step(hidden, fight, tables)


@inner
def _end_step(hidden: Hidden, fight: Fight, tables: Tables) -> None:
    constants = tables.constants
    # Once a step is enough for the edge of the arena, which nobody is seen beyond.
    keep_inside(hidden, tables)
    if hidden.player_move != FALL_MOVE:
        hidden.player_z = ground_z(constants, hidden.player_x, hidden.player_y)
    camera_tick(hidden, constants)
    fight.step += 1
    if hidden.boss_hp <= 0.0:
        fight.outcome = WON
    elif hidden.player_hp <= 0.0:
        fight.outcome = FELL if hidden.player_move == FALL_MOVE else DIED


@inner
def _noise(hidden: Hidden, fight: Fight, index: int) -> float:
    """A number in [-1, 1) that depends on fight, step and index, and disturbs no draw of the fight."""
    return 2.0 * unit(mix(hidden.key ^ NOISE_SALT, fight.step * 16 + index)) - 1.0


@inner
def show_record(hidden: Hidden, fight: Fight, tables: Tables) -> None:
    """Fill the record from the simulator's own state."""
    constants = tables.constants
    fight.phase = hidden.phase
    fight.player_hp[0] = hidden.player_hp
    fight.player_sp[0] = math.floor(hidden.player_sp)
    fight.boss_hp[0] = hidden.boss_hp
    fight.player_pose[0] = hidden.player_x
    fight.player_pose[1] = hidden.player_y
    fight.player_pose[2] = max(hidden.player_z, constants.lowest_z)
    fight.player_pose[3] = hidden.player_heading
    fight.boss_pose[0] = hidden.boss_x
    fight.boss_pose[1] = hidden.boss_y
    fight.boss_pose[2] = ground_z(constants, hidden.boss_x, hidden.boss_y)
    fight.boss_pose[3] = boss_heading(hidden)
    nx, ny = -sine(hidden.camera_heading), -cosine(hidden.camera_heading)
    flat = math.sqrt(1.0 - constants.camera_view_z * constants.camera_view_z)
    # Walls stop the camera, too.
    x, y = hidden.pivot_x - constants.camera_distance_m * nx, hidden.pivot_y - constants.camera_distance_m * ny
    fight.camera_pose[0] = min(max(x, constants.lowest_x), constants.highest_x)
    fight.camera_pose[1] = min(max(y, constants.lowest_y), constants.highest_y)
    fight.camera_pose[2] = max(hidden.player_z, constants.lowest_z) + constants.camera_height_m
    fight.camera_pose[3], fight.camera_pose[4], fight.camera_pose[5] = nx * flat, ny * flat, constants.camera_view_z
    fight.player_animation = hidden.player_animation
    fight.player_animation_duration[0] = min(hidden.player_animation_s, MAX_DURATION_S)
    fight.boss_animation = hidden.boss_animation
    fight.boss_animation_duration[0] = min(hidden.boss_animation_s, MAX_DURATION_S)
    fight.lock_on = hidden.lock_on
    if hidden.position_noise_m > 0.0:
        _blur(hidden, fight)
    if fight.outcome == RUNNING:
        fill_mask(fight.action_mask, hidden, tables)
    else:
        fight.action_mask[:] = 0
        fight.action_mask[NOTHING] = 1
    fight.boss_move, fight.boss_move_s = hidden.boss_move, hidden.boss_move_s
    fight.player_move, fight.player_move_s = hidden.player_move, hidden.player_move_s
    fight.invulnerable = is_invulnerable(hidden, tables)
    fight.time_s = fight.step * STEP_S


@inner
def _blur(hidden: Hidden, fight: Fight) -> None:
    for i in range(3):
        fight.player_pose[i] += hidden.position_noise_m * _noise(hidden, fight, i)
        fight.boss_pose[i] += hidden.position_noise_m * _noise(hidden, fight, 3 + i)
    fight.player_pose[3] = wrap(fight.player_pose[3] + hidden.heading_noise_rad * _noise(hidden, fight, 6))
    fight.boss_pose[3] = wrap(fight.boss_pose[3] + hidden.heading_noise_rad * _noise(hidden, fight, 7))
    for shown, index in ((fight.player_animation_duration, 8), (fight.boss_animation_duration, 9)):
        shown[0] = min(max(shown[0] + hidden.duration_noise_s * _noise(hidden, fight, index), 0.0), MAX_DURATION_S)


@inner
def _has_choice(hidden: Hidden, tables: Tables) -> bool:
    """Is anything open beside pressing nothing?"""
    return may(hidden, tables, TO_ATTACK) or may(hidden, tables, TO_ROLL) or may(hidden, tables, TO_WALK)


@inner
def step_fights(
    fights: Sequence[Fight],
    hidden_states: Sequence[Hidden],
    controls: Sequence[Control],
    tables_by_file: Sequence[Tables],
    skip: bool,
    low: int,
    high: int,
) -> None:
    """Step the fights [low, high); those that are over stay as they are. `skip` goes on until there is a choice.

    Over several steps damage adds up, and of the moves that hit, landed or were dodged the last one is told.
    """
    for i in range(low, high):
        fight = fights[i]
        fight.damage_dealt, fight.damage_taken = 0.0, 0.0
        fight.hit_by, fight.landed, fight.dodged = -1, -1, -1
        if fight.outcome != RUNNING:
            continue
        hidden = hidden_states[i]
        tables = tables_by_file[hidden.table]
        direction, button = accept(hidden, tables, controls[i])
        _step(hidden, fight, tables, direction, button)
        while skip and fight.outcome == RUNNING and not _has_choice(hidden, tables):
            _step(hidden, fight, tables, -1, NONE)
        fight.dealt_total += fight.damage_dealt
        fight.taken_total += fight.damage_taken
        show_record(hidden, fight, tables)


@inner
def tick_fights(
    fights: Sequence[Fight],
    hidden_states: Sequence[Hidden],
    controls: Sequence[Control],
    tables_by_file: Sequence[Tables],
    tick: int,
) -> None:
    """Play one tick of a step, counted from 0, with what is held and pressed in this very tick.

    After the last tick, or when the fight ends, the record is that of a whole step; before, its time lies in between.
    """
    for i in range(len(fights)):
        fight = fights[i]
        if tick == 0:
            fight.damage_dealt, fight.damage_taken = 0.0, 0.0
            fight.hit_by, fight.landed, fight.dodged = -1, -1, -1
        if fight.outcome != RUNNING:
            continue
        hidden = hidden_states[i]
        tables = tables_by_file[hidden.table]
        constants = tables.constants
        direction, button = accept(hidden, tables, controls[i])
        if hidden.player_move != FALL_MOVE and button == NONE:
            if tick == 0 or (direction >= 0) != (hidden.held_steps > 0):
                hold(hidden, tables, direction)
            elif direction >= 0:
                hidden.held_direction = direction
        camera_heading = _press_camera(hidden, constants) if direction >= 0 else hidden.camera_heading
        _fight_tick(hidden, fight, tables, direction, button, camera_heading, tick, tick)
        is_over = hidden.player_hp <= 0.0 or hidden.boss_hp <= 0.0
        if is_over or tick == constants.ticks_per_step - 1:
            _end_step(hidden, fight, tables)
            fight.dealt_total += fight.damage_dealt
            fight.taken_total += fight.damage_taken
            show_record(hidden, fight, tables)
        else:
            show_record(hidden, fight, tables)
            fight.time_s += STEP_S * (tick + 1) / constants.ticks_per_step
