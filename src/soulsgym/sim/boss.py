"""One tick of the boss: what it wants, what it does, where it goes."""

from __future__ import annotations

from soulsgym.compiling import inner
from soulsgym.sim.geometry import arctan2, cosine, nearest_edge, sine, turn_towards
from soulsgym.sim.hidden import Hidden
from soulsgym.sim.player import is_knocked_down
from soulsgym.sim.random import draw, draw_between, mix, unit
from soulsgym.sim.records import Floats
from soulsgym.sim.tables import (
    MAX_ACTS,
    MAX_TIMERS,
    TURN_ACT,
    BossMoveRow,
    Constants,
    InterruptRow,
    PhaseRow,
    RuleRow,
    Tables,
)
from soulsgym.spec.boss import MOVE_KINDS

ATTACK, HOP, IDLE, WALK, RETREAT, STRAFE, TURN, TRANSFORM, OPEN, PARRIED, EXECUTED = range(len(MOVE_KINDS))

# What the boss is after. NEW decides at the next chance.
NEW, ATTACKING, APPROACH, BACKING, STRAFING, TURNING, CHANGING = range(7)
MAX_DECISIONS = 4
"""How often he decides again in a tick because what he chose was over at once."""
NO_ACT = -1
"""An approach that ends in a new decision instead of an attack."""
NO_STRAFE = -1
"""Backing off that is not followed by going sideways."""


@inner
def set_boss_heading(hidden: Hidden, angle: float) -> None:
    """Turn the boss to a heading."""
    hidden.boss_sin = sine(angle)
    hidden.boss_cos = cosine(angle)


@inner
def boss_heading(hidden: Hidden) -> float:
    """The boss's heading as an angle; the fight itself keeps only its sine and cosine."""
    return arctan2(hidden.boss_sin, hidden.boss_cos)


@inner
def bearing_of_player(hidden: Hidden) -> float:
    """The player's direction from the boss's heading, positive to the right."""
    dx, dy = hidden.player_x - hidden.boss_x, hidden.player_y - hidden.boss_y
    return arctan2(hidden.boss_sin * dy - hidden.boss_cos * dx, -(hidden.boss_sin * dx + hidden.boss_cos * dy))


@inner
def less_random(factor: float, scale: float) -> float:
    """A factor that a fight drew, with a share `scale` of its distance from 1; all of it is left as it is."""
    return factor * scale + (1.0 - scale)


@inner
def start_boss_move(hidden: Hidden, tables: Tables, move: int) -> None:
    """Begin a move now."""
    row = tables.boss_moves[move]
    hidden.boss_move = move
    hidden.boss_move_s = 0.0
    hidden.boss_forward_m = 0.0
    hidden.boss_right_m = 0.0
    hidden.link_checked = 0
    hidden.decided = 0
    hidden.hits_landed = 0
    hidden.hits_dodged = 0
    hidden.throws_dealt = 0
    hidden.interrupts_checked = 0
    hidden.stretch = -1
    hidden.stretch_scale = 1.0
    hidden.hit_shift_s = 0.0
    hidden.count = 0.0 if row.kind == STRAFE else hidden.count + row.count
    if hidden.max_hit_shift_s > 0.0:
        most_s = hidden.max_hit_shift_s * row.shift_scale
        hidden.hit_shift_s = most_s * (2.0 * unit(mix(hidden.key, (move + 1) << 40)) - 1.0)
    if row.animation != hidden.boss_animation or row.kind in (ATTACK, HOP):
        hidden.boss_animation = row.animation
        hidden.boss_animation_s = 0.0


@inner
def _decide(hidden: Hidden, tables: Tables, distance: float) -> None:
    """Choose the next act by the first rule that fits; sets goal, act and how long it may take."""
    constants = tables.constants
    phase = tables.phases[hidden.phase - 1]
    if (
        hidden.changes_phase == 1
        and phase.change_move >= 0
        and hidden.boss_hp <= phase.change_hp_share * constants.boss_max_hp
    ):
        hidden.goal = CHANGING
        return
    if hidden.is_first_approach == 1:
        hidden.is_first_approach = 0
        _approach(hidden, phase)
        return
    for _ in range(MAX_DECISIONS):
        chosen = _fitting_rule(hidden, tables, phase, distance - constants.boss_radius_m)
        if chosen < 0:
            hidden.goal = TURNING
            return
        down = phase.down_weight if is_knocked_down(hidden, tables) else 0.0
        act = _draw_act(hidden, tables, tables.rules[chosen].weights, phase.first_act, down)
        if act == NO_ACT:
            _approach(hidden, phase)
            return
        if act == TURN_ACT:
            hidden.goal = TURNING
            return
        _take_act(hidden, tables, phase.first_act + act, act, distance)
        # Circling that would be over at once counts as done, and he decides again.
        if hidden.goal != STRAFING or distance > hidden.goal_until_m:
            return
        hidden.count = 0.0


@inner
def _fitting_rule(hidden: Hidden, tables: Tables, phase: PhaseRow, gap: float) -> int:
    """The first rule that fits, or -1; one that waits for a time begins to wait again."""
    bearing = bearing_of_player(hidden)
    for i in range(phase.first_rule, phase.first_rule + phase.rules):
        rule = tables.rules[i]
        if (
            rule.gap_lo <= gap < rule.gap_hi
            and rule.bearing_lo <= bearing <= rule.bearing_hi
            and abs(bearing) >= rule.beyond_rad
            and (rule.timer < 0 or hidden.rule_ready_s[rule.timer] <= hidden.clock_s)
            and hidden.count > rule.count_over
            and (rule.ready < 0 or hidden.act_ready_s[rule.ready] <= hidden.clock_s)
            and _follows(hidden, rule)
        ):
            if rule.timer >= 0:
                hidden.rule_ready_s[rule.timer] = hidden.clock_s + rule.every_s
            return i
    return -1


@inner
def _follows(hidden: Hidden, rule: RuleRow) -> bool:
    """Is the boss's move one that the rule may follow?"""
    follows = rule.after == 0
    for k in range(rule.after):
        follows = follows or rule.after_moves[k] == hidden.boss_move
    return follows


@inner
def _approach(hidden: Hidden, phase: PhaseRow) -> None:
    """Walk up to the player, to decide there."""
    hidden.goal, hidden.act, hidden.running, hidden.goal_until_m = APPROACH, NO_ACT, 0, phase.first_approach_m
    hidden.goal_left_s = draw_between(hidden, phase.first_approach_lo_s, phase.first_approach_hi_s)


@inner
def _weight(hidden: Hidden, tables: Tables, weights: Floats, first_act: int, a: int) -> float:
    """The weight of an act now: less while it cools down, 0 where a hop has no room."""
    weight: float = weights[a]
    if weight <= 0.0:
        return 0.0
    if a != TURN_ACT and tables.acts[first_act + a].has_room == 1:
        row = tables.acts[first_act + a]
        x = hidden.boss_x - hidden.boss_sin * row.room_forward_m - hidden.boss_cos * row.room_right_m
        y = hidden.boss_y - hidden.boss_cos * row.room_forward_m + hidden.boss_sin * row.room_right_m
        if nearest_edge(tables, x, y)[1] < tables.constants.boss_radius_m:
            return 0.0
    if a != TURN_ACT and hidden.act_ready_s[a] > hidden.clock_s:
        return min(weight, tables.acts[first_act + a].cooling_weight)
    return weight


@inner
def _draw_act(hidden: Hidden, tables: Tables, weights: Floats, first_act: int, down: float) -> int:
    """An act of the phase, drawn by weight; NO_ACT for the weight `down`. Without any weight it is turning."""
    total = down
    for a in range(MAX_ACTS):
        total += _weight(hidden, tables, weights, first_act, a)
    left = draw(hidden) * total - down
    if left < 0.0:
        return NO_ACT
    act = TURN_ACT
    for a in range(MAX_ACTS):
        weight = _weight(hidden, tables, weights, first_act, a)
        if weight > 0.0:
            act = a
            if left < weight:
                break
            left -= weight
    return act


@inner
def _take_act(hidden: Hidden, tables: Tables, row: int, act: int, distance: float) -> None:
    taken = tables.acts[row]
    hidden.act = row
    hidden.running = 0
    if distance >= taken.run_from_m and (distance >= taken.run_always_m or draw(hidden) < taken.run_chance):
        hidden.running = 1
    hidden.act_ready_s[act] = hidden.clock_s + taken.cooldown_s
    kind = tables.boss_moves[taken.move].kind
    if kind in (WALK, STRAFE):
        hidden.goal_left_s = draw_between(hidden, taken.lasts_lo_s, taken.lasts_hi_s)
        hidden.goal_until_m = taken.until_m
        hidden.goal, hidden.act = (STRAFING if kind == STRAFE else APPROACH), NO_ACT
        hidden.strafe_move = taken.move
        return
    hidden.goal = APPROACH
    hidden.goal_left_s = taken.approach_s
    total = 0.0
    first, count = taken.first_chain, taken.chains
    for i in range(first, first + count):
        total += tables.chains[i].weight
    left = draw(hidden) * total
    chain = first
    for i in range(first, first + count):
        chain = i
        if left < tables.chains[i].weight:
            break
        left -= tables.chains[i].weight
    hidden.next_link, hidden.links_left = tables.chains[chain].first_link, tables.chains[chain].links


@inner
def _change_is_due(hidden: Hidden, constants: Constants, phase: PhaseRow) -> bool:
    return hidden.changes_phase == 1 and hidden.boss_hp <= phase.change_hp_share * constants.boss_max_hp


@inner
def _after_attack(hidden: Hidden, tables: Tables, distance: float) -> None:
    """Back off, go sideways, or decide at once what comes next."""
    constants = tables.constants
    phase = tables.phases[hidden.phase - 1]
    odds = tables.acts[hidden.act].after_odds if hidden.act >= 0 else 0.0
    gap = distance - constants.boss_radius_m
    seen = abs(bearing_of_player(hidden)) <= phase.front_rad and gap <= phase.within_gap_m
    if odds <= 0.0 or not seen or draw(hidden) >= odds or _change_is_due(hidden, constants, phase):
        _decide(hidden, tables, distance)
        return
    for i in range(phase.first_retreat, phase.first_retreat + phase.retreats):
        retreat = tables.retreats[i]
        if retreat.gap_lo <= gap < retreat.gap_hi and draw(hidden) < retreat.chance:
            hidden.goal, hidden.strafe_move = BACKING, NO_STRAFE
            hidden.goal_left_s = draw_between(hidden, retreat.lo_s, retreat.hi_s)
            return
    if phase.back_off_s > 0.0:
        hidden.goal, hidden.strafe_move, hidden.goal_left_s = BACKING, 0, phase.back_off_s
    else:
        _go_sideways(hidden, constants, phase, gap)


@inner
def _go_sideways(hidden: Hidden, constants: Constants, phase: PhaseRow, gap: float) -> None:
    hidden.goal, hidden.goal_until_m = STRAFING, 0.0
    if gap < phase.near_gap_m:
        hidden.goal_left_s = draw_between(hidden, phase.near_lo_s, phase.near_hi_s)
        # Away from the side the player is on, so that he comes round to the front.
        left = bearing_of_player(hidden) > 0.0
    else:
        hidden.goal_left_s = draw_between(hidden, phase.far_lo_s, phase.far_hi_s)
        left = draw(hidden) < 0.5
    hidden.strafe_move = constants.boss_strafe_left_move if left else constants.boss_strafe_right_move


@inner
def _within_approach(hidden: Hidden, tables: Tables, distance: float) -> bool:
    if hidden.act < 0:
        return False
    act = tables.acts[hidden.act]
    return distance <= (act.run_approach_m if hidden.running == 1 else act.approach_m)


@inner
def _begin_goal(hidden: Hidden, tables: Tables, distance: float) -> None:
    """Start the move that serves the goal, turning on the spot first where the game does."""
    constants = tables.constants
    if hidden.goal == CHANGING:
        start_boss_move(hidden, tables, tables.phases[hidden.phase - 1].change_move)
        return
    if hidden.goal == APPROACH and _within_approach(hidden, tables, distance):
        hidden.goal = ATTACKING
        start_boss_move(hidden, tables, tables.acts[hidden.act].move)
        return
    if hidden.goal == BACKING:
        start_boss_move(hidden, tables, constants.boss_back_move)
        return
    bearing = bearing_of_player(hidden)
    away = abs(bearing)
    if hidden.goal == TURNING or away > constants.turn_beyond_rad:
        left, right = constants.boss_turn_left_move, constants.boss_turn_right_move
        if away > constants.turn_around_beyond_rad:
            left, right = constants.boss_turn_left_around_move, constants.boss_turn_right_around_move
        start_boss_move(hidden, tables, right if bearing > 0.0 else left)
        return
    move = hidden.strafe_move
    if hidden.goal == APPROACH:
        move = constants.boss_run_move if hidden.running == 1 else constants.boss_walk_move
    # Who walks already goes on, unless he would come to the end of the walk's curve on the way.
    if hidden.boss_move != move or hidden.boss_move_s + hidden.goal_left_s >= tables.boss_moves[move].end_s:
        start_boss_move(hidden, tables, move)


@inner
def _decide_and_begin(hidden: Hidden, tables: Tables, distance: float) -> None:
    """A free boss: decide and begin."""
    _decide(hidden, tables, distance)
    _begin_goal(hidden, tables, distance)


@inner
def _decide_early(hidden: Hidden, tables: Tables, distance: float) -> None:
    """Recovering from an attack: the next one is already chosen, and shown, before this one is over."""
    constants = tables.constants
    hidden.decided = 1
    # The chain that is chosen now begins with the next attack: this one links to nothing any more.
    hidden.link_checked = 1
    _after_attack(hidden, tables, distance)
    if hidden.goal == APPROACH and _within_approach(hidden, tables, distance):
        hidden.goal = ATTACKING
        hidden.boss_animation = tables.boss_moves[tables.acts[hidden.act].move].animation
    else:
        hidden.boss_animation = constants.boss_idle_animation
    hidden.boss_animation_s = 0.0


@inner
def _hop_away(hidden: Hidden, tables: Tables, distance: float) -> bool:
    """Recovering from an attack: decide what comes next, and begin it if it is a hop; all else waits for the end."""
    hidden.decided = 1
    hidden.link_checked = 1
    hidden.links_left = 0
    _after_attack(hidden, tables, distance)
    if hidden.goal != APPROACH or hidden.act < 0:
        return False
    if tables.boss_moves[tables.acts[hidden.act].move].kind != HOP:
        return False
    _begin_goal(hidden, tables, distance)
    return True


@inner
def _end_attack(hidden: Hidden, tables: Tables, distance: float) -> None:
    if hidden.goal == ATTACKING:
        label_t = hidden.boss_animation_s
        start_boss_move(hidden, tables, tables.acts[hidden.act].move)
        hidden.boss_animation_s = label_t
    else:
        _begin_goal(hidden, tables, distance)


@inner
def _start_link(hidden: Hidden, tables: Tables, move: int) -> None:
    hidden.next_link += 1
    hidden.links_left -= 1
    start_boss_move(hidden, tables, move)


@inner
def _end_hop(hidden: Hidden, tables: Tables, distance: float) -> None:
    """Follow the hop with one of the acts it leads to, or decide again."""
    act = NO_ACT
    first_act = tables.phases[hidden.phase - 1].first_act
    if (
        hidden.act >= 0
        and tables.acts[hidden.act].has_then == 1
        and abs(bearing_of_player(hidden)) <= tables.acts[hidden.act].then_within_rad
    ):
        act = _draw_act(hidden, tables, tables.acts[hidden.act].then_weights, first_act, 0.0)
    if act in (NO_ACT, TURN_ACT):
        _decide_and_begin(hidden, tables, distance)
    else:
        _take_act(hidden, tables, first_act + act, act, distance)
        _begin_goal(hidden, tables, distance)


@inner
def _interrupt(hidden: Hidden, tables: Tables, distance: float) -> bool:
    """Drop the move for an act if it has come to a moment of choice and the player is where that asks for."""
    move = tables.boss_moves[hidden.boss_move]
    first, count = move.first_interrupt[hidden.phase - 1], move.interrupts[hidden.phase - 1]
    for k in range(count):
        row = tables.interrupts[first + k]
        bit = 1 << k
        if hidden.boss_move_s < row.at_s or hidden.interrupts_checked & bit:
            continue
        # One that lasts is looked at in every tick until it is over.
        if row.to_s < 0.0 or hidden.boss_move_s > row.to_s:
            hidden.interrupts_checked |= bit
        if not _takes_interrupt(hidden, tables, row, distance):
            continue
        hidden.links_left = 0
        hidden.goal = ATTACKING
        if row.act < 0:
            start_boss_move(hidden, tables, row.next_move)
        else:
            _take_act(hidden, tables, row.act, row.act - tables.phases[hidden.phase - 1].first_act, distance)
            hidden.goal = ATTACKING
            start_boss_move(hidden, tables, tables.acts[row.act].move)
        return True
    return False


@inner
def _takes_interrupt(hidden: Hidden, tables: Tables, row: InterruptRow, distance: float) -> bool:
    """Is the player where an interrupt asks for, and may it happen now?"""
    gap = distance - tables.constants.boss_radius_m
    if not row.gap_lo <= gap < row.gap_hi:
        return False
    if row.standing == 1 and is_knocked_down(hidden, tables):
        return False
    if row.cooled == 1:
        first_act = tables.phases[hidden.phase - 1].first_act
        if hidden.act_ready_s[row.act - first_act] > hidden.clock_s:
            return False
    bearing = bearing_of_player(hidden)
    if not row.bearing_lo <= bearing <= row.bearing_hi:
        return False
    return row.chance >= 1.0 or draw(hidden) < row.chance


@inner
def mind_tick(hidden: Hidden, tables: Tables, distance: float) -> None:
    """What follows from the time in the current move."""
    constants = tables.constants
    row = tables.boss_moves[hidden.boss_move]
    kind = row.kind
    if kind in (ATTACK, HOP):
        if _interrupt(hidden, tables, distance):
            return
        # A late blow holds up what follows, which would otherwise begin before it has landed.
        link_s = min(row.link_s + max(hidden.hit_shift_s, 0.0), row.label_end_s)
        if hidden.link_checked == 0 and hidden.links_left > 0 and row.link_s >= 0.0 and hidden.boss_move_s >= link_s:
            hidden.link_checked = 1
            link = tables.links[hidden.next_link]
            bearing = bearing_of_player(hidden)
            if distance < link.within_m and link.bearing_lo <= bearing <= link.bearing_hi:
                _start_link(hidden, tables, link.move)
                return
            hidden.links_left = 0
        is_free = kind == ATTACK and hidden.decided == 0 and hidden.boss_move_s >= row.hop_s
        if is_free and _hop_away(hidden, tables, distance):
            return
        if kind == ATTACK and hidden.decided == 0 and hidden.boss_move_s >= row.label_end_s:
            hidden.links_left = 0
            _decide_early(hidden, tables, distance)
        if hidden.boss_move_s >= row.end_s:
            if kind == HOP:
                _end_hop(hidden, tables, distance)
            else:
                _end_attack(hidden, tables, distance)
    elif kind == WALK:
        hidden.goal_left_s -= constants.tick_s
        if hidden.act >= 0:
            within = _within_approach(hidden, tables, distance)
            if not within and hidden.goal_left_s <= 0.0 and tables.acts[hidden.act].gives_up == 1:
                _decide_and_begin(hidden, tables, distance)
            elif within or hidden.goal_left_s <= 0.0:
                hidden.goal = ATTACKING
                start_boss_move(hidden, tables, tables.acts[hidden.act].move)
        elif hidden.goal_left_s <= 0.0 or distance <= hidden.goal_until_m:
            _decide_and_begin(hidden, tables, distance)
    elif kind == RETREAT:
        hidden.goal_left_s -= constants.tick_s
        phase = tables.phases[hidden.phase - 1]
        backed = hidden.strafe_move != NO_STRAFE and -hidden.boss_forward_m >= phase.back_off_m
        if hidden.goal_left_s <= 0.0 or backed:
            if hidden.strafe_move == NO_STRAFE or _change_is_due(hidden, constants, phase):
                _decide_and_begin(hidden, tables, distance)
            else:
                _go_sideways(hidden, constants, phase, distance - constants.boss_radius_m)
                _begin_goal(hidden, tables, distance)
    elif kind == STRAFE:
        hidden.goal_left_s -= constants.tick_s
        if hidden.goal_left_s <= 0.0 or distance <= hidden.goal_until_m:
            _decide_and_begin(hidden, tables, distance)
    elif kind == TURN:
        if hidden.boss_move_s >= row.end_s:
            if hidden.goal == TURNING:
                _decide_and_begin(hidden, tables, distance)
            else:
                _begin_goal(hidden, tables, distance)
    elif kind == IDLE:
        _decide_and_begin(hidden, tables, distance)
    elif hidden.boss_move_s >= row.end_s:
        if kind == TRANSFORM:
            hidden.phase += 1
            hidden.is_first_approach = 1
            hidden.count = 0.0
            for a in range(MAX_ACTS):
                hidden.act_ready_s[a] = 0.0
            for k in range(MAX_TIMERS):
                hidden.rule_ready_s[k] = 0.0
        hidden.act = NO_ACT
        _decide_and_begin(hidden, tables, distance)


@inner
def _scale_stretch(hidden: Hidden, tables: Tables, row: BossMoveRow, forward: float, distance: float) -> float:
    """The forward motion of a tick, scaled to the distance that the player had when the stretch began."""
    for i in range(row.stretches):
        part = tables.stretches[row.first_stretch + i]
        if part.from_s <= hidden.boss_move_s < part.to_s:
            if hidden.stretch != i:
                hidden.stretch = i
                hidden.stretch_scale = min(max(distance - part.arrive_m, part.least_m), part.most_m) / part.reference_m
            return forward * hidden.stretch_scale
    return forward


@inner
def body_tick(hidden: Hidden, tables: Tables, distance: float, dx: float, dy: float) -> tuple[float, float]:
    """Move and turn for one tick; (dx, dy) leads from the boss to the player, distance is its length."""
    constants = tables.constants
    row = tables.boss_moves[hidden.boss_move]
    time_factor = less_random(hidden.boss_time_factor, row.time_scale)
    dt = constants.tick_s * time_factor
    hidden.boss_move_s += dt
    hidden.boss_animation_s += constants.tick_s
    hidden.clock_s += constants.tick_s
    tick = min(hidden.boss_move_s * constants.ticks_per_label_s, row.rows - 2.0)
    whole = int(tick)
    share = tick - whole
    base = row.first_row + whole
    curves = tables.boss_curves
    forward_m = curves[base, 0] + share * (curves[base + 1, 0] - curves[base, 0])
    right_m = curves[base, 1] + share * (curves[base + 1, 1] - curves[base, 1])
    forward, right = forward_m - hidden.boss_forward_m, right_m - hidden.boss_right_m
    hidden.boss_forward_m, hidden.boss_right_m = forward_m, right_m
    if row.stretches > 0:
        forward = _scale_stretch(hidden, tables, row, forward, distance)
    last = max(row.first_row, base - 1) if share < 0.5 else base
    chase, turn = curves[last, 2], curves[last, 3]
    if turn > 0.0:
        hidden.boss_sin, hidden.boss_cos = turn_towards(
            hidden.boss_sin, hidden.boss_cos, dx, dy, distance, turn * time_factor
        )
    if chase > 0.0:
        # Only as far as the player is ahead: a leap past him must not be drawn on by the growing distance.
        forward += chase * max(0.0, -hidden.boss_sin * dx - hidden.boss_cos * dy)
    if row.kind == WALK or row.kind == STRAFE or row.kind == RETREAT:
        forward *= hidden.speed_factor
        right *= hidden.speed_factor
    move_x = -hidden.boss_sin * forward - hidden.boss_cos * right
    move_y = -hidden.boss_cos * forward + hidden.boss_sin * right
    if hidden.boss_move_s < row.blend_s:
        fade = 1.0 - hidden.boss_move_s / row.blend_s
        move_x += hidden.boss_carried_x * fade
        move_y += hidden.boss_carried_y * fade
    else:
        hidden.boss_carried_x, hidden.boss_carried_y = move_x, move_y
    hidden.boss_x += move_x
    hidden.boss_y += move_y
    return move_x, move_y
