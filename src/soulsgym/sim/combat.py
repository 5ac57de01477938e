"""Blows and bodies: who hits whom, what it does, and that nobody stands inside anybody or off the ground."""

from __future__ import annotations

import math

from soulsgym.compiling import inner
from soulsgym.sim.boss import (
    EXECUTED,
    NO_ACT,
    OPEN,
    PARRIED,
    TRANSFORM,
    bearing_of_player,
    boss_heading,
    less_random,
    start_boss_move,
)
from soulsgym.sim.geometry import HALF_PI, PI, cosine, ground_z, heading_to, nearest_edge, sine, wrap
from soulsgym.sim.hidden import FALL_MOVE, ROLL_MOVE, Hidden
from soulsgym.sim.player import heading_to_boss, is_grabbed, is_invulnerable, show, start_flinch, start_reaction
from soulsgym.sim.records import Fight
from soulsgym.sim.tables import MAX_SHOTS, BossMoveRow, Constants, HitRow, StrikeRow, Tables
from soulsgym.spec.boss import HIT_SHAPES
from soulsgym.spec.player import PLAYER_KINDS

SECTOR, THRUST, DISC, SHOT = range(len(HIT_SHAPES))
CORNER_TRIES = 4
"""How often a body is pushed back from one edge into, perhaps, the next."""
RIPOSTE = PLAYER_KINDS.index("riposte")


@inner
def _in_hit(hidden: Hidden, hit: HitRow, distance: float, dx: float, dy: float, share: float) -> bool:
    """Is the player inside the blow? `share` of its time is over."""
    reach = hit.reach_m * less_random(hidden.reach_factor, hit.reach_scale)
    if hit.shape == DISC:
        x = dx + hidden.boss_sin * hit.offset_m
        y = dy + hidden.boss_cos * hit.offset_m
        return x * x + y * y <= reach * reach
    if distance > reach or distance < hit.inner_m:
        return False
    if hit.shape == THRUST:
        along = -hidden.boss_sin * dx - hidden.boss_cos * dy
        across = -hidden.boss_cos * dx + hidden.boss_sin * dy
        return along > 0.0 and abs(across) <= hit.half_width_m
    bearing = bearing_of_player(hidden)
    if hit.sweep == 0:
        return hit.arc_from_rad <= bearing <= hit.arc_to_rad
    blade = hit.arc_from_rad + share * (hit.arc_to_rad - hit.arc_from_rad)
    return abs(wrap(bearing - blade)) <= hit.blade_rad


@inner
def _flinch_side(hidden: Hidden) -> int:
    """0 front, 1 right, 2 back, 3 left: where the boss stands, seen from the player."""
    bearing = wrap(heading_to_boss(hidden) - hidden.player_heading)
    if abs(bearing) <= HALF_PI / 2.0:
        return 0
    if abs(bearing) >= 1.5 * HALF_PI:
        return 2
    return 1 if bearing > 0.0 else 3


@inner
def hurt(hidden: Hidden, fight: Fight, damage: float, move: int) -> None:
    """Take damage from a boss move."""
    damage = min(hidden.player_hp, damage)
    hidden.player_hp -= damage
    fight.damage_taken += damage
    fight.hit_by = move
    if hidden.player_hp <= 0.0:
        fight.killed_by = move


@inner
def _build_up(hidden: Hidden, fight: Fight, tables: Tables, which: int, points: float) -> None:
    """A status builds up in a player who has it not; at his resistance it breaks out."""
    status = tables.statuses[which]
    if points <= 0.0 or hidden.status_left_s[which] > 0.0 or hidden.player_hp <= 0.0:
        return
    hidden.status_points[which] += points
    if hidden.status_points[which] >= status.resistance:
        hidden.status_points[which], hidden.status_left_s[which] = 0.0, status.lasts_s
        hurt(hidden, fight, round(status.hp_lost), hidden.boss_move)


@inner
def status_tick(hidden: Hidden, fight: Fight, tables: Tables, distance: float) -> None:
    """What has built up in the player goes down, or up near a boss with an aura; what broke out passes."""
    constants = tables.constants
    phase = tables.phases[hidden.phase - 1]
    for i in range(constants.status_count):
        status = tables.statuses[i]
        hidden.status_left_s[i] = max(0.0, hidden.status_left_s[i] - constants.tick_s)
        hidden.status_points[i] = max(0.0, hidden.status_points[i] - status.down_per_tick)
        if phase.aura_status == i and distance <= phase.aura_m:
            _build_up(hidden, fight, tables, i, status.down_per_tick + phase.aura_per_tick)


@inner
def _afflicted(hidden: Hidden, tables: Tables) -> float:
    """The factor on damage of the statuses that the player has."""
    factor = 1.0
    for i in range(tables.constants.status_count):
        if hidden.status_left_s[i] > 0.0:
            factor *= tables.statuses[i].damage_factor
    return factor


@inner
def _grab(hidden: Hidden, tables: Tables, grab: int) -> None:
    constants = tables.constants
    start_reaction(hidden, tables, constants.grabbed_move, wrap(boss_heading(hidden) + PI))
    hidden.lock_on = 0
    held_m = tables.player_moves[constants.grabbed_move].held_m
    hidden.player_x = hidden.boss_x - hidden.boss_sin * held_m
    hidden.player_y = hidden.boss_y - hidden.boss_cos * held_m
    hidden.links_left = 0
    start_boss_move(hidden, tables, grab)


@inner
def _faces_boss(hidden: Hidden) -> bool:
    """Is the boss in the half of the world that the player looks at?"""
    return abs(wrap(heading_to_boss(hidden) - hidden.player_heading)) <= HALF_PI


@inner
def _guards(hidden: Hidden, tables: Tables) -> bool:
    """Does the player hold the shield against the boss?"""
    if hidden.player_move < 0:
        return False
    move = tables.player_moves[hidden.player_move]
    return move.guard_from_s <= hidden.player_move_s < move.guard_to_s and _faces_boss(hidden)


@inner
def _parries(hidden: Hidden, tables: Tables) -> bool:
    if hidden.player_move < 0:
        return False
    move = tables.player_moves[hidden.player_move]
    return move.parry_from_s <= hidden.player_move_s < move.parry_to_s and _faces_boss(hidden)


@inner
def _parry(hidden: Hidden, tables: Tables, row: BossMoveRow) -> None:
    """The player turns a blow of the boss's move aside, with all that comes in the same moment; enough open him."""
    hidden.parries += 1
    if hidden.parries >= tables.constants.parries_to_open:
        _open(hidden, tables, tables.constants.boss_parried_move)
        return
    for i in range(row.hits):
        hit, time_s = tables.hits[row.first_hit + i], hidden.boss_move_s - hidden.hit_shift_s
        if hit.shape != SHOT and hit.from_s <= time_s <= hit.to_s:
            hidden.hits_landed |= 1 << i


@inner
def _open(hidden: Hidden, tables: Tables, move: int) -> None:
    """The boss breaks off whatever he does and is open to the player."""
    hidden.parries = 0
    hidden.act = NO_ACT
    hidden.links_left = 0
    start_boss_move(hidden, tables, move)


@inner
def _take_blow(hidden: Hidden, fight: Fight, tables: Tables, hit: HitRow, move: int) -> None:
    """A blow of a move of the boss reached the player, who is neither invulnerable nor parrying."""
    constants = tables.constants
    row = tables.boss_moves[move]
    moves = tables.player_moves
    damage = round(hit.damage * less_random(hidden.damage_factor, hit.damage_scale) * _afflicted(hidden, tables))
    if row.grab_move >= 0:
        _grab(hidden, tables, row.grab_move)
        fight.hit_by = hidden.boss_move
        return
    reaction = hit.reaction
    if _guards(hidden, tables):
        # Recorded once: 9 stamina against a blow of 68 held. The shield gives way where stamina cannot fall any more.
        guarding = hidden.player_sp - hit.guard_sp > constants.sp_floor
        hidden.player_sp = max(constants.sp_floor, hidden.player_sp - hit.guard_sp)
        if guarding:
            hurt(hidden, fight, round(damage * moves[hidden.player_move].guard_factor), move)
            return
        reaction = constants.guard_break_move
    hurt(hidden, fight, damage, move)
    if hit.builds_up == 1:
        for i in range(constants.status_count):
            _build_up(hidden, fight, tables, i, hit.build_up[i])
    if constants.roll_flinches == 1 and hidden.player_move == ROLL_MOVE and moves[reaction].knocked_down == 0:
        start_flinch(hidden, constants.flinch_animations[_flinch_side(hidden)])
        return
    start_reaction(hidden, tables, reaction, heading_to_boss(hidden))
    if hit.push_m > 0.0 and reaction == hit.reaction and moves[reaction].moved_m > 0.0:
        hidden.forward_factor = hit.push_m / moves[reaction].moved_m
        hidden.right_factor = hidden.forward_factor


@inner
def boss_blows(hidden: Hidden, fight: Fight, tables: Tables, distance: float, dx: float, dy: float) -> None:
    """The blows of the boss's move in this tick."""
    row, shift_s = tables.boss_moves[hidden.boss_move], hidden.hit_shift_s
    if hidden.boss_move_s < row.hits_from_s + shift_s or hidden.boss_move_s > row.hits_to_s + shift_s:
        return
    for i in range(row.hits):
        bit = 1 << i
        if hidden.hits_landed & bit:
            continue
        hit = tables.hits[row.first_hit + i]
        since = hidden.boss_move_s - hit.from_s - shift_s
        lasts = hit.to_s - hit.from_s
        if since < 0.0 or since > lasts:
            continue
        if hit.shape == SHOT:
            hidden.hits_landed |= bit
            _launch(hidden, tables, row.first_hit + i)
            continue
        if not _in_hit(hidden, hit, distance, dx, dy, since / lasts):
            continue
        if is_invulnerable(hidden, tables):
            if not hidden.hits_dodged & bit:
                hidden.hits_dodged |= bit
                fight.dodged = hidden.boss_move
            continue
        hidden.hits_landed |= bit
        if hit.parriable == 1 and _parries(hidden, tables):
            _parry(hidden, tables, row)
            return
        _take_blow(hidden, fight, tables, hit, hidden.boss_move)
        return


@inner
def _launch(hidden: Hidden, tables: Tables, which: int) -> None:
    """A shot leaves the boss the way he looks; with too many in the air it is lost."""
    k = hidden.shots
    if k >= MAX_SHOTS:
        return
    hit = tables.hits[which]
    hidden.shots = k + 1
    hidden.shot_move[k], hidden.shot_hit[k] = hidden.boss_move, which
    hidden.shot_x[k], hidden.shot_y[k] = hidden.boss_x, hidden.boss_y
    hidden.shot_dx[k] = -hidden.boss_sin * hit.shot_m_per_tick
    hidden.shot_dy[k] = -hidden.boss_cos * hit.shot_m_per_tick
    hidden.shot_left_m[k] = hit.reach_m * less_random(hidden.reach_factor, hit.reach_scale)
    hidden.shot_turn_rad[k] = hit.homing_rad


@inner
def shots_tick(hidden: Hidden, fight: Fight, tables: Tables) -> None:
    """Shots fly on, turn towards the player as far as they may, and hit him once."""
    k = 0
    while k < hidden.shots:
        hit = tables.hits[hidden.shot_hit[k]]
        _aim_shot(hidden, k)
        # The way of this tick is a line; who is near it is hit.
        px, py = hidden.player_x - hidden.shot_x[k], hidden.player_y - hidden.shot_y[k]
        dx, dy = hidden.shot_dx[k], hidden.shot_dy[k]
        along = min(max((px * dx + py * dy) / (dx * dx + dy * dy), 0.0), 1.0)
        away_x, away_y = px - along * dx, py - along * dy
        reach = hit.shot_radius_m + tables.constants.player_radius_m
        hidden.shot_x[k] += dx
        hidden.shot_y[k] += dy
        hidden.shot_left_m[k] -= hit.shot_m_per_tick
        is_over = hidden.shot_left_m[k] <= 0.0
        if away_x * away_x + away_y * away_y <= reach * reach:
            is_over = True
            move = hidden.shot_move[k]
            if is_invulnerable(hidden, tables):
                fight.dodged = move
            else:
                _take_blow(hidden, fight, tables, hit, move)
        if is_over:
            _drop_shot(hidden, k)
        else:
            k += 1


@inner
def _aim_shot(hidden: Hidden, k: int) -> None:
    if hidden.shot_turn_rad[k] <= 0.0:
        return
    px, py = hidden.player_x - hidden.shot_x[k], hidden.player_y - hidden.shot_y[k]
    dx, dy = hidden.shot_dx[k], hidden.shot_dy[k]
    if px * dx + py * dy <= 0.0:
        return  # past him: it flies on straight
    error = wrap(heading_to(px, py) - heading_to(dx, dy))
    turn = min(max(error, -hidden.shot_turn_rad[k]), hidden.shot_turn_rad[k])
    hidden.shot_turn_rad[k] -= abs(turn)
    speed, heading = math.sqrt(dx * dx + dy * dy), heading_to(dx, dy) + turn
    hidden.shot_dx[k], hidden.shot_dy[k] = -sine(heading) * speed, -cosine(heading) * speed


@inner
def _drop_shot(hidden: Hidden, k: int) -> None:
    """Forget a shot; the last one takes its place."""
    last = hidden.shots - 1
    hidden.shots = last
    hidden.shot_move[k], hidden.shot_hit[k] = hidden.shot_move[last], hidden.shot_hit[last]
    hidden.shot_x[k], hidden.shot_y[k] = hidden.shot_x[last], hidden.shot_y[last]
    hidden.shot_dx[k], hidden.shot_dy[k] = hidden.shot_dx[last], hidden.shot_dy[last]
    hidden.shot_left_m[k], hidden.shot_turn_rad[k] = hidden.shot_left_m[last], hidden.shot_turn_rad[last]


@inner
def _wound_boss(hidden: Hidden, fight: Fight, damage: float, move: int) -> None:
    damage = min(hidden.boss_hp, damage)
    hidden.boss_hp -= damage
    fight.damage_dealt += damage
    fight.landed = move


@inner
def player_blows(hidden: Hidden, fight: Fight, tables: Tables, distance: float, dx: float, dy: float) -> None:
    """The blows of the player's move in this tick."""
    if hidden.player_move < 0:
        return
    mine = tables.player_moves[hidden.player_move]
    if not mine.strikes_from_s <= hidden.player_move_s <= mine.strikes_to_s:
        return
    for i in range(mine.strikes):
        strike = tables.strikes[mine.first_strike + i]
        bit = 1 << i
        if hidden.strikes_landed & bit or not strike.from_s <= hidden.player_move_s <= strike.to_s:
            continue
        if mine.kind != RIPOSTE and (
            distance > strike.reach_m or abs(wrap(heading_to(-dx, -dy) - hidden.player_heading)) > strike.arc_rad
        ):
            continue
        hidden.strikes_landed |= bit
        _strike_boss(hidden, fight, tables, strike)


@inner
def _strike_boss(hidden: Hidden, fight: Fight, tables: Tables, strike: StrikeRow) -> None:
    constants = tables.constants
    kind = tables.boss_moves[hidden.boss_move].kind
    opened = kind in (OPEN, PARRIED)
    factor = constants.open_damage_factor if opened else 1.0
    _wound_boss(hidden, fight, round(strike.damage * factor), hidden.player_move)
    hidden.since_strike_s = 0.0
    # A change of phase is never broken off: it would begin again, with all its openings.
    if opened or kind in (EXECUTED, TRANSFORM):
        return
    hidden.boss_poise -= strike.poise
    if hidden.boss_poise <= 0.0 and tables.boss_moves[hidden.boss_move].throws == 0 and hidden.boss_hp > 0.0:
        hidden.boss_poise = constants.boss_max_poise
        _open(hidden, tables, constants.boss_stagger_move)


@inner
def may_riposte(hidden: Hidden, tables: Tables, distance: float) -> bool:
    """Does a light attack now become the riposte?"""
    constants = tables.constants
    if tables.boss_moves[hidden.boss_move].kind != PARRIED or distance > constants.riposte_m or not _faces_boss(hidden):
        return False
    return abs(wrap(boss_heading(hidden) - hidden.player_heading)) >= constants.riposte_facing_rad


@inner
def held_tick(hidden: Hidden, fight: Fight, tables: Tables) -> None:
    """A grabbed player takes the damage of the throw."""
    row = tables.boss_moves[hidden.boss_move]
    while hidden.throws_dealt < row.throws:
        throw = tables.throws[row.first_throw + hidden.throws_dealt]
        if hidden.boss_move_s < throw.at_s:
            break
        damage = round(throw.damage * hidden.damage_factor * _afflicted(hidden, tables))
        hurt(hidden, fight, damage, hidden.boss_move)
        hidden.throws_dealt += 1


@inner
def separate(hidden: Hidden, tables: Tables, boss_x: float, boss_y: float) -> None:
    """Keep the bodies apart: whoever moves in is stopped. (boss_x, boss_y) is the boss's motion in this tick."""
    constants = tables.constants
    if is_grabbed(hidden, tables):
        return
    dx, dy = hidden.player_x - hidden.boss_x, hidden.player_y - hidden.boss_y
    square = dx * dx + dy * dy
    if square >= constants.least_distance_m * constants.least_distance_m:
        return
    distance = math.sqrt(square)
    if distance < 1e-9:
        dx, dy, distance = -hidden.boss_sin, -hidden.boss_cos, 1.0
        hidden.player_x, hidden.player_y = hidden.boss_x, hidden.boss_y
        square = 0.0
    nx, ny = dx / distance, dy / distance
    overlap = constants.least_distance_m - math.sqrt(square)
    mine = max(0.0, -(hidden.player_moved_x * nx + hidden.player_moved_y * ny))
    its = max(0.0, boss_x * nx + boss_y * ny)
    share = mine / (mine + its) if mine + its > 1e-9 else 1.0
    # The boss is not pushed farther than he came; the rest is the player's.
    stopped = min(its, overlap * (1.0 - share)) * (1.0 - constants.contact_push)
    if stopped > 0.0:
        held = constants.contact_drag * stopped / its
        hidden.boss_x -= nx * stopped + held * (boss_x - nx * its)
        hidden.boss_y -= ny * stopped + held * (boss_y - ny * its)
    hidden.player_x += nx * (overlap - stopped)
    hidden.player_y += ny * (overlap - stopped)


@inner
def _start_fall(hidden: Hidden, constants: Constants) -> None:
    hidden.player_move = FALL_MOVE
    hidden.player_move_s = 0.0
    hidden.fall_speed = 0.0
    hidden.forward_curve = -1
    hidden.right_curve = -1
    hidden.since_flinch_s = -1.0
    show(hidden, constants.fall_start_animation)


@inner
def keep_inside(hidden: Hidden, tables: Tables) -> None:
    """Walls stop both; a cliff stops the boss, and drops the player. Looks only once out of the last safe circle."""
    dx, dy = hidden.boss_x - hidden.boss_safe_x, hidden.boss_y - hidden.boss_safe_y
    if dx * dx + dy * dy > hidden.boss_safe_radius2:
        _keep_boss(hidden, tables)
    dx, dy = hidden.player_x - hidden.player_safe_x, hidden.player_y - hidden.player_safe_y
    if hidden.player_move != FALL_MOVE and dx * dx + dy * dy > hidden.player_safe_radius2:
        _keep_player(hidden, tables)
        if hidden.player_move != FALL_MOVE:
            _make_room(hidden, tables)


@inner
def _make_room(hidden: Hidden, tables: Tables) -> None:
    """A player held by a wall cannot give way, so the boss does."""
    constants = tables.constants
    if is_grabbed(hidden, tables):
        return
    dx, dy = hidden.boss_x - hidden.player_x, hidden.boss_y - hidden.player_y
    distance = math.sqrt(dx * dx + dy * dy)
    if 1e-9 < distance < constants.least_distance_m:
        hidden.boss_x += dx / distance * (constants.least_distance_m - distance)
        hidden.boss_y += dy / distance * (constants.least_distance_m - distance)


@inner
def _keep_boss(hidden: Hidden, tables: Tables) -> None:
    constants = tables.constants
    which, left = nearest_edge(tables, hidden.boss_x, hidden.boss_y)
    for _ in range(CORNER_TRIES):
        if left >= constants.boss_radius_m:
            break
        hidden.boss_x += tables.edges[which].normal_x * (left - constants.boss_radius_m)
        hidden.boss_y += tables.edges[which].normal_y * (left - constants.boss_radius_m)
        which, left = nearest_edge(tables, hidden.boss_x, hidden.boss_y)
    left = max(0.0, left - constants.boss_radius_m)
    hidden.boss_safe_x, hidden.boss_safe_y, hidden.boss_safe_radius2 = hidden.boss_x, hidden.boss_y, left * left


@inner
def _keep_player(hidden: Hidden, tables: Tables) -> None:
    constants = tables.constants
    which, left = nearest_edge(tables, hidden.player_x, hidden.player_y)
    for _ in range(CORNER_TRIES):
        if left >= 0.0:
            break
        # Who was killed in this step lies at the edge: the blow ended the fight, not the fall.
        if tables.edges[which].cliff == 1 and hidden.player_hp > 0.0 and not is_grabbed(hidden, tables):
            _start_fall(hidden, constants)
            return
        hidden.player_x += tables.edges[which].normal_x * left
        hidden.player_y += tables.edges[which].normal_y * left
        which, left = nearest_edge(tables, hidden.player_x, hidden.player_y)
    left = max(0.0, left)
    hidden.player_safe_x = hidden.player_x
    hidden.player_safe_y = hidden.player_y
    hidden.player_safe_radius2 = left * left


@inner
def fall_tick(hidden: Hidden, fight: Fight, constants: Constants) -> None:
    """Fall; deep enough is deadly."""
    hidden.fall_speed += constants.fall_m_per_tick2
    hidden.player_z -= hidden.fall_speed
    hidden.player_move_s += constants.tick_s
    hidden.player_animation_s += constants.tick_s
    if hidden.player_move_s >= constants.fall_loop_s and hidden.player_animation == constants.fall_start_animation:
        show(hidden, constants.fall_loop_animation)
    if hidden.player_z < ground_z(constants, hidden.player_x, hidden.player_y) - constants.deadly_drop_m:
        fight.damage_taken += hidden.player_hp
        hidden.player_hp = 0.0
