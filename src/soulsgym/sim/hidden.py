"""Hidden, the simulator's own record of a fight: everything the observation does not show.

Times are in seconds of the label clock (see docs/simulator.md), lengths in metres, angles in radians.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from soulsgym.sim.records import Floats, Ints, dtype_of
from soulsgym.sim.tables import MAX_ACTS, MAX_SHOTS, MAX_STATUSES, MAX_TIMERS

NO_MOVE = -1
"""The player stands or walks."""
ROLL_MOVE = -2
"""The player rolls; rolls are blended from profiles and so are no row of the move table."""
FALL_MOVE = -3


class Hidden:
    """One fight. Saved runs hold these bytes: whoever changes order or types raises `KIND` in engine.py."""

    # Randomness: the fight's key, and how many numbers were drawn.
    key: np.uint64
    draws: np.uint64

    # Positions among the engine's tables: of the file this fight is played on, and of its next one.
    table: int
    next_table: int

    # What this fight drew under domain randomisation.
    boss_time_factor: float
    reach_factor: float
    damage_factor: float
    speed_factor: float  # of walking, player and boss
    max_hit_shift_s: float
    drop_chance: float  # that an input is lost
    position_noise_m: float
    heading_noise_rad: float
    duration_noise_s: float
    extra_delay_ticks: int

    # The player.
    player_x: float
    player_y: float
    player_z: float
    player_heading: float
    player_sin: float
    player_cos: float
    player_moved_x: float  # in the last tick
    player_moved_y: float
    player_hp: float
    player_sp: float
    player_move_s: float
    player_animation_s: float  # how long the animation is shown, which need not have begun with the move
    forward_factor: float  # how much of the forward curve of the move is used
    right_factor: float
    roll_angle: float  # from the heading
    carried_x: float  # metres per tick that live on from the motion before
    carried_y: float
    carried_until_s: float  # time in the move; -1: nothing is carried
    since_flinch_s: float  # -1: no flinch is shown
    walk_x: float  # metres per tick of the last walking
    walk_y: float
    since_walk_s: float
    since_roll_s: float
    fall_speed: float  # metres per tick
    player_safe_x: float  # centre of a circle known to lie inside the arena
    player_safe_y: float
    player_safe_radius2: float
    stop_x: float  # direction in which a walk comes to its stop
    stop_y: float
    player_move: int  # row of the move table, or NO_MOVE, ROLL_MOVE, FALL_MOVE
    player_animation: int
    forward_curve: int  # where the curve of the move begins; -1: none
    right_curve: int
    payments: int  # parts of the stamina of the move that are paid
    strikes_landed: int  # bits: strikes of the move that landed
    walk_ticks: int
    held_steps: int  # steps for which a direction is held
    held_direction: int
    roll_animation: int  # of the two, the one shown last
    walk_after_roll: int
    lock_on: int
    regen_wait_ticks: int

    # The camera: its heading, and the lagging point it turns about.
    camera_heading: float
    pivot_x: float
    pivot_y: float

    # The boss.
    boss_x: float
    boss_y: float
    boss_sin: float
    boss_cos: float
    boss_safe_x: float
    boss_safe_y: float
    boss_safe_radius2: float
    boss_hp: float
    boss_poise: float
    since_strike_s: float  # since the player hit the boss; poise comes back some time after
    boss_move_s: float
    boss_animation_s: float
    boss_forward_m: float  # metres of the move's curve that are used up
    boss_right_m: float
    boss_carried_x: float  # metres per tick carried over from the move before
    boss_carried_y: float
    goal_left_s: float  # how long the goal may still take
    goal_until_m: float  # a walk or strafe without an act ends when the player is this near
    count: float  # what the moves since the last strafe add up to
    hit_shift_s: float  # how much later than in the data the hits of this move come
    clock_s: float  # since the start; cooldowns are measured on it
    stretch_scale: float  # of the forward motion in the running stretch
    boss_move: int
    boss_animation: int
    phase: int
    changes_phase: int  # does the boss go on to the next phase?
    is_first_approach: int  # of the phase: the boss walks up before he decides anything
    goal: int
    act: int  # row of the act table, or NO_ACT
    next_link: int  # row of the link table, and how many of the chain are left from it on
    links_left: int
    link_checked: int  # has the move come to where it links to the next one?
    decided: int  # is it decided what follows the attack?
    hits_landed: int  # bits: hits of the move that are done with
    hits_dodged: int
    parries: int  # blows that the player parried since the boss was opened last
    strafe_move: int  # where the boss strafes or backs off: the move to strafe with, or NO_STRAFE after backing off
    throws_dealt: int  # of the running throw
    running: int  # does he run to where the act begins?
    interrupts_checked: int  # bits: interrupts of the phase that were looked at in this move
    stretch: int  # of the move, counted from 0; -1: none yet
    act_ready_s: Annotated[Floats, MAX_ACTS]  # by act of the phase: when it has cooled down
    rule_ready_s: Annotated[Floats, MAX_TIMERS]  # by timer of the phase's rules: when they fit again
    status_points: Annotated[Floats, MAX_STATUSES]  # what has built up in the player
    status_left_s: Annotated[Floats, MAX_STATUSES]  # how long it still lasts; 0: he has it not

    # Shots of the boss in the air: place, motion per tick, how far they still fly and may still turn.
    shots: int
    shot_move: Annotated[Ints, MAX_SHOTS]  # the boss's move that it came from
    shot_hit: Annotated[Ints, MAX_SHOTS]  # row of the hit table
    shot_x: Annotated[Floats, MAX_SHOTS]
    shot_y: Annotated[Floats, MAX_SHOTS]
    shot_dx: Annotated[Floats, MAX_SHOTS]
    shot_dy: Annotated[Floats, MAX_SHOTS]
    shot_left_m: Annotated[Floats, MAX_SHOTS]
    shot_turn_rad: Annotated[Floats, MAX_SHOTS]


HIDDEN = dtype_of(Hidden)
