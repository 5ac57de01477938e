"""Turns a moveset into the flat tables the kernels read.

Motion and turning are sampled once per tick here, so that a tick of the simulator is a look-up.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.errors import DataError
from soulsgym.spec.boss import ANYWHERE_M, HIT_SHAPES, MOVE_KINDS, TURN, Act, Boss, BossMove, Motion
from soulsgym.spec.damage import Defence, damage_of
from soulsgym.spec.fight import FightSpec
from soulsgym.spec.player import MAX_PAYMENTS, NEVER_S, PLAYER_KINDS, PlayerMove

TICKS_PER_STEP = 6
TICKS_PER_S = 60
MAX_ACTS = 16
MAX_HITS = 31
"""Blows of one move, of the boss or the player: those that landed are bits of a number."""
MAX_INTERRUPTS = 31
"""Moves that the interrupts of one phase name: those that were looked at are bits of a number."""
MAX_TIMERS = 4
"""Rules of one phase that wait for a time."""

CONST = np.dtype(
    [
        (name, "f8")
        for name in (
            "tick_s", "ticks_per_label_s", "label_step_s",
            "hp", "sp", "sp_floor", "sp_per_tick", "delay_ticks", "regen_delay", "least_m",
            "first_share", "first_share_back", "after_roll_first", "after_roll_second",
            "walk_carry_roll", "attack_carry", "walk_turn", "stops_after_steps", "stop_tail_m", "stop_s", "linger_s",
            "cam_pivot", "cam_yaw", "cam_press", "cam_distance_m", "cam_height_m", "cam_view_z",
            "roll_cost", "roll_regen_s", "roll_end_s", "roll_inv_from", "roll_inv_to", "roll_turn_from", "roll_turn_to",
            "roll_settle_s", "roll_turn", "roll_again_s", "roll_carry", "roll_carry_roll", "roll_carry_m",
            "roll_first_s",
            "flinch_s", "flinch_after_s", "fall_loop_s", "fall_per_tick2", "deadly_drop_m",
            "boss_hp", "poise", "poise_recovery_s", "boss_radius_m", "turn_per_tick", "turn_beyond", "around_beyond",
            "contact_drag",
            "opened_factor", "riposte_m", "riposte_facing",
            "ground_x", "ground_y", "g0", "g1", "g2", "g3", "g4", "g5", "low_z", "boss_x", "boss_y", "boss_a",
            "rnd_timing", "rnd_hit_shift_s", "rnd_reach", "rnd_damage", "rnd_speed", "rnd_delay", "rnd_drop",
            "rnd_position_m", "rnd_heading", "rnd_duration_s",
        )
    ]
    + [
        (name, "i4")
        for name in (
            "id_idle", "id_move", "id_stop_front", "id_roll_a", "id_roll_b", "id_fall_start", "id_fall_loop",
            "id_flinch_after", "id_boss_idle", "edges", "starts", "ticks",
            "p_light", "p_heavy", "p_parry", "p_riposte", "p_backstep", "p_get_up", "p_throw", "p_guard_break",
            "roll_light", "roll_heavy",
            "c_roll_f", "c_roll_br", "c_roll_bl", "c_roll_r", "c_roll_l",
            "b_idle", "b_walk", "b_left", "b_right", "b_turn_l", "b_turn_r", "b_around_l", "b_around_r",
            "b_stagger", "b_parried", "b_executed", "b_back", "b_run",
        )
    ]
    + [("full_walk", "f8", (4,)), ("stop_walk", "f8", (4,)), ("flinch", "i4", (4,))],
    align=True,
)  # fmt: skip

PLAYER_MOVE = np.dtype(
    [
        (name, "f8")
        for name in (
            "end_s", "sp_part", "regen_s", "turn_from", "turn_to", "inv_from", "inv_to",
            "parry_from", "parry_to", "guard_from", "guard_to", "guard_factor",
            "held_m", "lock_s", "moved_m", "strikes_from_s", "strikes_to_s",
        )
    ]
    + [
        (name, "i4")
        for name in (
            "label", "kind", "on_light", "on_heavy", "on_roll", "on_end", "down", "curve_f", "curve_r", "curve_b",
            "payments", "strike", "strikes",
        )
    ]
    + [("sp_s", "f8", (MAX_PAYMENTS,))],
    align=True,
)  # fmt: skip

STRIKE = np.dtype(
    [(name, "f8") for name in ("from_s", "to_s", "reach_m", "arc", "damage", "poise")],
    align=True,
)

BOSS_MOVE = np.dtype(
    [(name, "f8") for name in ("link_s", "label_end_s", "end_s", "blend_s", "hits_from_s", "hits_to_s")]
    + [
        (name, "i4")
        for name in ("label", "kind", "curve", "rows", "hit", "hits", "grab", "throw", "throws", "stretch", "stretches")
    ],
    align=True,
)
THROW = np.dtype([("at_s", "f8"), ("damage", "f8")], align=True)
STRETCH = np.dtype(
    [(name, "f8") for name in ("from_s", "to_s", "arrive_m", "least_m", "most_m", "reference_m")], align=True
)

HIT = np.dtype(
    [
        (name, "f8")
        for name in (
            "from_s", "to_s", "reach_m", "inner_m", "half_width_m", "arc_from", "arc_to", "blade", "offset_m",
            "damage", "stamina", "push_m",
        )
    ]
    + [(name, "i4") for name in ("shape", "sweep", "reaction", "parriable")],
    align=True,
)  # fmt: skip

PHASE = np.dtype(
    [
        (name, "f8")
        for name in (
            "change_share", "first_m", "first_lo_s", "first_hi_s", "down_weight",
            "front", "within_gap_m", "back_off_m", "back_off_s",
            "near_gap_m", "near_lo_s", "near_hi_s", "far_lo_s", "far_hi_s",
        )
    ]
    + [
        (name, "i4")
        for name in ("change_move", "rule", "rules", "act", "retreat", "retreats", "interrupt", "interrupts")
    ],
    align=True,
)  # fmt: skip
RULE = np.dtype(
    [(name, "f8") for name in ("bearing_lo", "bearing_hi", "beyond", "gap_lo", "gap_hi", "every_s")]
    + [("timer", "i4"), ("weights", "f8", (MAX_ACTS,))],
    align=True,
)
RETREAT = np.dtype([(name, "f8") for name in ("gap_lo", "gap_hi", "chance", "lo_s", "hi_s")], align=True)
INTERRUPT = np.dtype(
    [(name, "f8") for name in ("at_s", "bearing_lo", "bearing_hi", "gap_lo", "gap_hi")]
    + [(name, "i4") for name in ("move", "act")],
    align=True,
)
ACT = np.dtype(
    [
        (name, "f8")
        for name in (
            "approach_m", "approach_s", "cooldown_s", "after_odds", "room_f", "room_r", "then_within",
            "run_from_m", "run_chance", "run_always_m", "run_approach_m",
        )
    ]
    + [(name, "i4") for name in ("move", "chain", "chains", "has_room", "has_then")]
    + [("then", "f8", (MAX_ACTS,))],
    align=True,
)  # fmt: skip
CHAIN = np.dtype([("weight", "f8"), ("link", "i4"), ("links", "i4")], align=True)
LINK = np.dtype([("within_m", "f8"), ("bearing_lo", "f8"), ("bearing_hi", "f8"), ("move", "i4")], align=True)
EDGE = np.dtype([(name, "f8") for name in ("nx", "ny", "d")] + [("cliff", "i4")], align=True)

TURN_ACT = MAX_ACTS - 1
"""The column of a rule's weights that stands for turning on the spot."""

Array = npt.NDArray[Any]

TABLES = np.dtype(
    [
        ("const", CONST),
        ("timings", "f8", (96, 3)),  # [animation id + 1, (attack_s, roll_s, move_s)]; row 0 is the unknown animation
        ("player_moves", PLAYER_MOVE, (64,)),
        ("curves", "f8", (16384,)),  # cumulative metres per tick of the player's moves, one after the other
        ("boss_moves", BOSS_MOVE, (96,)),
        ("boss_curves", "f8", (32768, 4)),  # [row, (forward, right, chase share per tick, turn per tick)]
        ("strikes", STRIKE, (64,)),
        ("hits", HIT, (160,)),
        ("throws", THROW, (32,)),
        ("stretches", STRETCH, (64,)),
        ("phases", PHASE, (4,)),
        ("retreats", RETREAT, (16,)),
        ("interrupts", INTERRUPT, (64,)),
        ("rules", RULE, (64,)),
        ("acts", ACT, (64,)),
        ("chains", CHAIN, (160,)),
        ("links", LINK, (256,)),
        ("edges", EDGE, (32,)),
        ("starts", "f8", (32, 3)),  # the standard start, then the ones to draw from
    ],
    align=True,
)
"""One record with everything the kernels read. Its sizes are fixed, so that every boss runs on the same compiled code;
being one record it is passed as one pointer (a tuple of arrays costs a reference count per array and call)."""


def pack(spec: FightSpec) -> Array:
    """The tables of a moveset, an array of one TABLES."""
    tables = np.zeros(1, TABLES)
    pack_into(tables, spec)
    return tables


def pack_into(tables: Array, spec: FightSpec) -> None:
    """Fill an array of one TABLES; rows beyond those the moveset needs are left as they are, for nothing reads them."""
    _check_room(spec)
    tick_s = spec.player.label_s_per_step / TICKS_PER_STEP
    curves = _Curves(tick_s)
    player_moves, strikes = _player_moves(spec, curves)
    roll_curves = _roll_curves(spec, curves)
    boss = _boss_moves(spec, tick_s)
    timings = np.array([(0.0, 0.0, 0.0), *((a.attack_s, a.roll_s, a.move_s) for a in spec.player_animations)])
    tables["const"] = _const(spec, tick_s, roll_curves)
    for name, rows in (
        ("timings", timings), ("player_moves", player_moves), ("strikes", strikes), ("curves", curves.array()),
        *boss.items(), *_decisions(spec.boss).items(), ("edges", _edges(spec)),
        ("starts", np.array([spec.arena.player_start, *spec.arena.player_starts])),
    ):  # fmt: skip
        room = tables[name].shape[1]
        if len(rows) > room:
            raise DataError(
                spec.boss.name, name, len(rows), f"is too much for the simulator, which has room for {room}"
            )
        tables[name][0, : len(rows)] = rows


def _check_room(spec: FightSpec) -> None:
    boss, player = spec.boss, spec.player
    counts = {(boss.name, f"move.{move.name}.hit"): (len(move.hits), MAX_HITS) for move in boss.moves}
    counts |= {(player.name, f"move.{move.name}.strike"): (len(move.strikes), MAX_HITS) for move in player.moves}
    for number, phase in enumerate(boss.phases, start=1):
        waiting = sum(rule.every_s > 0.0 for rule in phase.rules)
        named = sum(len(interrupt.moves) for interrupt in phase.interrupts)
        counts[boss.name, f"phase.{number}.act"] = (len(phase.acts), TURN_ACT)
        counts[boss.name, f"phase.{number}.rule (with every_s)"] = (waiting, MAX_TIMERS)
        counts[boss.name, f"phase.{number}.interrupt (moves)"] = (named, MAX_INTERRUPTS)
    for (whose, key), (count, room) in counts.items():
        if count > room:
            raise DataError(whose, key, count, f"is too much for the simulator, which has room for {room}")


def cumulative(motion_first_s: float, step_s: float, metres: tuple[float, ...], times_s: Array) -> Array:
    """Metres moved from 0 to each of `times_s`, at constant speed within every stretch."""
    knots = np.concatenate([[0.0], motion_first_s + step_s * np.arange(len(metres))])
    sums = np.concatenate([[0.0], np.cumsum(metres)])
    sampled: Array = np.interp(times_s, knots, sums)
    return sampled


class _Curves:
    """Collects cumulative curves of the player's moves; every curve ends in its last value twice, for interpolation."""

    def __init__(self, tick_s: float) -> None:
        self._tick_s = tick_s
        self._parts: list[Array] = [np.zeros(2)]
        self._length = 2

    def add(self, first_s: float, step_s: float, metres: tuple[float, ...], end_s: float) -> int:
        count = math.ceil(end_s / self._tick_s) + 4
        offset = self._length
        self._parts.append(cumulative(first_s, step_s, metres, np.arange(count) * self._tick_s))
        self._length += count
        return offset

    def array(self) -> Array:
        return np.concatenate(self._parts)


def _roll_curves(spec: FightSpec, curves: _Curves) -> dict[str, int]:
    roll = spec.player.roll
    profiles = {
        "c_roll_f": (roll.first_forward_m, roll.forward_m),
        "c_roll_br": (roll.first_backward_m, roll.backward_right_m),
        "c_roll_bl": (roll.first_backward_m, roll.backward_left_m),
        "c_roll_r": (roll.first_sideways_m, roll.right_m),
        "c_roll_l": (roll.first_sideways_m, roll.left_m),
    }
    # Twice the roll's length, since a motion may live on in what comes after.
    return {
        name: curves.add(roll.first_s, roll.step_s, (first, *metres), 2.0 * roll.end_s)
        for name, (first, metres) in profiles.items()
    }


def _player_moves(spec: FightSpec, curves: _Curves) -> tuple[Array, Array]:
    moves = spec.player.moves
    names = [move.name for move in moves]
    labels = [label.name for label in spec.player_animations]
    table = np.zeros(len(moves), PLAYER_MOVE)
    strikes: list[tuple[float, ...]] = []
    for row, move in zip(table, moves, strict=True):
        _fill_player_move(row, move, names, curves)
        row["label"] = labels.index(move.animation)
        row["strike"], row["strikes"] = len(strikes), len(move.strikes)
        strikes.extend(
            (
                strike.from_s, strike.to_s, strike.reach_m, math.radians(strike.arc_deg),
                damage_of(strike.power, spec.boss.defence), strike.poise,
            )
            for strike in move.strikes
        )  # fmt: skip
    return table, np.array(strikes, STRIKE)


def _index(names: list[str], name: str) -> int:
    return names.index(name) if name else -1


def _fill_player_move(row: Any, move: PlayerMove, names: list[str], curves: _Curves) -> None:
    row["kind"] = PLAYER_KINDS.index(move.kind)
    row["end_s"], row["regen_s"] = move.end_s, move.regen_from_s
    row["payments"], row["sp_part"] = len(move.sp_s), move.sp_cost / len(move.sp_s)
    row["sp_s"][: len(move.sp_s)] = move.sp_s
    for key, span in (
        ("turn", move.turn_s), ("inv", move.invulnerable_s), ("parry", move.parry_s), ("guard", move.guard_s),
    ):  # fmt: skip
        row[f"{key}_from"], row[f"{key}_to"] = span
    row["guard_factor"] = move.guarded_damage_factor
    row["held_m"], row["lock_s"], row["down"] = move.held_m, move.lock_s, move.knocked_down
    row["strikes_from_s"] = min((strike.from_s for strike in move.strikes), default=NEVER_S)
    row["strikes_to_s"] = max((strike.to_s for strike in move.strikes), default=NEVER_S)
    row["moved_m"] = math.hypot(*(sum(getattr(move.motion, name, ())) for name in ("forward_m", "right_m")))
    for key in ("on_light", "on_heavy", "on_roll", "on_end"):
        row[key] = _index(names, getattr(move, key))
    for key, name in (("curve_f", "forward_m"), ("curve_r", "right_m"), ("curve_b", "backward_m")):
        metres = getattr(move.motion, name, ())
        row[key] = (
            -1
            if move.motion is None or not metres
            else curves.add(move.motion.first_s, move.motion.step_s, metres, move.end_s)
        )


def _boss_moves(spec: FightSpec, tick_s: float) -> dict[str, Any]:
    boss = spec.boss
    names = [move.name for move in boss.moves]
    reactions = [move.name for move in spec.player.moves]
    table = np.zeros(len(boss.moves), BOSS_MOVE)
    parts: list[Array] = []
    hits: list[Any] = []
    throws: list[tuple[float, ...]] = []
    stretches: list[tuple[float, ...]] = []
    row_count = 0
    for row, move in zip(table, boss.moves, strict=True):
        curve = _boss_curve(boss, move, tick_s)
        row["curve"], row["rows"] = row_count, len(curve)
        row_count += len(curve)
        parts.append(curve)
        row["hit"], row["hits"] = len(hits), len(move.hits)
        row["hits_from_s"] = min((hit.from_s for hit in move.hits), default=NEVER_S)
        row["hits_to_s"] = max((hit.to_s for hit in move.hits), default=NEVER_S)
        hits.extend(_hit_rows(move, reactions, spec.player.defence))
        row["throw"], row["throws"] = len(throws), len(move.throws)
        by_time = sorted(move.throws, key=lambda throw: throw.at_s)
        throws.extend((throw.at_s, damage_of(throw.power, spec.player.defence)) for throw in by_time)
        row["stretch"], row["stretches"] = len(stretches), len(move.stretches)
        stretches.extend(
            (part.from_s, part.to_s, part.arrive_m, *part.range_m, part.reference_m) for part in move.stretches
        )
        row["label"] = spec.boss_animations.index(move.animation) if move.animation in spec.boss_animations else -1
        row["kind"] = MOVE_KINDS.index(move.kind)
        row["link_s"], row["label_end_s"], row["end_s"] = move.link_s, move.label_end_s, move.end_s
        row["blend_s"], row["grab"] = move.blend_s, _index(names, move.grab_move)
    return {
        "boss_moves": table, "boss_curves": np.concatenate(parts), "hits": np.array(hits, HIT),
        "throws": np.array(throws, THROW), "stretches": np.array(stretches, STRETCH),
    }  # fmt: skip


def _boss_curve(boss: Boss, move: BossMove, tick_s: float) -> Array:
    count = math.ceil(move.end_s / tick_s) + 3
    times_s = np.arange(count) * tick_s
    curve = np.zeros((count, 4))
    if move.motion is not None:
        motion = _unrolled(move.motion, move.end_s)
        for column, metres in enumerate((motion.forward_m, motion.right_m)):
            if metres:
                curve[:, column] = cumulative(motion.first_s, motion.step_s, metres, times_s)
        if motion.chase_share:
            ends_s = motion.first_s + motion.step_s * np.arange(len(motion.chase_share))
            shares = np.array([*motion.chase_share, 0.0])[np.searchsorted(ends_s, times_s + tick_s / 2)]
            curve[:, 2] = 1.0 - (1.0 - shares) ** (tick_s / motion.step_s)
    for track in move.tracks:
        active = (times_s + tick_s / 2 >= track.from_s) & (times_s + tick_s / 2 < track.to_s)
        curve[active, 3] = np.maximum(curve[active, 3], math.radians(track.deg_per_s) / TICKS_PER_S)
    if move.kind in ("walk", "retreat", "strafe"):
        curve[:, 3] = math.radians(boss.turn_deg_per_s) / TICKS_PER_S
    return curve


def _unrolled(motion: Motion, end_s: float) -> Motion:
    if motion.loop_from_s is None:
        return motion
    skipped = round((motion.loop_from_s - motion.first_s) / motion.step_s) + 1
    needed = math.ceil(end_s / motion.step_s) + 1

    def extended(metres: tuple[float, ...]) -> tuple[float, ...]:
        loop = metres[skipped:]
        return metres + loop * (needed // len(loop) + 1) if metres else ()

    return Motion(motion.first_s, motion.step_s, extended(motion.forward_m), extended(motion.right_m))


def _hit_rows(move: BossMove, reactions: list[str], defence: Defence) -> list[Any]:
    rows = np.zeros(len(move.hits), HIT)
    for row, hit in zip(rows, move.hits, strict=True):
        for key in ("from_s", "to_s", "reach_m", "inner_m", "half_width_m", "offset_m", "push_m", "parriable", "sweep"):
            row[key] = getattr(hit, key)
        row["damage"] = damage_of(hit.power, defence)
        row["arc_from"], row["arc_to"] = (math.radians(side) for side in hit.arc_deg)
        row["blade"] = math.radians(hit.blade_deg)
        row["stamina"], row["shape"] = hit.guard_stamina, HIT_SHAPES.index(hit.shape)
        row["reaction"] = reactions.index(hit.reaction)
    return list(rows)


def _decisions(boss: Boss) -> dict[str, Any]:
    names = [move.name for move in boss.moves]
    phases = np.zeros(len(boss.phases), PHASE)
    rules: list[Any] = []
    acts: list[Any] = []
    chains: list[tuple[Any, ...]] = []
    links: list[tuple[Any, ...]] = []
    retreats: list[tuple[float, ...]] = []
    interrupts: list[tuple[Any, ...]] = []
    for row, phase in zip(phases, boss.phases, strict=True):
        after = phase.after
        row["change_share"], row["change_move"] = phase.changes_at_hp_share, _index(names, phase.change_move)
        row["first_m"], row["down_weight"] = phase.first_approach_m, phase.down_approach_weight
        row["first_lo_s"], row["first_hi_s"] = phase.first_approach_s
        row["front"], row["within_gap_m"] = math.radians(after.front_deg), after.within_gap_m
        row["back_off_m"], row["back_off_s"] = after.back_off_m, after.back_off_s
        row["near_gap_m"] = after.near_gap_m
        row["near_lo_s"], row["near_hi_s"] = after.near_s
        row["far_lo_s"], row["far_hi_s"] = after.far_s
        row["rule"], row["rules"], row["act"] = len(rules), len(phase.rules), len(acts)
        row["retreat"], row["retreats"] = len(retreats), len(after.retreats)
        retreats.extend((*retreat.gap_m, retreat.chance, *retreat.lasts_s) for retreat in after.retreats)
        act_names = [act.name for act in phase.acts]
        timers = 0
        for rule in phase.rules:
            packed = np.zeros((), RULE)
            packed["bearing_lo"], packed["bearing_hi"] = (math.radians(side) for side in rule.bearing_deg)
            packed["beyond"] = math.radians(rule.beyond_deg)
            packed["gap_lo"], packed["gap_hi"] = rule.gap_m
            packed["every_s"], packed["timer"] = rule.every_s, timers if rule.every_s > 0.0 else -1
            timers += rule.every_s > 0.0
            for name, weight in rule.weights.items():
                packed["weights"][TURN_ACT if name == TURN else act_names.index(name)] = weight
            rules.append(packed)
        row["interrupt"] = len(interrupts)
        for interrupt in phase.interrupts:
            sides = (math.radians(side) for side in interrupt.bearing_deg)
            given = (interrupt.at_s, *sides, *interrupt.gap_m)
            act_row = row["act"] + act_names.index(interrupt.act)
            interrupts.extend((*given, names.index(move), act_row) for move in interrupt.moves)
        row["interrupts"] = len(interrupts) - row["interrupt"]
        for act in phase.acts:
            packed = _act_row(boss, act, act_names)
            packed["chain"], packed["chains"] = len(chains), len(act.chains)
            acts.append(packed)
            for chain in act.chains:
                chains.append((chain.weight, len(links), len(chain.links)))
                links.extend(
                    (link.within_m, *(math.radians(side) for side in link.bearing_deg), names.index(link.move))
                    for link in chain.links
                )
    return {
        "phases": phases, "rules": np.array(rules, RULE), "acts": np.array(acts, ACT),
        "chains": np.array(chains, CHAIN), "links": np.array(links, LINK),
        "retreats": np.array(retreats, RETREAT), "interrupts": np.array(interrupts, INTERRUPT),
    }  # fmt: skip


def _act_row(boss: Boss, act: Act, act_names: list[str]) -> Any:
    row = np.zeros((), ACT)
    move = boss.moves[boss.move_index(act.name)]
    for key in ("approach_m", "approach_s", "cooldown_s", "after_odds"):
        row[key] = getattr(act, key)
    row["move"] = boss.move_index(act.name)
    if act.run is not None:
        row["run_from_m"], row["run_chance"] = act.run.from_m, act.run.chance
        row["run_always_m"], row["run_approach_m"] = act.run.always_from_m, act.run.approach_m
    else:
        row["run_from_m"], row["run_always_m"] = ANYWHERE_M, ANYWHERE_M
    if act.room_m > 0.0 and move.motion is not None:
        # The room is needed where the hop leads to.
        forward, right = sum(move.motion.forward_m), sum(move.motion.right_m)
        length = math.hypot(forward, right) or 1.0
        row["has_room"] = 1
        row["room_f"], row["room_r"] = act.room_m * forward / length, act.room_m * right / length
    row["has_then"], row["then_within"] = bool(act.then), math.radians(act.then_within_deg)
    for name, weight in act.then.items():
        row["then"][act_names.index(name)] = weight
    return row


def _edges(spec: FightSpec) -> Array:
    corners = spec.arena.corners
    edges = np.zeros(len(corners), EDGE)
    for row, a, b in zip(edges, corners, corners[1:] + corners[:1], strict=True):
        length = math.hypot(b.x_m - a.x_m, b.y_m - a.y_m)
        row["nx"], row["ny"] = (b.y_m - a.y_m) / length, -(b.x_m - a.x_m) / length
        row["d"] = row["nx"] * a.x_m + row["ny"] * a.y_m
        row["cliff"] = a.to_next == "cliff"
    return edges


def _const(spec: FightSpec, tick_s: float, roll_curves: dict[str, int]) -> Array:
    boss, player, arena = spec.boss, spec.player, spec.arena
    roll, walk, camera, bounds = player.roll, player.walk, player.camera, boss.randomize
    labels = [label.name for label in spec.player_animations]
    names = [move.name for move in player.moves]
    values: dict[str, Any] = {
        "tick_s": tick_s, "ticks_per_label_s": 1.0 / tick_s, "label_step_s": player.label_s_per_step,
        "hp": player.hp, "sp": player.sp, "sp_floor": player.sp_floor, "sp_per_tick": player.sp_per_s / TICKS_PER_S,
        "delay_ticks": player.input_delay_ticks, "regen_delay": player.sp_delay_ticks,
        "least_m": boss.least_distance_m,
        "stops_after_steps": walk.stops_after_steps, "stop_s": walk.stop_s, "linger_s": walk.linger_s,
        "full_walk": walk.full_m, "stop_walk": walk.stop_m, "stop_tail_m": walk.stop_tail_m,
        "first_share": walk.first_share, "first_share_back": walk.first_share_back,
        "after_roll_first": walk.after_roll_shares[0], "after_roll_second": walk.after_roll_shares[1],
        "walk_carry_roll": walk.carry_roll, "attack_carry": walk.carry_into_attack,
        "walk_turn": walk.turn_rad_per_s / TICKS_PER_S,
        "cam_pivot": camera.pivot_share_per_step, "cam_yaw": camera.yaw_share_per_step, "cam_press": camera.press_share,
        "cam_distance_m": camera.distance_m, "cam_height_m": camera.height_m, "cam_view_z": camera.view_z,
        "roll_cost": roll.sp_cost, "roll_regen_s": roll.regen_from_s, "roll_end_s": roll.end_s,
        "roll_inv_from": roll.invulnerable_s[0], "roll_inv_to": roll.invulnerable_s[1],
        "roll_turn_from": roll.turn_s[0], "roll_turn_to": roll.turn_s[1], "roll_again_s": roll.again_within_s,
        "roll_settle_s": roll.settle_s, "roll_turn": roll.turn_rad_per_s / TICKS_PER_S,
        "roll_carry": roll.carry, "roll_carry_roll": roll.carry_roll, "roll_carry_m": roll.carry_direction_m,
        "roll_first_s": roll.first_s,
        "flinch_s": player.flinch_s, "flinch_after_s": player.flinch_after_s, "fall_loop_s": player.fall_loop_from_s,
        "fall_per_tick2": arena.fall_m_per_s2 / TICKS_PER_S**2, "deadly_drop_m": arena.deadly_drop_m,
        "boss_hp": boss.hp, "poise": boss.poise, "poise_recovery_s": boss.poise_recovery_s,
        "boss_radius_m": boss.radius_m, "turn_per_tick": math.radians(boss.turn_deg_per_s) / TICKS_PER_S,
        "turn_beyond": math.radians(boss.turn_animation_beyond_deg),
        "around_beyond": math.radians(boss.turn_around_beyond_deg),
        "contact_drag": boss.contact_drag,
        "opened_factor": boss.damage_taken_factor, "riposte_m": boss.riposte_within_m,
        "riposte_facing": math.radians(boss.riposte_facing_deg),
        "ground_x": arena.ground_origin_m[0], "ground_y": arena.ground_origin_m[1], "low_z": arena.low_m[2],
        "boss_x": arena.boss_start[0], "boss_y": arena.boss_start[1], "boss_a": arena.boss_start[2],
        "rnd_timing": bounds.timing, "rnd_hit_shift_s": bounds.hit_shift_s, "rnd_reach": bounds.reach,
        "rnd_damage": bounds.damage, "rnd_speed": bounds.speed, "rnd_delay": bounds.input_delay_ticks,
        "rnd_drop": bounds.dropped_inputs, "rnd_position_m": bounds.position_noise_m,
        "rnd_heading": bounds.heading_noise_rad, "rnd_duration_s": bounds.duration_noise_s,
        "id_idle": labels.index("Idle"), "id_move": labels.index("Move"), "id_stop_front": labels.index("RunStopFront"),
        "id_roll_a": labels.index(roll.animations[0]), "id_roll_b": labels.index(roll.animations[1]),
        "id_fall_start": labels.index(player.fall_animations[0]),
        "id_fall_loop": labels.index(player.fall_animations[1]),
        "id_flinch_after": labels.index(player.flinch_after_animation),
        "flinch": [labels.index(name) for name in player.flinch_animations],
        "edges": len(arena.corners), "ticks": TICKS_PER_STEP, "starts": 1 + len(arena.player_starts),
        "roll_light": names.index(roll.on_light), "roll_heavy": names.index(roll.on_heavy),
        **{f"g{power}": value for power, value in enumerate(arena.ground)},
        **roll_curves,
    }  # fmt: skip
    for key, name in (
        ("p_light", "light_1"), ("p_heavy", "heavy"), ("p_parry", "parry"), ("p_riposte", "riposte"),
        ("p_backstep", "backstep"), ("p_get_up", "get_up_roll"), ("p_throw", "ThrowDef"),
        ("p_guard_break", "GuardBreakWall"),
    ):  # fmt: skip
        values[key] = names.index(name)
    for key, name in (
        ("b_idle", "idle"), ("b_walk", "walk"), ("b_left", "strafe_left"), ("b_right", "strafe_right"),
        ("b_turn_l", "turn_left"), ("b_turn_r", "turn_right"), ("b_around_l", "turn_left_around"),
        ("b_around_r", "turn_right_around"), ("b_stagger", "stagger"), ("b_parried", "parried"),
        ("b_executed", "executed"),
    ):  # fmt: skip
        values[key] = boss.move_index(name)
    move_names = [move.name for move in boss.moves]
    for key, name in (("b_back", "walk_back"), ("b_run", "run")):
        values[key] = move_names.index(name) if name in move_names else values["b_walk"]
    values["id_boss_idle"] = spec.boss_animations.index(boss.moves[boss.move_index("idle")].animation)
    const = np.zeros(1, CONST)
    for key, value in values.items():
        const[key][0] = value
    return const
