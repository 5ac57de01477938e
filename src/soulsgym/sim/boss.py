"""One tick of the boss: what it wants, what it does, where it goes."""

from __future__ import annotations

from soulsgym.compiling import inner
from soulsgym.sim.geometry import arctan2, cosine, nearest_edge, sine, turned
from soulsgym.sim.player import knocked_down
from soulsgym.sim.random import draw, draw_between, mixed, unit
from soulsgym.sim.tables import MAX_ACTS, MAX_TIMERS, TURN_ACT
from soulsgym.spec.boss import MOVE_KINDS

ATTACK, HOP, IDLE, WALK, RETREAT, STRAFE, TURN, TRANSFORM, OPEN, PARRIED, EXECUTED = range(len(MOVE_KINDS))

# What the boss is after. NEW decides at the next chance.
NEW, ATTACKING, APPROACH, BACKING, STRAFING, TURNING, CHANGING = range(7)
NO_ACT = -1
"""An approach that ends in a new decision instead of an attack."""
ONLY_BACK = -1
"""Backing off that is not followed by going sideways."""


@inner
def set_boss_heading(f, angle):
    """Turn the boss to a heading."""
    f.bsin = sine(angle)
    f.bcos = cosine(angle)


@inner
def boss_heading(f):
    """The boss's heading as an angle; the fight itself keeps only its sine and cosine."""
    return arctan2(f.bsin, f.bcos)


@inner
def bearing_of_player(f):
    """The player's direction from the boss's heading, positive to the right."""
    dx, dy = f.px - f.bx, f.py - f.by
    return arctan2(f.bsin * dy - f.bcos * dx, -(f.bsin * dx + f.bcos * dy))


@inner
def start_boss_move(f, c, T, move):
    """Begin a move now."""
    row = T.boss_moves[move]
    f.bmove = move
    f.bt = 0.0
    f.cum_f = 0.0
    f.cum_r = 0.0
    f.linked = 0
    f.decided = 0
    f.hit_bits = 0
    f.dodge_bits = 0
    f.thrown = 0
    f.interrupted = 0
    f.stretch = -1
    f.scale = 1.0
    f.shift = 0.0
    if f.shift_s > 0.0:
        f.shift = f.shift_s * (2.0 * unit(mixed(f.key, (move + 1) << 40)) - 1.0)
    if row.label != f.blabel or row.kind in (ATTACK, HOP):
        f.blabel = row.label
        f.blabel_t = 0.0


@inner
def _decide(f, c, T, r):
    """Choose the next act by the first rule that fits; sets goal, act and how long it may take."""
    phase = T.phases[f.phase - 1]
    if f.changes == 1 and phase.change_move >= 0 and f.boss_hp <= phase.change_share * c.boss_hp:
        f.goal = CHANGING
        return
    if f.first == 1:
        f.first = 0
        _approach_nobody(f, phase)
        return
    bearing = bearing_of_player(f)
    gap = r - c.boss_radius_m
    chosen = -1
    for i in range(phase.rule, phase.rule + phase.rules):
        rule = T.rules[i]
        if (
            rule.gap_lo <= gap < rule.gap_hi
            and rule.bearing_lo <= bearing <= rule.bearing_hi
            and abs(bearing) >= rule.beyond
            and (rule.timer < 0 or f.timer_s[rule.timer] <= f.clock_s)
        ):
            chosen = i
            if rule.timer >= 0:
                f.timer_s[rule.timer] = f.clock_s + rule.every_s
            break
    if chosen < 0:
        f.goal = TURNING
        return
    down = phase.down_weight if knocked_down(f, T.player_moves) else 0.0
    act = _draw_act(f, c, T, T.rules[chosen].weights, phase.act, down)
    if act == NO_ACT:
        _approach_nobody(f, phase)
    elif act == TURN_ACT:
        f.goal = TURNING
    else:
        _take_act(f, T, phase.act + act, act, r)


@inner
def _approach_nobody(f, phase):
    """Walk up to the player, to decide there."""
    f.goal, f.act, f.running = APPROACH, NO_ACT, 0
    f.goal_t = draw_between(f, phase.first_lo_s, phase.first_hi_s)


@inner
def _weight(f, c, T, weights, first_act, a):
    """The weight of an act now: 1 while it cools down, 0 where a hop has no room."""
    weight = weights[a]
    if weight <= 0.0:
        return 0.0
    if a != TURN_ACT and T.acts[first_act + a].has_room == 1:
        row = T.acts[first_act + a]
        x = f.bx - f.bsin * row.room_f - f.bcos * row.room_r
        y = f.by - f.bcos * row.room_f + f.bsin * row.room_r
        if nearest_edge(T, x, y)[1] < c.boss_radius_m:
            return 0.0
    return 1.0 if f.ready_s[a] > f.clock_s else weight


@inner
def _draw_act(f, c, T, weights, first_act, down):
    """An act of the phase, drawn by weight; NO_ACT for the weight `down`. Without any weight it is turning."""
    total = down
    for a in range(MAX_ACTS):
        total += _weight(f, c, T, weights, first_act, a)
    left = draw(f) * total - down
    if left < 0.0:
        return NO_ACT
    act = TURN_ACT
    for a in range(MAX_ACTS):
        weight = _weight(f, c, T, weights, first_act, a)
        if weight > 0.0:
            act = a
            if left < weight:
                break
            left -= weight
    return act


@inner
def _take_act(f, T, row, act, r):
    f.act = row
    f.running = 0
    if r >= T.acts[row].run_from_m and (r >= T.acts[row].run_always_m or draw(f) < T.acts[row].run_chance):
        f.running = 1
    f.ready_s[act] = f.clock_s + T.acts[row].cooldown_s
    f.goal = APPROACH
    f.goal_t = T.acts[row].approach_s
    total = 0.0
    first, count = T.acts[row].chain, T.acts[row].chains
    for i in range(first, first + count):
        total += T.chains[i].weight
    left = draw(f) * total
    chain = first
    for i in range(first, first + count):
        chain = i
        if left < T.chains[i].weight:
            break
        left -= T.chains[i].weight
    f.link, f.links = T.chains[chain].link, T.chains[chain].links


@inner
def _change_is_due(f, c, phase):
    return f.changes == 1 and f.boss_hp <= phase.change_share * c.boss_hp


@inner
def _after_attack(f, c, T, r):
    """Back off, go sideways, or decide at once what comes next."""
    phase = T.phases[f.phase - 1]
    odds = T.acts[f.act].after_odds if f.act >= 0 else 0.0
    gap = r - c.boss_radius_m
    seen = abs(bearing_of_player(f)) <= phase.front and gap <= phase.within_gap_m
    if odds <= 0.0 or not seen or draw(f) >= odds or _change_is_due(f, c, phase):
        _decide(f, c, T, r)
        return
    for i in range(phase.retreat, phase.retreat + phase.retreats):
        retreat = T.retreats[i]
        if retreat.gap_lo <= gap < retreat.gap_hi and draw(f) < retreat.chance:
            f.goal, f.pending = BACKING, ONLY_BACK
            f.goal_t = draw_between(f, retreat.lo_s, retreat.hi_s)
            return
    if phase.back_off_s > 0.0:
        f.goal, f.pending, f.goal_t = BACKING, 0, phase.back_off_s
    else:
        _go_sideways(f, c, phase, gap)


@inner
def _go_sideways(f, c, phase, gap):
    f.goal = STRAFING
    if gap < phase.near_gap_m:
        f.goal_t = draw_between(f, phase.near_lo_s, phase.near_hi_s)
        # Away from the side the player is on, so that he comes round to the front.
        f.pending = c.b_left if bearing_of_player(f) > 0.0 else c.b_right
    else:
        f.goal_t = draw_between(f, phase.far_lo_s, phase.far_hi_s)
        f.pending = c.b_left if draw(f) < 0.5 else c.b_right


@inner
def _within_approach(f, T, r):
    if f.act < 0:
        return False
    return r <= (T.acts[f.act].run_approach_m if f.running == 1 else T.acts[f.act].approach_m)


@inner
def _begin_goal(f, c, T, r):
    """Start the move that serves the goal, turning on the spot first where the game does."""
    if f.goal == CHANGING:
        start_boss_move(f, c, T, T.phases[f.phase - 1].change_move)
        return
    if f.goal == APPROACH and _within_approach(f, T, r):
        f.goal = ATTACKING
        start_boss_move(f, c, T, T.acts[f.act].move)
        return
    if f.goal == BACKING:
        start_boss_move(f, c, T, c.b_back)
        return
    bearing = bearing_of_player(f)
    away = abs(bearing)
    if f.goal == TURNING or away > c.turn_beyond:
        if away > c.around_beyond:
            start_boss_move(f, c, T, c.b_around_r if bearing > 0.0 else c.b_around_l)
        else:
            start_boss_move(f, c, T, c.b_turn_r if bearing > 0.0 else c.b_turn_l)
        return
    move = f.pending
    if f.goal == APPROACH:
        move = c.b_run if f.running == 1 else c.b_walk
    # Who walks already goes on, unless he would come to the end of the walk's curve on the way.
    if f.bmove != move or f.bt + f.goal_t >= T.boss_moves[move].end_s:
        start_boss_move(f, c, T, move)


@inner
def _carry_on(f, c, T, r):
    """A free boss: decide and begin."""
    _decide(f, c, T, r)
    _begin_goal(f, c, T, r)


@inner
def _lead(f, c, T, r):
    """Recovering from an attack: the next one is already chosen, and shown, before this one is over."""
    f.decided = 1
    # The chain that is chosen now begins with the next attack: this one links to nothing any more.
    f.linked = 1
    _after_attack(f, c, T, r)
    if f.goal == APPROACH and _within_approach(f, T, r):
        f.goal = ATTACKING
        f.blabel = T.boss_moves[T.acts[f.act].move].label
    else:
        f.blabel = c.id_boss_idle
    f.blabel_t = 0.0


@inner
def _end_attack(f, c, T, r):
    if f.goal == ATTACKING:
        label_t = f.blabel_t
        start_boss_move(f, c, T, T.acts[f.act].move)
        f.blabel_t = label_t
    else:
        _begin_goal(f, c, T, r)


@inner
def _start_link(f, c, T, move):
    f.link += 1
    f.links -= 1
    start_boss_move(f, c, T, move)


@inner
def _end_hop(f, c, T, r):
    """Follow the hop with one of the acts it leads to, or decide anew."""
    act = NO_ACT
    first_act = T.phases[f.phase - 1].act
    if f.act >= 0 and T.acts[f.act].has_then == 1 and abs(bearing_of_player(f)) <= T.acts[f.act].then_within:
        act = _draw_act(f, c, T, T.acts[f.act].then, first_act, 0.0)
    if act in (NO_ACT, TURN_ACT):
        _carry_on(f, c, T, r)
    else:
        _take_act(f, T, first_act + act, act, r)
        _begin_goal(f, c, T, r)


@inner
def _interrupt(f, c, T, r):
    """Drop the move for an act if it has come to a moment of choice and the player is where that asks for."""
    phase = T.phases[f.phase - 1]
    for k in range(phase.interrupts):
        row = T.interrupts[phase.interrupt + k]
        bit = 1 << k
        if row.move != f.bmove or f.bt < row.at_s or f.interrupted & bit:
            continue
        f.interrupted |= bit
        gap, bearing = r - c.boss_radius_m, bearing_of_player(f)
        if row.gap_lo <= gap < row.gap_hi and row.bearing_lo <= bearing <= row.bearing_hi:
            _take_act(f, T, row.act, row.act - phase.act, r)
            f.goal = ATTACKING
            start_boss_move(f, c, T, T.acts[row.act].move)
            return True
    return False


@inner
def mind_tick(f, c, T, r):
    """What follows from the time in the current move."""
    row = T.boss_moves[f.bmove]
    kind = row.kind
    if kind in (ATTACK, HOP):
        if _interrupt(f, c, T, r):
            return
        # A late blow holds up what follows, which would otherwise begin before it has landed.
        link_s = min(row.link_s + max(f.shift, 0.0), row.label_end_s)
        if f.linked == 0 and f.links > 0 and row.link_s >= 0.0 and f.bt >= link_s:
            f.linked = 1
            link = T.links[f.link]
            bearing = bearing_of_player(f)
            if r < link.within_m and link.bearing_lo <= bearing <= link.bearing_hi:
                _start_link(f, c, T, link.move)
                return
            f.links = 0
        if kind == ATTACK and f.decided == 0 and f.bt >= row.label_end_s:
            f.links = 0
            _lead(f, c, T, r)
        if f.bt >= row.end_s:
            if kind == HOP:
                _end_hop(f, c, T, r)
            else:
                _end_attack(f, c, T, r)
    elif kind == WALK:
        f.goal_t -= c.tick_s
        if f.act >= 0:
            if f.goal_t <= 0.0 or _within_approach(f, T, r):
                f.goal = ATTACKING
                start_boss_move(f, c, T, T.acts[f.act].move)
        else:
            phase = T.phases[f.phase - 1]
            if f.goal_t <= 0.0 or r <= phase.first_m:
                _carry_on(f, c, T, r)
    elif kind == RETREAT:
        f.goal_t -= c.tick_s
        phase = T.phases[f.phase - 1]
        backed = f.pending != ONLY_BACK and -f.cum_f >= phase.back_off_m
        if f.goal_t <= 0.0 or backed:
            if f.pending == ONLY_BACK or _change_is_due(f, c, phase):
                _carry_on(f, c, T, r)
            else:
                _go_sideways(f, c, phase, r - c.boss_radius_m)
                _begin_goal(f, c, T, r)
    elif kind == STRAFE:
        f.goal_t -= c.tick_s
        if f.goal_t <= 0.0:
            _carry_on(f, c, T, r)
    elif kind == TURN:
        if f.bt >= row.end_s:
            if f.goal == TURNING:
                _carry_on(f, c, T, r)
            else:
                _begin_goal(f, c, T, r)
    elif kind == IDLE:
        _carry_on(f, c, T, r)
    elif f.bt >= row.end_s:
        if kind == TRANSFORM:
            f.phase += 1
            f.first = 1
            for a in range(MAX_ACTS):
                f.ready_s[a] = 0.0
            for k in range(MAX_TIMERS):
                f.timer_s[k] = 0.0
        f.act = NO_ACT
        _carry_on(f, c, T, r)


@inner
def _stretched(f, T, row, forward, r):
    """The forward motion of a tick, scaled to the distance that the player had when the stretch began."""
    for i in range(row.stretches):
        part = T.stretches[row.stretch + i]
        if part.from_s <= f.bt < part.to_s:
            if f.stretch != i:
                f.stretch = i
                f.scale = min(max(r - part.arrive_m, part.least_m), part.most_m) / part.reference_m
            return forward * f.scale
    return forward


@inner
def body_tick(f, c, T, r, dx, dy):
    """Move and turn for one tick; (dx, dy) leads from the boss to the player, r is its length."""
    row = T.boss_moves[f.bmove]
    dt = c.tick_s * f.boss_clock
    f.bt += dt
    f.blabel_t += c.tick_s
    f.clock_s += c.tick_s
    tick = min(f.bt * c.ticks_per_label_s, row.rows - 2.0)
    whole = int(tick)
    share = tick - whole
    base = row.curve + whole
    curves = T.boss_curves
    cum_f = curves[base, 0] + share * (curves[base + 1, 0] - curves[base, 0])
    cum_r = curves[base, 1] + share * (curves[base + 1, 1] - curves[base, 1])
    forward, right = cum_f - f.cum_f, cum_r - f.cum_r
    f.cum_f, f.cum_r = cum_f, cum_r
    if row.stretches > 0:
        forward = _stretched(f, T, row, forward, r)
    last = max(row.curve, base - 1) if share < 0.5 else base
    chase, turn = curves[last, 2], curves[last, 3]
    if turn > 0.0:
        f.bsin, f.bcos = turned(f.bsin, f.bcos, dx, dy, r, turn * f.boss_clock)
    if chase > 0.0:
        # Only as far as the player is ahead: a leap past him must not be drawn on by the growing distance.
        forward += chase * max(0.0, -f.bsin * dx - f.bcos * dy)
    if row.kind == WALK or row.kind == STRAFE or row.kind == RETREAT:
        forward *= f.speed_k
        right *= f.speed_k
    move_x = -f.bsin * forward - f.bcos * right
    move_y = -f.bcos * forward + f.bsin * right
    if f.bt < row.blend_s:
        fade = 1.0 - f.bt / row.blend_s
        move_x += f.bcar_x * fade
        move_y += f.bcar_y * fade
    else:
        f.bcar_x, f.bcar_y = move_x, move_y
    f.bx += move_x
    f.by += move_y
    return move_x, move_y
