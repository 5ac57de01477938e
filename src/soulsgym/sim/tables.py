"""Tables, all the data of a fight that the kernels read: one record of fixed size, the same for every boss.

Being one record it is passed as one pointer (a tuple of arrays costs a reference count per array and call). `pack.py`
fills it. A field `first_hit` beside `hits` is the row of the first one in the table of hits, and how many follow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from soulsgym.sim.records import Floats, Ints, dtype_of
from soulsgym.spec.fight import FightSpec
from soulsgym.spec.player import MAX_PAYMENTS

TICKS_PER_STEP = 6
TICKS_PER_S = 60
MAX_ACTS = 24
TURN_ACT = MAX_ACTS - 1
"""The column of a rule's weights that stands for turning on the spot."""
MAX_HITS = 31
"""Blows of one move, of the boss or the player: those that landed are bits of a number."""
MAX_INTERRUPTS = 31
"""Interrupts of one move in one phase: those that were looked at are bits of a number."""
MAX_PHASES = 4
MAX_AFTER = 12
"""Moves that a rule may follow."""
MAX_SHOTS = 4
"""Shots in the air at once."""
MAX_STATUSES = 2
"""What can build up in the player of one fight, such as frost."""
MAX_TIMERS = 4
"""Rules of one phase that wait for a time."""


def _from(value: Callable[[FightSpec], Any]) -> Any:
    """Says how a constant follows from the fight; `pack` calls it."""
    return value


def _tick_s(spec: FightSpec) -> float:
    return spec.player.label_s_per_step / TICKS_PER_STEP


def _animation(spec: FightSpec, name: str) -> int:
    return [animation.name for animation in spec.player_animations].index(name)


def _player_move(spec: FightSpec, name: str) -> int:
    return [move.name for move in spec.player.moves].index(name)


def _boss_move(spec: FightSpec, name: str, instead: str = "") -> int:
    known = any(move.name == name for move in spec.boss.moves)
    return spec.boss.move_index(name if known or not instead else instead)


class Constants:
    """Numbers of player, boss and arena that are no table, each with where it comes from.

    Animations and moves are positions in their lists. Times are in seconds of the label clock.
    """

    tick_s: float = _from(_tick_s)
    ticks_per_label_s: float = _from(lambda spec: 1.0 / _tick_s(spec))
    label_step_s: float = _from(lambda spec: spec.player.label_s_per_step)

    player_max_hp: float = _from(lambda spec: spec.player.hp)
    player_max_sp: float = _from(lambda spec: spec.player.sp)
    sp_floor: float = _from(lambda spec: spec.player.sp_floor)
    sp_per_tick: float = _from(lambda spec: spec.player.sp_per_s / TICKS_PER_S)
    player_radius_m: float = _from(lambda spec: spec.player.radius_m)
    least_distance_m: float = _from(lambda spec: spec.boss.least_distance_m)
    flinch_s: float = _from(lambda spec: spec.player.flinch_s)
    flinch_after_s: float = _from(lambda spec: spec.player.flinch_after_s)

    walk_first_share: float = _from(lambda spec: spec.player.walk.first_share)
    walk_first_share_back: float = _from(lambda spec: spec.player.walk.first_share_back)
    after_roll_first_share: float = _from(lambda spec: spec.player.walk.after_roll_shares[0])
    after_roll_second_share: float = _from(lambda spec: spec.player.walk.after_roll_shares[1])
    walk_carry_from_roll: float = _from(lambda spec: spec.player.walk.carry_roll)
    attack_carry_from_walk: float = _from(lambda spec: spec.player.walk.carry_into_attack)
    walk_turn_per_tick: float = _from(lambda spec: spec.player.walk.turn_rad_per_s / TICKS_PER_S)
    stops_after_steps: float = _from(lambda spec: spec.player.walk.stops_after_steps)
    stop_tail_m: float = _from(lambda spec: spec.player.walk.stop_tail_m)
    stop_s: float = _from(lambda spec: spec.player.walk.stop_s)
    linger_s: float = _from(lambda spec: spec.player.walk.linger_s)

    roll_sp_cost: float = _from(lambda spec: spec.player.roll.sp_cost)
    roll_regen_s: float = _from(lambda spec: spec.player.roll.regen_from_s)
    roll_end_s: float = _from(lambda spec: spec.player.roll.end_s)
    roll_invulnerable_from_s: float = _from(lambda spec: spec.player.roll.invulnerable_s[0])
    roll_invulnerable_to_s: float = _from(lambda spec: spec.player.roll.invulnerable_s[1])
    roll_turn_from_s: float = _from(lambda spec: spec.player.roll.turn_s[0])
    roll_turn_to_s: float = _from(lambda spec: spec.player.roll.turn_s[1])
    roll_settle_s: float = _from(lambda spec: spec.player.roll.settle_s)
    roll_turn_per_tick: float = _from(lambda spec: spec.player.roll.turn_rad_per_s / TICKS_PER_S)
    roll_again_s: float = _from(lambda spec: spec.player.roll.again_within_s)
    roll_carry_from_walk: float = _from(lambda spec: spec.player.roll.carry)
    roll_carry_from_roll: float = _from(lambda spec: spec.player.roll.carry_roll)
    roll_carry_direction_m: float = _from(lambda spec: spec.player.roll.carry_direction_m)
    roll_first_s: float = _from(lambda spec: spec.player.roll.first_s)

    camera_pivot_share: float = _from(lambda spec: spec.player.camera.pivot_share_per_step)
    camera_yaw_share: float = _from(lambda spec: spec.player.camera.yaw_share_per_step)
    camera_press_share: float = _from(lambda spec: spec.player.camera.press_share)
    camera_distance_m: float = _from(lambda spec: spec.player.camera.distance_m)
    camera_height_m: float = _from(lambda spec: spec.player.camera.height_m)
    camera_view_z: float = _from(lambda spec: spec.player.camera.view_z)

    boss_max_hp: float = _from(lambda spec: spec.boss.hp)
    boss_max_poise: float = _from(lambda spec: spec.boss.poise)
    poise_recovery_s: float = _from(lambda spec: spec.boss.poise_recovery_s)
    boss_radius_m: float = _from(lambda spec: spec.boss.radius_m)
    turn_beyond_rad: float = _from(lambda spec: math.radians(spec.boss.turn_animation_beyond_deg))
    turn_around_beyond_rad: float = _from(lambda spec: math.radians(spec.boss.turn_around_beyond_deg))
    contact_drag: float = _from(lambda spec: spec.boss.contact_drag)
    contact_push: float = _from(lambda spec: spec.boss.contact_push)
    open_damage_factor: float = _from(lambda spec: spec.boss.damage_taken_factor)
    riposte_m: float = _from(lambda spec: spec.boss.riposte_within_m)
    riposte_facing_rad: float = _from(lambda spec: math.radians(spec.boss.riposte_facing_deg))

    # The height of the ground is a polynomial in (u, v), metres from its origin.
    ground_origin_x: float = _from(lambda spec: spec.arena.ground_origin_m[0])
    ground_origin_y: float = _from(lambda spec: spec.arena.ground_origin_m[1])
    ground_1: float = _from(lambda spec: spec.arena.ground[0])
    ground_u: float = _from(lambda spec: spec.arena.ground[1])
    ground_v: float = _from(lambda spec: spec.arena.ground[2])
    ground_uu: float = _from(lambda spec: spec.arena.ground[3])
    ground_uv: float = _from(lambda spec: spec.arena.ground[4])
    ground_vv: float = _from(lambda spec: spec.arena.ground[5])
    lowest_x: float = _from(lambda spec: spec.arena.low_m[0])
    highest_x: float = _from(lambda spec: spec.arena.high_m[0])
    lowest_y: float = _from(lambda spec: spec.arena.low_m[1])
    highest_y: float = _from(lambda spec: spec.arena.high_m[1])
    lowest_z: float = _from(lambda spec: spec.arena.low_m[2])
    fall_loop_s: float = _from(lambda spec: spec.player.fall_loop_from_s)
    fall_m_per_tick2: float = _from(lambda spec: spec.arena.fall_m_per_s2 / TICKS_PER_S**2)
    deadly_drop_m: float = _from(lambda spec: spec.arena.deadly_drop_m)
    boss_start_x: float = _from(lambda spec: spec.arena.boss_start[0])
    boss_start_y: float = _from(lambda spec: spec.arena.boss_start[1])
    boss_start_heading: float = _from(lambda spec: spec.arena.boss_start[2])

    # How far domain randomisation goes at its full strength.
    random_timing: float = _from(lambda spec: spec.boss.randomize.timing)
    random_hit_shift_s: float = _from(lambda spec: spec.boss.randomize.hit_shift_s)
    random_reach: float = _from(lambda spec: spec.boss.randomize.reach)
    random_damage: float = _from(lambda spec: spec.boss.randomize.damage)
    random_speed: float = _from(lambda spec: spec.boss.randomize.speed)
    random_delay_ticks: float = _from(lambda spec: spec.boss.randomize.input_delay_ticks)
    random_drop_chance: float = _from(lambda spec: spec.boss.randomize.dropped_inputs)
    random_position_m: float = _from(lambda spec: spec.boss.randomize.position_noise_m)
    random_heading_rad: float = _from(lambda spec: spec.boss.randomize.heading_noise_rad)
    random_duration_s: float = _from(lambda spec: spec.boss.randomize.duration_noise_s)

    ticks_per_step: int = _from(lambda spec: TICKS_PER_STEP)
    parries_to_open: int = _from(lambda spec: spec.boss.parries)
    roll_flinches: int = _from(lambda spec: spec.player.roll.flinches)
    input_delay_ticks: int = _from(lambda spec: spec.player.input_delay_ticks)
    first_ticks: int = _from(
        lambda spec: TICKS_PER_STEP - int(spec.player.input_delay_ticks)
    )  # of motion, in the step of a press
    regen_delay_ticks: int = _from(lambda spec: spec.player.sp_delay_ticks)
    edge_count: int = _from(lambda spec: len(spec.arena.corners))
    start_count: int = _from(lambda spec: 1 + len(spec.arena.player_starts))
    status_count: int = _from(lambda spec: len(spec.player.statuses))

    idle_animation: int = _from(lambda spec: _animation(spec, "Idle"))
    walk_animation: int = _from(lambda spec: _animation(spec, "Move"))
    stop_animation: int = _from(lambda spec: _animation(spec, "RunStopFront"))  # then back, left, right
    roll_animation: int = _from(lambda spec: _animation(spec, spec.player.roll.animations[0]))
    roll_again_animation: int = _from(lambda spec: _animation(spec, spec.player.roll.animations[1]))
    fall_start_animation: int = _from(lambda spec: _animation(spec, spec.player.fall_animations[0]))
    fall_loop_animation: int = _from(lambda spec: _animation(spec, spec.player.fall_animations[1]))
    flinch_after_animation: int = _from(lambda spec: _animation(spec, spec.player.flinch_after_animation))
    boss_idle_animation: int = _from(
        lambda spec: spec.boss_animations.index(spec.boss.moves[_boss_move(spec, "idle")].animation)
    )

    light_move: int = _from(lambda spec: _player_move(spec, "light_1"))
    heavy_move: int = _from(lambda spec: _player_move(spec, "heavy"))
    parry_move: int = _from(lambda spec: _player_move(spec, "parry"))
    riposte_move: int = _from(lambda spec: _player_move(spec, "riposte"))
    backstep_move: int = _from(lambda spec: _player_move(spec, "backstep"))
    get_up_move: int = _from(lambda spec: _player_move(spec, "get_up_roll"))
    grabbed_move: int = _from(lambda spec: _player_move(spec, "ThrowDef"))
    guard_break_move: int = _from(lambda spec: _player_move(spec, "GuardBreakWall"))
    roll_light_move: int = _from(lambda spec: _player_move(spec, spec.player.roll.on_light))
    roll_heavy_move: int = _from(lambda spec: _player_move(spec, spec.player.roll.on_heavy))

    # Where the roll's curves begin; `pack` knows.
    roll_forward_curve: int
    roll_back_right_curve: int
    roll_back_left_curve: int
    roll_right_curve: int
    roll_left_curve: int

    boss_idle_move: int = _from(lambda spec: _boss_move(spec, "idle"))
    boss_walk_move: int = _from(lambda spec: _boss_move(spec, "walk"))
    boss_back_move: int = _from(lambda spec: _boss_move(spec, "walk_back", instead="walk"))
    boss_run_move: int = _from(lambda spec: _boss_move(spec, "run", instead="walk"))
    boss_strafe_left_move: int = _from(lambda spec: _boss_move(spec, "strafe_left"))
    boss_strafe_right_move: int = _from(lambda spec: _boss_move(spec, "strafe_right"))
    boss_turn_left_move: int = _from(lambda spec: _boss_move(spec, "turn_left"))
    boss_turn_right_move: int = _from(lambda spec: _boss_move(spec, "turn_right"))
    boss_turn_left_around_move: int = _from(lambda spec: _boss_move(spec, "turn_left_around"))
    boss_turn_right_around_move: int = _from(lambda spec: _boss_move(spec, "turn_right_around"))
    boss_stagger_move: int = _from(lambda spec: _boss_move(spec, "stagger"))
    boss_parried_move: int = _from(lambda spec: _boss_move(spec, "parried"))
    boss_executed_move: int = _from(lambda spec: _boss_move(spec, "executed"))

    walk_m: Annotated[Floats, 4] = _from(lambda spec: spec.player.walk.full_m)  # a step: forward, right, back, left
    stop_m: Annotated[Floats, 4] = _from(lambda spec: spec.player.walk.stop_m)
    flinch_animations: Annotated[Ints, 4] = _from(
        lambda spec: [_animation(spec, name) for name in spec.player.flinch_animations]
    )


class PlayerMoveRow:
    """A move of the player; curves are rows of `curves`, or -1."""

    end_s: float
    sp_per_payment: float
    regen_s: float
    turn_from_s: float
    turn_to_s: float
    invulnerable_from_s: float
    invulnerable_to_s: float
    parry_from_s: float
    parry_to_s: float
    guard_from_s: float
    guard_to_s: float
    guard_factor: float
    held_m: float
    lock_s: float
    moved_m: float
    strikes_from_s: float
    strikes_to_s: float
    animation: int
    kind: int
    on_light: int
    on_heavy: int
    on_roll: int
    on_end: int
    knocked_down: int
    forward_curve: int
    right_curve: int
    backward_curve: int
    payments: int
    first_strike: int
    strikes: int
    payment_s: Annotated[Floats, MAX_PAYMENTS]


class StrikeRow:
    """A blow of the player."""

    from_s: float
    to_s: float
    reach_m: float
    arc_rad: float
    damage: float
    poise: float


class BossMoveRow:
    """A move of the boss; `first_row` and `rows` are those of `boss_curves`."""

    link_s: float
    label_end_s: float
    end_s: float
    blend_s: float
    hop_s: float
    count: float
    hits_from_s: float
    hits_to_s: float
    shift_scale: float  # how much of the randomisation is left for what recordings told: of the blows' shift,
    time_scale: float  # and of the speed
    animation: int
    kind: int
    first_row: int
    rows: int
    first_hit: int
    hits: int
    grab_move: int
    first_throw: int
    throws: int
    first_stretch: int
    stretches: int
    first_interrupt: Annotated[Ints, MAX_PHASES]  # by phase
    interrupts: Annotated[Ints, MAX_PHASES]


class ThrowRow:
    """Damage to a grabbed player."""

    at_s: float
    damage: float


class StretchRow:
    """A part of a move whose forward motion is scaled to the player's distance."""

    from_s: float
    to_s: float
    arrive_m: float
    least_m: float
    most_m: float
    reference_m: float


class HitRow:
    """A blow of the boss."""

    from_s: float
    to_s: float
    reach_m: float
    inner_m: float
    half_width_m: float
    arc_from_rad: float
    arc_to_rad: float
    blade_rad: float
    offset_m: float
    damage: float
    reach_scale: float  # of the randomisation, as in a move's row
    damage_scale: float
    guard_sp: float
    push_m: float
    shot_m_per_tick: float
    shot_radius_m: float
    homing_rad: float
    shape: int
    sweep: int
    reaction: int
    parriable: int
    builds_up: int
    build_up: Annotated[Floats, MAX_STATUSES]  # points by status


class StatusRow:
    """A status of the player; per tick where it is a rate."""

    resistance: float
    down_per_tick: float
    lasts_s: float
    hp_lost: float
    damage_factor: float
    sp_per_tick_lost: float


class PhaseRow:
    """A phase of the boss; `first_act` is the row of its act 0."""

    change_hp_share: float
    first_approach_m: float
    first_approach_lo_s: float
    first_approach_hi_s: float
    down_weight: float
    front_rad: float
    within_gap_m: float
    back_off_m: float
    back_off_s: float
    near_gap_m: float
    near_lo_s: float
    near_hi_s: float
    far_lo_s: float
    far_hi_s: float
    aura_m: float
    aura_per_tick: float
    aura_status: int
    change_move: int
    first_rule: int
    rules: int
    first_act: int
    first_retreat: int
    retreats: int


class RuleRow:
    """Where the player must be for a choice among acts, and their weights."""

    bearing_lo: float
    bearing_hi: float
    beyond_rad: float
    gap_lo: float
    gap_hi: float
    every_s: float
    count_over: float
    timer: int
    ready: int
    after: int
    after_moves: Annotated[Ints, MAX_AFTER]
    weights: Annotated[Floats, MAX_ACTS]


class RetreatRow:
    """Backing off after an attack."""

    gap_lo: float
    gap_hi: float
    chance: float
    lo_s: float
    hi_s: float


class InterruptRow:
    """A moment of a move at which it may be dropped for an act, or for a move where `act` is -1."""

    at_s: float
    to_s: float  # -1: looked at once
    bearing_lo: float
    bearing_hi: float
    gap_lo: float
    gap_hi: float
    chance: float
    move: int
    act: int
    next_move: int
    standing: int
    cooled: int


class ActRow:
    """Something the boss may choose: an approach, a move, and the chains that may follow."""

    approach_m: float
    approach_s: float
    cooldown_s: float
    cooling_weight: float
    lasts_lo_s: float
    lasts_hi_s: float
    until_m: float
    after_odds: float
    room_forward_m: float
    room_right_m: float
    then_within_rad: float
    run_from_m: float
    run_chance: float
    run_always_m: float
    run_approach_m: float
    move: int
    first_chain: int
    chains: int
    gives_up: int
    has_room: int
    has_then: int
    then_weights: Annotated[Floats, MAX_ACTS]


class ChainRow:
    """Moves that follow one another."""

    weight: float
    first_link: int
    links: int


class LinkRow:
    """The next move of a chain, and where the player must be for it."""

    within_m: float
    bearing_lo: float
    bearing_hi: float
    move: int


class EdgeRow:
    """A line that the arena ends at: normal * place = offset, and less inside."""

    normal_x: float
    normal_y: float
    offset: float
    cliff: int


class Tables:
    """All of it. Rows beyond those that a boss needs are never read."""

    constants: Constants
    timings: Annotated[Floats, (96, 3)]  # [animation + 1, (attack_s, roll_s, walk_s)]; row 0 is the unknown animation
    player_moves: Annotated[Sequence[PlayerMoveRow], 64]
    curves: Annotated[Floats, 16384]  # cumulative metres per tick of the player's moves, one after the other
    boss_moves: Annotated[Sequence[BossMoveRow], 96]
    boss_curves: Annotated[Floats, (32768, 4)]  # [row, (forward, right, chase share per tick, turn per tick)]
    strikes: Annotated[Sequence[StrikeRow], 64]
    hits: Annotated[Sequence[HitRow], 160]
    throws: Annotated[Sequence[ThrowRow], 32]
    statuses: Annotated[Sequence[StatusRow], MAX_STATUSES]
    stretches: Annotated[Sequence[StretchRow], 64]
    phases: Annotated[Sequence[PhaseRow], MAX_PHASES]
    retreats: Annotated[Sequence[RetreatRow], 16]
    interrupts: Annotated[Sequence[InterruptRow], 128]
    rules: Annotated[Sequence[RuleRow], 64]
    acts: Annotated[Sequence[ActRow], 64]
    chains: Annotated[Sequence[ChainRow], 160]
    links: Annotated[Sequence[LinkRow], 256]
    edges: Annotated[Sequence[EdgeRow], 32]
    starts: Annotated[Floats, (32, 3)]  # the standard start, then the ones to draw from


TABLES = dtype_of(Tables)
