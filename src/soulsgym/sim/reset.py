"""How a fight begins: what it draws under randomisation, who stands where, and an empty record."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from soulsgym.compiling import inner
from soulsgym.sim.boss import NEW, NO_ACT, set_boss_heading, start_boss_move
from soulsgym.sim.geometry import ground_z, wrap
from soulsgym.sim.hidden import Hidden
from soulsgym.sim.player import heading_to_boss, set_heading, start_idle
from soulsgym.sim.random import draw, mix
from soulsgym.sim.records import Fight, Start
from soulsgym.sim.tables import Constants, Tables
from soulsgym.sim.tick import RUNNING, show_record

EPISODE_SALT = np.uint64(0xA0761D6478BD642F)


@inner
def _draw_within(hidden: Hidden, bound: float) -> float:
    return bound * (2.0 * draw(hidden) - 1.0)


@inner
def _randomize(hidden: Hidden, constants: Constants, strength: float) -> None:
    hidden.boss_time_factor, hidden.reach_factor, hidden.damage_factor, hidden.speed_factor = 1.0, 1.0, 1.0, 1.0
    hidden.max_hit_shift_s = 0.0
    hidden.drop_chance = 0.0
    hidden.position_noise_m = 0.0
    hidden.heading_noise_rad = 0.0
    hidden.duration_noise_s = 0.0
    hidden.extra_delay_ticks = 0
    if strength <= 0.0:
        return
    hidden.boss_time_factor += strength * _draw_within(hidden, constants.random_timing)
    hidden.reach_factor += strength * _draw_within(hidden, constants.random_reach)
    hidden.damage_factor += strength * _draw_within(hidden, constants.random_damage)
    hidden.speed_factor += strength * _draw_within(hidden, constants.random_speed)
    hidden.max_hit_shift_s = strength * constants.random_hit_shift_s
    hidden.drop_chance = strength * constants.random_drop_chance * draw(hidden)
    hidden.extra_delay_ticks = int((int(strength * constants.random_delay_ticks + 0.5) + 1) * draw(hidden))
    hidden.position_noise_m = strength * constants.random_position_m
    hidden.heading_noise_rad = strength * constants.random_heading_rad
    hidden.duration_noise_s = strength * constants.random_duration_s


@inner
def _or_default(value: float, default: float) -> float:
    return default if math.isnan(value) else value


@inner
def _reset(
    hidden: Hidden, fight: Fight, tables: Tables, start: Start, phase: int, changes: int, strength: float
) -> None:
    constants = tables.constants
    hidden.draws = np.uint64(0)
    _randomize(hidden, constants, strength)
    row = 0
    pick = draw(hidden)
    if start.random_pose == 1:
        row = 1 + int(pick * (constants.start_count - 1))
    hidden.phase = start.phase if start.phase > 0 else phase
    hidden.changes_phase = changes
    hidden.player_hp = _or_default(start.player_hp, constants.player_max_hp)
    hidden.player_sp = _or_default(start.player_sp, constants.player_max_sp)
    hidden.boss_hp = min(_or_default(start.boss_hp, constants.boss_max_hp), constants.boss_max_hp)
    hidden.player_x = _or_default(start.player_pose[0], tables.starts[row, 0])
    hidden.player_y = _or_default(start.player_pose[1], tables.starts[row, 1])
    set_heading(hidden, wrap(_or_default(start.player_pose[2], tables.starts[row, 2])))
    hidden.boss_x = _or_default(start.boss_pose[0], constants.boss_start_x)
    hidden.boss_y = _or_default(start.boss_pose[1], constants.boss_start_y)
    set_boss_heading(hidden, wrap(_or_default(start.boss_pose[2], constants.boss_start_heading)))
    hidden.player_z = ground_z(constants, hidden.player_x, hidden.player_y)
    hidden.player_moved_x = 0.0
    hidden.player_moved_y = 0.0
    hidden.carried_until_s = -1.0
    hidden.since_flinch_s = -1.0
    hidden.since_roll_s = 99.0
    hidden.roll_angle = 0.0
    hidden.walk_x, hidden.walk_y, hidden.regen_wait_ticks = 0.0, 0.0, 0
    hidden.held_steps = 0
    hidden.held_direction = 0
    hidden.roll_animation = constants.roll_again_animation
    hidden.payments = 1
    hidden.fall_speed = 0.0
    start_idle(hidden, constants)
    hidden.camera_heading = heading_to_boss(hidden)
    hidden.pivot_x, hidden.pivot_y = hidden.player_x, hidden.player_y
    hidden.boss_poise, hidden.since_strike_s, hidden.clock_s = constants.boss_max_poise, 0.0, 0.0
    hidden.parries = 0
    hidden.goal = NEW
    hidden.act = NO_ACT
    hidden.goal_left_s = 0.0
    hidden.next_link = 0
    hidden.links_left = 0
    hidden.strafe_move = 0
    hidden.is_first_approach = 1
    hidden.player_safe_radius2, hidden.boss_safe_radius2 = 0.0, 0.0
    hidden.boss_carried_x, hidden.boss_carried_y = 0.0, 0.0
    hidden.boss_animation, hidden.boss_animation_s = -1, 0.0
    for i in range(hidden.act_ready_s.shape[0]):
        hidden.act_ready_s[i] = 0.0
    for i in range(hidden.rule_ready_s.shape[0]):
        hidden.rule_ready_s[i] = 0.0
    for i in range(hidden.status_points.shape[0]):
        hidden.status_points[i], hidden.status_left_s[i] = 0.0, 0.0
    for i in range(hidden.shot_x.shape[0]):
        hidden.shot_move[i], hidden.shot_hit[i] = 0, 0
        hidden.shot_x[i], hidden.shot_y[i], hidden.shot_dx[i], hidden.shot_dy[i] = 0.0, 0.0, 0.0, 0.0
        hidden.shot_left_m[i], hidden.shot_turn_rad[i] = 0.0, 0.0
    hidden.running, hidden.count, hidden.goal_until_m, hidden.shots = 0, 0.0, 0.0, 0
    start_boss_move(hidden, tables, constants.boss_idle_move)
    fight.step = 0
    fight.outcome = RUNNING
    fight.damage_dealt, fight.damage_taken, fight.dealt_total, fight.taken_total = 0.0, 0.0, 0.0, 0.0
    fight.hit_by, fight.landed, fight.dodged, fight.killed_by = -1, -1, -1, -1
    fight.player_max_hp = int(constants.player_max_hp)
    fight.player_max_sp = int(constants.player_max_sp)
    fight.boss_max_hp = int(constants.boss_max_hp)


@inner
def reset_fights(
    fights: Sequence[Fight],
    hidden_states: Sequence[Hidden],
    mask: npt.NDArray[np.bool_],
    starts: Sequence[Start],
    seeds: npt.NDArray[np.uint64],
    seeded: bool,
    tables_by_file: Sequence[Tables],
    phase: int,
    changes: int,
    strength: float,
) -> None:
    """Restart the masked fights: from their seeds, or from what their last fight leads to."""
    for i in range(len(fights)):
        if mask[i]:
            hidden, fight = hidden_states[i], fights[i]
            hidden.table = hidden.next_table
            tables = tables_by_file[hidden.table]
            hidden.key = mix(seeds[i], EPISODE_SALT) if seeded else mix(hidden.key, EPISODE_SALT)
            _reset(hidden, fight, tables, starts[i], phase, changes, strength)
            show_record(hidden, fight, tables)
