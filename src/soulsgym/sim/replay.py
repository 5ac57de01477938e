"""Runs the simulator beside a recording: the player from recorded moments on, the boss through its recorded moves.

The kernels call the same functions as a step of a fight. What is not being measured is taken from the recording, and
its poses are interpolated between two observations.
"""

from __future__ import annotations

import math
from collections.abc import MutableSequence, Sequence
from typing import Annotated

from soulsgym.compiling import inner
from soulsgym.sim.boss import (
    ATTACKING,
    NO_ACT,
    body_tick,
    boss_heading,
    mind_tick,
    set_boss_heading,
    start_boss_move,
)
from soulsgym.sim.combat import boss_blows, held_tick, keep_inside, separate
from soulsgym.sim.geometry import cosine, heading_to, sine, wrap
from soulsgym.sim.hidden import FALL_MOVE, NO_MOVE, ROLL_MOVE, Hidden
from soulsgym.sim.player import (
    GRABBED,
    NONE,
    REACTION,
    choose_roll_curves,
    hold,
    is_grabbed,
    set_heading,
    start_flinch,
    start_move,
    start_reaction,
)
from soulsgym.sim.records import Array, Control, Fight, Ints, dtype_of
from soulsgym.sim.tables import TICKS_PER_STEP, Constants, Tables
from soulsgym.sim.tick import accept, fill_mask, player_tick
from soulsgym.state import MAX_DURATION_S, NUM_ACTIONS

FLINCH_ROLE = -4
"""Of a label: shown for a moment over a roll that goes on."""
JUST_HIT_S = 0.05
"""The simulated blow may come this much after the recorded reaction to it begins."""
NO_BLOW, GUARDED_BLOW = -9, -5
"""Instead of the reaction a recorded blow causes."""


class Blow:
    """What hits the player in a step: the reaction, flinch or guard, before which tick, and the stamina it costs."""

    move: int
    tick: int
    sp: float


class Prediction:
    """The player after a step of the simulator."""

    x: float
    y: float
    heading: float
    sp: float
    label_s: float
    label: int
    action_mask: Annotated[Ints, NUM_ACTIONS]


class ScriptEntry:
    """A move of the boss that begins before a tick of the episode, and how long ago it really did."""

    tick: int
    offset_s: float
    move: int


class BossStep:
    """What the boss does in a step, in the frame of its heading at the step's begin."""

    forward: float
    right: float
    yaw: float
    move_s: float
    move: int


class HitEvent:
    """A blow of the boss that landed."""

    tick: int
    move: int
    move_s: float
    damage: float


BLOW, PREDICTION, SCRIPT = dtype_of(Blow), dtype_of(Prediction), dtype_of(ScriptEntry)
BOSS_STEP, HIT_EVENT = dtype_of(BossStep), dtype_of(HitEvent)


@inner
def _boss_between(hidden: Hidden, before: Fight, after: Fight, share: float) -> None:
    first, last = before.boss_pose, after.boss_pose
    hidden.boss_x = first[0] + share * (last[0] - first[0])
    hidden.boss_y = first[1] + share * (last[1] - first[1])
    set_boss_heading(hidden, wrap(first[3] + share * wrap(last[3] - first[3])))


@inner
def _player_between(hidden: Hidden, before: Fight, after: Fight, share: float) -> None:
    first, last = before.player_pose, after.player_pose
    hidden.player_x = first[0] + share * (last[0] - first[0])
    hidden.player_y = first[1] + share * (last[1] - first[1])
    set_heading(hidden, wrap(first[3] + share * wrap(last[3] - first[3])))


@inner
def _strike(hidden: Hidden, tables: Tables, blow: Blow, after: Fight) -> None:
    constants = tables.constants
    if blow.move == FLINCH_ROLE:
        if hidden.player_move == ROLL_MOVE:
            start_flinch(hidden, after.player_animation)
    elif blow.move == GUARDED_BLOW:
        hidden.player_sp = max(constants.sp_floor, hidden.player_sp - blow.sp)
    elif blow.move >= 0:
        start_reaction(hidden, tables, blow.move, after.player_pose[3])
        if tables.player_moves[blow.move].kind == GRABBED:
            hidden.lock_on = 0


@inner
def _view(record: Fight) -> float:
    return heading_to(record.camera_pose[3], record.camera_pose[4])


@inner
def _player_step(
    hidden: Hidden, fight: Fight, tables: Tables, before: Fight, after: Fight, control: Control, blow: Blow
) -> None:
    constants = tables.constants
    direction, button = accept(hidden, tables, control)
    view = _view(before)
    camera_heading = wrap(view + constants.camera_press_share * wrap(_view(after) - view))
    _boss_between(hidden, before, after, 0.0)
    if hidden.player_move != FALL_MOVE and button == NONE:
        hold(hidden, tables, direction)
    for tick in range(TICKS_PER_STEP):
        if blow.tick == tick:
            _strike(hidden, tables, blow, after)
        player_tick(hidden, fight, tables, direction, button, camera_heading, constants.input_delay_ticks, tick)
        _boss_between(hidden, before, after, (tick + 1.0) / TICKS_PER_STEP)
        if hidden.player_move != FALL_MOVE:
            separate(hidden, tables, 0.0, 0.0)
            keep_inside(hidden, tables)
            if hidden.player_move == FALL_MOVE:
                # A fight looks at the edge once a step, so every fall begins with the end of one.
                break
    if blow.tick == TICKS_PER_STEP:
        _strike(hidden, tables, blow, after)
    if button != NONE or blow.tick >= 0:
        _align_begin(hidden, constants, after)


@inner
def _align_begin(hidden: Hidden, constants: Constants, record: Fight) -> None:
    """What a press or a blow began in this step began when the recorded label says.

    A press acts a frame earlier or later, and that decides at which step a roll lets the player walk again.
    """
    shown_s = record.player_animation_duration[0]
    latest_s = constants.label_step_s + 0.5 * constants.tick_s
    if (
        hidden.player_animation == record.player_animation
        and hidden.player_animation_s < latest_s
        and shown_s < latest_s
    ):
        if hidden.player_move != NO_MOVE and abs(hidden.player_move_s - hidden.player_animation_s) < 1e-3:
            hidden.player_move_s = shown_s
        hidden.player_animation_s = shown_s


@inner
def _adopt_label(hidden: Hidden, tables: Tables, roles: Ints, label: int, shown_s: float) -> None:
    """Do what the recorded label says where the simulator does something else."""
    constants = tables.constants
    role = roles[label + 1]
    if role == FLINCH_ROLE:
        if hidden.player_move != ROLL_MOVE:
            hidden.player_move, hidden.player_move_s = ROLL_MOVE, shown_s
            choose_roll_curves(hidden, constants, hidden.roll_angle)
        if hidden.since_flinch_s < 0.0:
            hidden.since_flinch_s = shown_s
    elif role == ROLL_MOVE:
        if hidden.player_move != ROLL_MOVE:
            choose_roll_curves(hidden, constants, hidden.roll_angle)
            hidden.player_move = ROLL_MOVE
            hidden.player_move_s = shown_s
            hidden.player_animation_s = shown_s
            hidden.payments = 1
        hidden.since_flinch_s = -1.0
        hidden.roll_animation = label
    elif role >= 0:
        start_move(hidden, tables, role)
        hidden.payments = 0
        while (
            hidden.payments < tables.player_moves[role].payments
            and shown_s >= tables.player_moves[role].payment_s[hidden.payments]
        ):
            hidden.payments += 1
    else:
        hidden.player_move = role
        hidden.since_flinch_s = -1.0
        hidden.carried_until_s = -1.0
        hidden.walk_ticks = 0
        hidden.since_walk_s = 0.0
    hidden.player_animation = label


@inner
def _adopt(hidden: Hidden, tables: Tables, roles: Ints, record: Fight) -> None:
    """Continue from the recorded observation; what it does not show stays as the simulator has it."""
    label, shown_s = record.player_animation, record.player_animation_duration[0]
    if label != hidden.player_animation:
        _adopt_label(hidden, tables, roles, label, shown_s)
    if shown_s < MAX_DURATION_S:
        if hidden.player_move >= 0 or (
            hidden.player_move == ROLL_MOVE and abs(hidden.player_move_s - hidden.player_animation_s) < 1e-3
        ):
            hidden.player_move_s = shown_s
        hidden.player_animation_s = shown_s
    hidden.player_x = record.player_pose[0]
    hidden.player_y = record.player_pose[1]
    hidden.player_z = record.player_pose[2]
    set_heading(hidden, wrap(record.player_pose[3]))
    if math.floor(hidden.player_sp) != record.player_sp[0]:
        hidden.player_sp = record.player_sp[0] + 0.5
    hidden.player_hp = record.player_hp[0]
    hidden.lock_on = record.lock_on


@inner
def _note_player(row: Prediction, hidden: Hidden, tables: Tables) -> None:
    row.x = hidden.player_x
    row.y = hidden.player_y
    row.heading = hidden.player_heading
    row.sp = math.floor(hidden.player_sp)
    row.label, row.label_s = hidden.player_animation, hidden.player_animation_s
    fill_mask(row.action_mask, hidden, tables)


@inner
def replay_player(
    fights: Sequence[Fight],
    controls: Sequence[Control],
    blows: Sequence[Blow],
    roles: Ints,
    boss_moves: Ints,
    template: Sequence[Hidden],
    state: MutableSequence[Hidden],
    states: MutableSequence[Hidden],
    scratch: Sequence[Fight],
    tables: Tables,
    predictions: Array,
) -> None:
    """Follow one episode: predictions[i, h] is the player h steps after the recorded moment i, for h from 1 on.

    There are as many moments as `predictions` has rows. `states[i]` becomes the simulator's record of the player at
    moment i.
    """
    state[0] = template[0]
    horizon = predictions.shape[1] - 1
    for i in range(len(predictions)):
        follower = state[0]
        _adopt(follower, tables, roles, fights[i])
        states[i] = state[0]
        for h in range(1, min(horizon, len(fights) - 1 - i) + 1):
            before, after = fights[i + h - 1], fights[i + h]
            follower.boss_move = boss_moves[before.boss_animation + 1]
            follower.boss_move_s = before.boss_animation_duration[0]
            _player_step(follower, scratch[0], tables, before, after, controls[i + h], blows[i + h])
            _note_player(predictions[i, h], follower, tables)
            if h == 1:
                state[1] = state[0]
        state[0] = state[1]


@inner
def _player_at(hidden: Hidden, before: Hidden, after: Hidden, tick: int, tables: Tables) -> None:
    """The player's state at the end of a tick between two observations that the follower has seen."""
    constants = tables.constants
    left_s = (TICKS_PER_STEP - 1 - tick) * constants.tick_s
    # A reaction that has just begun does not yet protect from the blow that caused it.
    since_s = after.player_move_s - left_s
    reacts = (
        after.player_move >= 0
        and tables.player_moves[after.player_move].kind == REACTION
        and after.player_move != before.player_move
    )
    if since_s >= (JUST_HIT_S if reacts else 0.0):
        hidden.player_move, hidden.player_move_s = after.player_move, after.player_move_s - left_s
    else:
        hidden.player_move = before.player_move
        hidden.player_move_s = before.player_move_s + (tick + 1) * constants.tick_s
    hidden.player_hp, hidden.player_sp = before.player_hp, before.player_sp


@inner
def _begin(
    hidden: Hidden,
    tables: Tables,
    before: Fight,
    after: Fight,
    last_x: float,
    last_y: float,
    row: ScriptEntry,
    share: float,
) -> None:
    _boss_between(hidden, before, after, share)
    start_boss_move(hidden, tables, row.move)
    hidden.boss_move_s = row.offset_s
    hidden.boss_carried_x, hidden.boss_carried_y = last_x, last_y


@inner
def _blows(
    hidden: Hidden,
    fight: Fight,
    tables: Tables,
    distance: float,
    dx: float,
    dy: float,
    tick: int,
    hits: Sequence[HitEvent],
    count: int,
) -> int:
    """Let the boss hit, note it, and leave the boss as it was: what follows is up to the recording."""
    move, move_s, cum_f, cum_r = hidden.boss_move, hidden.boss_move_s, hidden.boss_forward_m, hidden.boss_right_m
    fight.hit_by, fight.damage_taken = -1, 0.0
    if is_grabbed(hidden, tables):
        held_tick(hidden, fight, tables)
    else:
        boss_blows(hidden, fight, tables, distance, dx, dy)
    if hidden.boss_move != move:
        hidden.boss_move = move
        hidden.boss_move_s = move_s
        hidden.boss_forward_m = cum_f
        hidden.boss_right_m = cum_r
        hidden.hits_landed = -1
    if fight.hit_by >= 0 and count < len(hits):
        row = hits[count]
        row.tick, row.move, row.move_s, row.damage = tick, move, move_s, fight.damage_taken
        return count + 1
    return count


@inner
def replay_boss(
    fights: Sequence[Fight],
    states: Sequence[Hidden],
    script: Sequence[ScriptEntry],
    template: Sequence[Hidden],
    state: MutableSequence[Hidden],
    scratch: Sequence[Fight],
    tables: Tables,
    strikes: bool,
    steps: Sequence[BossStep],
    hits: Sequence[HitEvent],
) -> int:
    """Follow the boss of one episode through a script of moves, with the player where he was recorded.

    Fills `steps` with what the simulated boss does in every step, and with `strikes` `hits` with the blows that land.
    Returns the number of hits.
    """
    state[0] = template[0]
    hidden = state[0]
    _boss_between(hidden, fights[0], fights[0], 0.0)
    entry, count = 0, 0
    for i in range(1, len(fights)):
        before, after = fights[i - 1], fights[i]
        last_x, last_y = 0.0, 0.0
        if i > 1:
            last_x = (before.boss_pose[0] - fights[i - 2].boss_pose[0]) / TICKS_PER_STEP
            last_y = (before.boss_pose[1] - fights[i - 2].boss_pose[1]) / TICKS_PER_STEP
        frame, turned, moved_x, moved_y = boss_heading(hidden), 0.0, 0.0, 0.0
        for tick in range(TICKS_PER_STEP):
            now = (i - 1) * TICKS_PER_STEP + tick
            if entry < len(script) and script[entry].tick <= now:
                _begin(hidden, tables, before, after, last_x, last_y, script[entry], tick / TICKS_PER_STEP)
                entry += 1
                frame = wrap(boss_heading(hidden) - turned)
            x, y, angle = hidden.boss_x, hidden.boss_y, boss_heading(hidden)
            _player_between(hidden, before, after, (tick + 1.0) / TICKS_PER_STEP)
            hidden.player_moved_x, hidden.player_moved_y = 0.0, 0.0
            _player_at(hidden, states[i - 1], states[i], tick, tables)
            dx, dy = hidden.player_x - hidden.boss_x, hidden.player_y - hidden.boss_y
            boss_x, boss_y = body_tick(hidden, tables, math.sqrt(dx * dx + dy * dy), dx, dy)
            separate(hidden, tables, boss_x, boss_y)
            keep_inside(hidden, tables)
            moved_x += hidden.boss_x - x
            moved_y += hidden.boss_y - y
            turned += wrap(boss_heading(hidden) - angle)
            if strikes:
                dx, dy = hidden.player_x - hidden.boss_x, hidden.player_y - hidden.boss_y
                count = _blows(hidden, scratch[0], tables, math.sqrt(dx * dx + dy * dy), dx, dy, now, hits, count)
        row = steps[i]
        row.forward = -sine(frame) * moved_x - cosine(frame) * moved_y
        row.right = -cosine(frame) * moved_x + sine(frame) * moved_y
        row.yaw, row.move, row.move_s = turned, hidden.boss_move, hidden.boss_move_s
    return count


@inner
def label_duration(
    template: Sequence[Hidden],
    state: MutableSequence[Hidden],
    tables: Tables,
    move: int,
    link: int,
    links: int,
    away_m: float,
    longest_s: float,
) -> float:
    """How long the boss shows a move's label when the player stays `away_m` in front of him; `links` may follow."""
    state[0] = template[0]
    hidden = state[0]
    hidden.goal, hidden.act, hidden.is_first_approach, hidden.changes_phase = ATTACKING, NO_ACT, 0, 0
    start_boss_move(hidden, tables, move)
    hidden.next_link, hidden.links_left = link, links
    label, shown_s = hidden.boss_animation, 0.0
    while shown_s < longest_s:
        hidden.player_x = hidden.boss_x - hidden.boss_sin * away_m
        hidden.player_y = hidden.boss_y - hidden.boss_cos * away_m
        mind_tick(hidden, tables, away_m)
        if hidden.boss_animation != label or hidden.boss_animation_s < shown_s:
            return shown_s
        body_tick(hidden, tables, away_m, hidden.player_x - hidden.boss_x, hidden.player_y - hidden.boss_y)
        shown_s = hidden.boss_animation_s
    return longest_s
