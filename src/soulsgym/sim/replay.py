"""Runs the simulator beside a recording: the player from recorded moments on, the boss through its recorded moves.

The kernels call the same functions as a step of a fight. What is not being measured is taken from the recording, and
its poses are interpolated between two observations.
"""

from __future__ import annotations

import math

import numpy as np

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
from soulsgym.sim.hidden import FALL_MOVE, NO_MOVE, ROLL_MOVE
from soulsgym.sim.player import (
    GRABBED,
    NONE,
    REACTION,
    hold,
    roll_profiles,
    set_heading,
    start_flinch,
    start_move,
    start_reaction,
)
from soulsgym.sim.tables import TICKS_PER_STEP
from soulsgym.sim.tick import accepted, allowed, player_tick
from soulsgym.state import MAX_DURATION_S

FLINCH_ROLE = -4
"""Of a label: shown for a moment over a roll that goes on."""
JUST_HIT_S = 0.05
"""The simulated blow may come this much after the recorded reaction to it begins."""
NO_BLOW, GUARDED_BLOW = -9, -5
"""Instead of the reaction a recorded blow causes."""

BLOW = np.dtype([("move", "i4"), ("tick", "i4"), ("sp", "f8")], align=True)
"""What hits the player in a step: the reaction, flinch or guard, before which tick, and the stamina it costs."""
PREDICTION = np.dtype(
    [
        *((name, "f8") for name in ("x", "y", "heading", "sp", "label_s")),
        ("label", "i4"),
        ("open", "i1", (3,)),  # attack, roll, walk
    ],
    align=True,
)
"""The player after a step of the simulator."""
SCRIPT = np.dtype([("tick", "i8"), ("offset_s", "f8"), ("move", "i4")], align=True)
"""A move of the boss that begins before a tick, counted from the episode's start, and how long ago it really did."""
BOSS_STEP = np.dtype([(name, "f8") for name in ("forward", "right", "yaw", "move_s")] + [("move", "i4")], align=True)
"""What the boss does in a step, in the frame of its heading at the step's begin."""
HIT_EVENT = np.dtype([("tick", "i8"), ("move", "i4"), ("move_s", "f8"), ("damage", "f8")], align=True)


@inner
def _boss_between(f, before, after, share):
    first, last = before.boss_pose, after.boss_pose
    f.bx = first[0] + share * (last[0] - first[0])
    f.by = first[1] + share * (last[1] - first[1])
    set_boss_heading(f, wrap(first[3] + share * wrap(last[3] - first[3])))


@inner
def _player_between(f, before, after, share):
    first, last = before.player_pose, after.player_pose
    f.px = first[0] + share * (last[0] - first[0])
    f.py = first[1] + share * (last[1] - first[1])
    set_heading(f, wrap(first[3] + share * wrap(last[3] - first[3])))


@inner
def _strike(f, c, T, blow, after):
    if blow.move == FLINCH_ROLE:
        if f.pmove == ROLL_MOVE:
            start_flinch(f, after.player_animation)
    elif blow.move == GUARDED_BLOW:
        f.sp = max(c.sp_floor, f.sp - blow.sp)
    elif blow.move >= 0:
        start_reaction(f, c, T.player_moves, blow.move, after.player_pose[3])
        if T.player_moves[blow.move].kind == GRABBED:
            f.lock = 0


@inner
def _view(record):
    return heading_to(record.camera_pose[3], record.camera_pose[4])


@inner
def _player_step(f, g, c, T, before, after, control, blow):
    key, button = accepted(f, c, T, control)
    view = _view(before)
    cam = wrap(view + c.cam_press * wrap(_view(after) - view))
    _boss_between(f, before, after, 0.0)
    if f.pmove != FALL_MOVE and button == NONE:
        hold(f, c, T.player_moves, T.curves, key)
    for tick in range(TICKS_PER_STEP):
        if blow.tick == tick:
            _strike(f, c, T, blow, after)
        player_tick(f, g, c, T, key, button, cam, int(c.delay_ticks), tick)
        _boss_between(f, before, after, (tick + 1.0) / TICKS_PER_STEP)
        if f.pmove != FALL_MOVE:
            separate(f, c, T, 0.0, 0.0)
            keep_inside(f, c, T)
            if f.pmove == FALL_MOVE:
                # A fight looks at the edge once a step, so every fall begins with the end of one.
                break
    if blow.tick == TICKS_PER_STEP:
        _strike(f, c, T, blow, after)
    if button != NONE or blow.tick >= 0:
        _align_begin(f, c, after)


@inner
def _align_begin(f, c, record):
    """What a press or a blow began in this step began when the recorded label says.

    A press acts a frame earlier or later, and that decides at which step a roll lets the player walk again.
    """
    shown_s = record.player_animation_duration[0]
    latest_s = c.label_step_s + 0.5 * c.tick_s
    if f.plabel == record.player_animation and f.plabel_t < latest_s and shown_s < latest_s:
        if f.pmove != NO_MOVE and abs(f.pt - f.plabel_t) < 1e-3:
            f.pt = shown_s
        f.plabel_t = shown_s


@inner
def _adopt_label(f, c, T, roles, label, shown_s):
    """Do what the recorded label says where the simulator does something else."""
    role = roles[label + 1]
    if role == FLINCH_ROLE:
        if f.pmove != ROLL_MOVE:
            f.pmove, f.pt = ROLL_MOVE, shown_s
            roll_profiles(f, c, f.phi)
        if f.flinch_t < 0.0:
            f.flinch_t = shown_s
    elif role == ROLL_MOVE:
        if f.pmove != ROLL_MOVE:
            roll_profiles(f, c, f.phi)
            f.pmove, f.pt, f.plabel_t, f.paid = ROLL_MOVE, shown_s, shown_s, 1
        f.flinch_t = -1.0
        f.last_roll = label
    elif role >= 0:
        start_move(f, T.player_moves, role)
        f.paid = 0
        while f.paid < T.player_moves[role].payments and shown_s >= T.player_moves[role].sp_s[f.paid]:
            f.paid += 1
    else:
        f.pmove, f.flinch_t, f.car_s, f.walk_ticks, f.stop_t = role, -1.0, -1.0, 0, 0.0
    f.plabel = label


@inner
def _adopt(f, c, T, roles, record):
    """Continue from the recorded observation; what it does not show stays as the simulator has it."""
    label, shown_s = record.player_animation, record.player_animation_duration[0]
    if label != f.plabel:
        _adopt_label(f, c, T, roles, label, shown_s)
    if shown_s < MAX_DURATION_S:
        if f.pmove >= 0 or (f.pmove == ROLL_MOVE and abs(f.pt - f.plabel_t) < 1e-3):
            f.pt = shown_s
        f.plabel_t = shown_s
    f.px, f.py, f.pz = record.player_pose[0], record.player_pose[1], record.player_pose[2]
    set_heading(f, wrap(record.player_pose[3]))
    if math.floor(f.sp) != record.player_sp[0]:
        f.sp = record.player_sp[0] + 0.5
    f.hp = record.player_hp[0]
    f.lock = record.lock_on


@inner
def _note_player(row, f, c, T):
    row.x, row.y, row.heading, row.sp = f.px, f.py, f.pa, math.floor(f.sp)
    row.label, row.label_s = f.plabel, f.plabel_t
    for kind in range(3):
        row.open[kind] = f.pmove != FALL_MOVE and allowed(f, T.timings, kind)


@inner
def replay_player(fights, controls, blows, roles, boss_moves, template, state, states, g, T, predictions):
    """Follow one episode: predictions[i, h] is the player h steps after the recorded moment i, for h from 1 on.

    There are as many moments as `predictions` has rows. `states[i]` becomes the simulator's record of the player at
    moment i.
    """
    c = T.const
    state[0] = template[0]
    horizon = predictions.shape[1] - 1
    for i in range(len(predictions)):
        follower = state[0]
        _adopt(follower, c, T, roles, fights[i])
        states[i] = state[0]
        for h in range(1, min(horizon, len(fights) - 1 - i) + 1):
            before, after = fights[i + h - 1], fights[i + h]
            follower.bmove, follower.bt = boss_moves[before.boss_animation + 1], before.boss_animation_duration[0]
            _player_step(follower, g[0], c, T, before, after, controls[i + h], blows[i + h])
            _note_player(predictions[i, h], follower, c, T)
            if h == 1:
                state[1] = state[0]
        state[0] = state[1]


@inner
def _player_at(f, before, after, tick, c, T):
    """The player's state at the end of a tick between two observations that the follower has seen."""
    left_s = (TICKS_PER_STEP - 1 - tick) * c.tick_s
    # A reaction that has just begun does not yet protect from the blow that caused it.
    since_s = after.pt - left_s
    reacts = after.pmove >= 0 and T.player_moves[after.pmove].kind == REACTION and after.pmove != before.pmove
    if since_s >= (JUST_HIT_S if reacts else 0.0):
        f.pmove, f.pt = after.pmove, after.pt - left_s
    else:
        f.pmove, f.pt = before.pmove, before.pt + (tick + 1) * c.tick_s
    f.hp, f.sp = before.hp, before.sp


@inner
def _begin(f, c, T, before, after, last_x, last_y, row, share):
    _boss_between(f, before, after, share)
    start_boss_move(f, c, T, row.move)
    f.bt = row.offset_s
    f.bcar_x, f.bcar_y = last_x, last_y


@inner
def _blows(f, g, c, T, r, dx, dy, tick, hits, count):
    """Let the boss hit, note it, and leave the boss as it was: what follows is up to the recording."""
    move, move_s, cum_f, cum_r = f.bmove, f.bt, f.cum_f, f.cum_r
    g.hit_by, g.damage_taken = -1, 0.0
    if f.pmove >= 0 and T.player_moves[f.pmove].kind == GRABBED:
        held_tick(f, g, c, T)
    else:
        boss_blows(f, g, c, T, r, dx, dy)
    if f.bmove != move:
        f.bmove, f.bt, f.cum_f, f.cum_r, f.hit_bits = move, move_s, cum_f, cum_r, -1
    if g.hit_by >= 0 and count < len(hits):
        row = hits[count]
        row.tick, row.move, row.move_s, row.damage = tick, move, move_s, g.damage_taken
        return count + 1
    return count


@inner
def replay_boss(fights, states, script, template, state, g, T, strikes, steps, hits):
    """Follow the boss of one episode through a script of moves, with the player where he was recorded.

    Fills `steps` with what the simulated boss does in every step, and with `strikes` `hits` with the blows that land.
    Returns the number of hits.
    """
    c = T.const
    state[0] = template[0]
    f = state[0]
    _boss_between(f, fights[0], fights[0], 0.0)
    entry, count = 0, 0
    for i in range(1, len(fights)):
        before, after = fights[i - 1], fights[i]
        last_x, last_y = 0.0, 0.0
        if i > 1:
            last_x = (before.boss_pose[0] - fights[i - 2].boss_pose[0]) / TICKS_PER_STEP
            last_y = (before.boss_pose[1] - fights[i - 2].boss_pose[1]) / TICKS_PER_STEP
        frame, turned, moved_x, moved_y = boss_heading(f), 0.0, 0.0, 0.0
        for tick in range(TICKS_PER_STEP):
            now = (i - 1) * TICKS_PER_STEP + tick
            if entry < len(script) and script[entry].tick <= now:
                _begin(f, c, T, before, after, last_x, last_y, script[entry], tick / TICKS_PER_STEP)
                entry += 1
                frame = wrap(boss_heading(f) - turned)
            x, y, angle = f.bx, f.by, boss_heading(f)
            _player_between(f, before, after, (tick + 1.0) / TICKS_PER_STEP)
            f.vx, f.vy = 0.0, 0.0
            _player_at(f, states[i - 1], states[i], tick, c, T)
            dx, dy = f.px - f.bx, f.py - f.by
            boss_x, boss_y = body_tick(f, c, T, math.sqrt(dx * dx + dy * dy), dx, dy)
            separate(f, c, T, boss_x, boss_y)
            keep_inside(f, c, T)
            moved_x += f.bx - x
            moved_y += f.by - y
            turned += wrap(boss_heading(f) - angle)
            if strikes:
                dx, dy = f.px - f.bx, f.py - f.by
                count = _blows(f, g[0], c, T, math.sqrt(dx * dx + dy * dy), dx, dy, now, hits, count)
        row = steps[i]
        row.forward = -sine(frame) * moved_x - cosine(frame) * moved_y
        row.right = -cosine(frame) * moved_x + sine(frame) * moved_y
        row.yaw, row.move, row.move_s = turned, f.bmove, f.bt
    return count


@inner
def label_duration(template, state, T, move, link, links, away_m, longest_s):
    """How long the boss shows a move's label when the player stays `away_m` in front of him; `links` may follow."""
    c = T.const
    state[0] = template[0]
    f = state[0]
    f.goal, f.act, f.first, f.changes = ATTACKING, NO_ACT, 0, 0
    start_boss_move(f, c, T, move)
    f.link, f.links = link, links
    label, shown_s = f.blabel, 0.0
    while shown_s < longest_s:
        f.px, f.py = f.bx - f.bsin * away_m, f.by - f.bcos * away_m
        mind_tick(f, c, T, away_m)
        if f.blabel != label or f.blabel_t < shown_s:
            return shown_s
        body_tick(f, c, T, away_m, f.px - f.bx, f.py - f.by)
        shown_s = f.blabel_t
    return longest_s
