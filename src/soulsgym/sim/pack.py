"""Fills the tables that the kernels read from a fight's description.

Motion and turning are sampled once per tick here, so that a tick of the simulator is a look-up.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from soulsgym.errors import DataError
from soulsgym.sim.records import Array, dtype_of
from soulsgym.sim.tables import (
    MAX_AFTER,
    MAX_HITS,
    MAX_INTERRUPTS,
    MAX_STATUSES,
    MAX_TIMERS,
    TABLES,
    TICKS_PER_S,
    TICKS_PER_STEP,
    TURN_ACT,
    ActRow,
    BossMoveRow,
    ChainRow,
    Constants,
    EdgeRow,
    HitRow,
    InterruptRow,
    LinkRow,
    PhaseRow,
    PlayerMoveRow,
    RetreatRow,
    RuleRow,
    StatusRow,
    StretchRow,
    StrikeRow,
    ThrowRow,
)
from soulsgym.spec.boss import ANYWHERE_M, HIT_SHAPES, MOVE_KINDS, TURN, Act, Boss, BossMove, Hit, Motion, Phase
from soulsgym.spec.damage import damage_of
from soulsgym.spec.fight import FightSpec
from soulsgym.spec.player import NEVER_S, PLAYER_KINDS, Player, PlayerMove


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
    tables["constants"] = _constants(spec, roll_curves)
    for name, rows in (
        ("timings", timings), ("player_moves", player_moves), ("strikes", strikes), ("curves", curves.array()),
        *boss.items(), *_decisions(spec, boss["boss_moves"]).items(), ("statuses", _statuses(spec.player)),
        ("edges", _edges(spec)),
        ("starts", np.array([spec.arena.player_start, *spec.arena.player_starts])),
    ):  # fmt: skip
        room = tables[name].shape[1]
        if len(rows) > room:
            file = spec.files[0] if spec.files else spec.boss.name
            raise DataError(file, name, len(rows), f"is too much for the simulator, which has room for {room}")
        tables[name][0, : len(rows)] = rows


def _check_room(spec: FightSpec) -> None:
    boss, player = spec.boss, spec.player
    boss_file, player_file = spec.files[:2] if len(spec.files) > 1 else (boss.name, player.name)
    counts = {(boss_file, f"move.{move.name}.hit"): (len(move.hits), MAX_HITS) for move in boss.moves}
    counts[player_file, "status"] = (len(player.statuses), MAX_STATUSES)
    counts |= {(player_file, f"move.{move.name}.strike"): (len(move.strikes), MAX_HITS) for move in player.moves}
    for number, phase in enumerate(boss.phases, start=1):
        waiting = len(_timers(phase))
        named = Counter(move for interrupt in phase.interrupts for move in interrupt.moves)
        counts[boss_file, f"phase.{number}.act"] = (len(phase.acts), TURN_ACT)
        counts[boss_file, f"phase.{number}.rule (with every_s)"] = (waiting, MAX_TIMERS)
        counts[boss_file, f"phase.{number}.interrupt (of one move)"] = (max(named.values(), default=0), MAX_INTERRUPTS)
        longest = max((len(rule.after) for rule in phase.rules), default=0)
        counts[boss_file, f"phase.{number}.rule (after)"] = (longest, MAX_AFTER)
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
        "roll_forward_curve": (roll.first_forward_m, roll.forward_m),
        "roll_back_right_curve": (roll.first_backward_m, roll.backward_right_m),
        "roll_back_left_curve": (roll.first_backward_m, roll.backward_left_m),
        "roll_right_curve": (roll.first_sideways_m, roll.right_m),
        "roll_left_curve": (roll.first_sideways_m, roll.left_m),
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
    table = np.zeros(len(moves), dtype_of(PlayerMoveRow))
    strikes: list[tuple[float, ...]] = []
    for row, move in zip(table, moves, strict=True):
        _fill_player_move(row, move, names, curves)
        row["animation"] = labels.index(move.animation)
        row["first_strike"], row["strikes"] = len(strikes), len(move.strikes)
        strikes.extend(
            (
                strike.from_s, strike.to_s, strike.reach_m + spec.boss.bulk_m, math.radians(strike.arc_deg),
                damage_of(strike.power, spec.boss.defence), strike.poise,
            )
            for strike in move.strikes
        )  # fmt: skip
    return table, np.array(strikes, dtype_of(StrikeRow))


def _index(names: list[str], name: str) -> int:
    return names.index(name) if name else -1


def _fill_player_move(row: Any, move: PlayerMove, names: list[str], curves: _Curves) -> None:
    row["kind"] = PLAYER_KINDS.index(move.kind)
    row["end_s"], row["regen_s"] = move.end_s, move.regen_from_s
    row["payments"], row["sp_per_payment"] = len(move.sp_s), move.sp_cost / len(move.sp_s)
    row["payment_s"][: len(move.sp_s)] = move.sp_s
    for key, span in (
        ("turn", move.turn_s), ("invulnerable", move.invulnerable_s), ("parry", move.parry_s), ("guard", move.guard_s),
    ):  # fmt: skip
        row[f"{key}_from_s"], row[f"{key}_to_s"] = span
    row["guard_factor"] = move.guarded_damage_factor
    row["held_m"], row["lock_s"], row["knocked_down"] = move.held_m, move.lock_s, move.knocked_down
    row["strikes_from_s"] = min((strike.from_s for strike in move.strikes), default=NEVER_S)
    row["strikes_to_s"] = max((strike.to_s for strike in move.strikes), default=NEVER_S)
    row["moved_m"] = math.hypot(*(sum(getattr(move.motion, name, ())) for name in ("forward_m", "right_m")))
    for key in ("on_light", "on_heavy", "on_roll", "on_end"):
        row[key] = _index(names, getattr(move, key))
    for key, name in (("forward_curve", "forward_m"), ("right_curve", "right_m"), ("backward_curve", "backward_m")):
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
    table = np.zeros(len(boss.moves), dtype_of(BossMoveRow))
    parts: list[Array] = []
    hits: list[Any] = []
    throws: list[tuple[float, ...]] = []
    stretches: list[tuple[float, ...]] = []
    row_count = 0
    for row, move in zip(table, boss.moves, strict=True):
        curve = _boss_curve(boss, move, tick_s)
        row["first_row"], row["rows"] = row_count, len(curve)
        row_count += len(curve)
        parts.append(curve)
        row["first_hit"], row["hits"] = len(hits), len(move.hits)
        row["hits_from_s"] = min((hit.from_s for hit in move.hits), default=NEVER_S)
        row["hits_to_s"] = max((hit.to_s for hit in move.hits), default=NEVER_S)
        row["shift_scale"] = max((_shift_scale(boss, move, hit) for hit in move.hits), default=1.0)
        row["time_scale"] = _scale(boss, f"move.{move.name}.end_s", boss.randomize.timing * move.end_s)
        hits.extend(_hit_rows(spec, move, reactions))
        row["first_throw"], row["throws"] = len(throws), len(move.throws)
        by_time = sorted(move.throws, key=lambda throw: throw.at_s)
        throws.extend((throw.at_s, damage_of(throw.power, spec.player.defence)) for throw in by_time)
        row["first_stretch"], row["stretches"] = len(stretches), len(move.stretches)
        stretches.extend(
            (part.from_s, part.to_s, part.arrive_m, *part.range_m, part.reference_m) for part in move.stretches
        )
        row["animation"] = spec.boss_animations.index(move.animation) if move.animation in spec.boss_animations else -1
        row["kind"] = MOVE_KINDS.index(move.kind)
        row["link_s"], row["label_end_s"], row["end_s"] = move.link_s, move.label_end_s, move.end_s
        row["blend_s"], row["grab_move"] = move.blend_s, _index(names, move.grab_move)
        row["hop_s"], row["count"] = move.hop_s, move.count
    return {
        "boss_moves": table, "boss_curves": np.concatenate(parts), "hits": np.array(hits, dtype_of(HitRow)),
        "throws": np.array(throws, dtype_of(ThrowRow)), "stretches": np.array(stretches, dtype_of(StretchRow)),
    }  # fmt: skip


def _boss_curve(boss: Boss, move: BossMove, tick_s: float) -> Array:
    count = math.ceil(move.end_s / tick_s) + 3
    times_s = np.arange(count) * tick_s
    curve = np.zeros((count, 4))
    if move.motion is not None:
        motion = _unroll(move.motion, move.end_s)
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


def _unroll(motion: Motion, end_s: float) -> Motion:
    if motion.loop_from_s is None:
        return motion
    skipped = round((motion.loop_from_s - motion.first_s) / motion.step_s) + 1
    needed = math.ceil(end_s / motion.step_s) + 1

    def extended(metres: tuple[float, ...]) -> tuple[float, ...]:
        loop = metres[skipped:]
        return metres + loop * (needed // len(loop) + 1) if metres else ()

    return Motion(motion.first_s, motion.step_s, extended(motion.forward_m), extended(motion.right_m))


def _scale(boss: Boss, key: str, bound: float) -> float:
    """How much of a bound of the randomisation is left for a number that recordings told within an interval."""
    if key not in boss.known or bound <= 0.0:
        return 1.0
    low, high = boss.known[key]
    return min(1.0, 0.5 * (high - low) / bound)


def _shift_scale(boss: Boss, move: BossMove, hit: Hit) -> float:
    return _scale(boss, f"move.{move.name}.hit.{hit.name}.from_s", boss.randomize.hit_shift_s)


def _statuses(player: Player) -> Array:
    rows = [
        (
            status.resistance, status.points_per_s / TICKS_PER_S, status.lasts_s, status.hp_share * player.hp,
            status.damage_taken_factor, status.sp_per_s_lost / TICKS_PER_S,
        )
        for status in player.statuses
    ]  # fmt: skip
    return np.array(rows, dtype_of(StatusRow))


def _hit_rows(spec: FightSpec, move: BossMove, reactions: list[str]) -> list[Any]:
    boss, statuses = spec.boss, [status.name for status in spec.player.statuses]
    rows = np.zeros(len(move.hits), dtype_of(HitRow))
    for row, hit in zip(rows, move.hits, strict=True):
        for key in ("from_s", "to_s", "reach_m", "inner_m", "half_width_m", "offset_m", "push_m", "parriable", "sweep"):
            row[key] = getattr(hit, key)
        row["damage"] = damage_of(hit.power, spec.player.defence)
        path = f"move.{move.name}.hit.{hit.name}"
        row["reach_scale"] = _scale(boss, f"{path}.reach_m", boss.randomize.reach * hit.reach_m)
        power = "attack" if hit.power.attack_type else "damage"
        row["damage_scale"] = _scale(boss, f"{path}.{power}", boss.randomize.damage * getattr(hit.power, power))
        row["arc_from_rad"], row["arc_to_rad"] = (math.radians(side) for side in hit.arc_deg)
        row["blade_rad"] = math.radians(hit.blade_deg)
        row["shot_m_per_tick"] = hit.speed_m_per_s / TICKS_PER_S
        row["shot_radius_m"], row["homing_rad"] = hit.radius_m, math.radians(hit.homing_deg)
        row["guard_sp"], row["shape"] = hit.guard_stamina, HIT_SHAPES.index(hit.shape)
        row["reaction"] = reactions.index(hit.reaction)
        row["builds_up"] = bool(hit.status)
        for name, points in hit.status.items():
            row["build_up"][statuses.index(name)] = points
    return list(rows)


def _decisions(spec: FightSpec, moves: Array) -> dict[str, Any]:
    """Tables of the decisions; the rows of the moves get their interrupts."""
    boss, statuses = spec.boss, [status.name for status in spec.player.statuses]
    names = [move.name for move in boss.moves]
    phases = np.zeros(len(boss.phases), dtype_of(PhaseRow))
    rules: list[Any] = []
    acts: list[Any] = []
    chains: list[tuple[Any, ...]] = []
    links: list[tuple[Any, ...]] = []
    retreats: list[tuple[float, ...]] = []
    interrupts: list[tuple[Any, ...]] = []
    for number, (row, phase) in enumerate(zip(phases, boss.phases, strict=True)):
        after = phase.after
        row["change_hp_share"], row["change_move"] = phase.changes_at_hp_share, _index(names, phase.change_move)
        row["first_approach_m"], row["down_weight"] = phase.first_approach_m, phase.down_approach_weight
        row["first_approach_lo_s"], row["first_approach_hi_s"] = phase.first_approach_s
        row["front_rad"], row["within_gap_m"] = math.radians(after.front_deg), after.within_gap_m
        row["back_off_m"], row["back_off_s"] = after.back_off_m, after.back_off_s
        row["near_gap_m"] = after.near_gap_m
        row["near_lo_s"], row["near_hi_s"] = after.near_s
        row["far_lo_s"], row["far_hi_s"] = after.far_s
        row["aura_status"] = -1
        if phase.aura is not None:
            row["aura_status"], row["aura_m"] = statuses.index(phase.aura.status), phase.aura.within_m
            row["aura_per_tick"] = phase.aura.points_per_s / TICKS_PER_S
        row["first_rule"], row["rules"], row["first_act"] = len(rules), len(phase.rules), len(acts)
        row["first_retreat"], row["retreats"] = len(retreats), len(after.retreats)
        retreats.extend((*retreat.gap_m, retreat.chance, *retreat.lasts_s) for retreat in after.retreats)
        act_names = [act.name for act in phase.acts]
        timers = _timers(phase)
        for place, rule in enumerate(phase.rules):
            packed = np.zeros((), dtype_of(RuleRow))
            packed["bearing_lo"], packed["bearing_hi"] = (math.radians(side) for side in rule.bearing_deg)
            packed["beyond_rad"] = math.radians(rule.beyond_deg)
            packed["gap_lo"], packed["gap_hi"] = rule.gap_m
            packed["every_s"] = rule.every_s
            packed["timer"] = timers.index(rule.timer or place) if rule.every_s > 0.0 else -1
            packed["count_over"], packed["ready"] = rule.count_over, _index(act_names, rule.ready)
            packed["after"] = len(rule.after)
            packed["after_moves"][: len(rule.after)] = [names.index(name) for name in rule.after]
            for name, weight in rule.weights.items():
                packed["weights"][TURN_ACT if name == TURN else act_names.index(name)] = weight
            rules.append(packed)
        for move_row, name in zip(moves, names, strict=True):
            move_row["first_interrupt"][number] = len(interrupts)
            for interrupt in phase.interrupts:
                if name in interrupt.moves:
                    act_row = row["first_act"] + act_names.index(interrupt.act) if interrupt.act else -1
                    sides = (math.radians(side) for side in interrupt.bearing_deg)
                    given = (interrupt.at_s, interrupt.to_s, *sides, *interrupt.gap_m, interrupt.chance)
                    nexts = (act_row, _index(names, interrupt.move), interrupt.standing, interrupt.cooled)
                    interrupts.append((*given, names.index(name), *nexts))
            move_row["interrupts"][number] = len(interrupts) - move_row["first_interrupt"][number]
        for act in phase.acts:
            packed = _act_row(boss, act, act_names)
            packed["first_chain"], packed["chains"] = len(chains), len(act.chains)
            acts.append(packed)
            for chain in act.chains:
                chains.append((chain.weight, len(links), len(chain.links)))
                links.extend(
                    (link.within_m, *(math.radians(side) for side in link.bearing_deg), names.index(link.move))
                    for link in chain.links
                )
    return {
        "phases": phases, "rules": np.array(rules, dtype_of(RuleRow)), "acts": np.array(acts, dtype_of(ActRow)),
        "chains": np.array(chains, dtype_of(ChainRow)), "links": np.array(links, dtype_of(LinkRow)),
        "retreats": np.array(retreats, dtype_of(RetreatRow)),
        "interrupts": np.array(interrupts, dtype_of(InterruptRow)),
    }  # fmt: skip


def _timers(phase: Phase) -> list[str | int]:
    """The timers of a phase's rules: a name that rules share, or the number of the one rule that has it."""
    named = (rule.timer or number for number, rule in enumerate(phase.rules) if rule.every_s > 0.0)
    return list(dict.fromkeys(named))


def _act_row(boss: Boss, act: Act, act_names: list[str]) -> Any:
    row = np.zeros((), dtype_of(ActRow))
    move = boss.moves[boss.move_index(act.first_move)]
    for key in ("approach_m", "approach_s", "cooldown_s", "after_odds", "cooling_weight", "gives_up", "until_m"):
        row[key] = getattr(act, key)
    row["move"] = boss.move_index(act.first_move)
    row["lasts_lo_s"], row["lasts_hi_s"] = act.lasts_s
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
        row["room_forward_m"], row["room_right_m"] = act.room_m * forward / length, act.room_m * right / length
    row["has_then"], row["then_within_rad"] = bool(act.then), math.radians(act.then_within_deg)
    for name, weight in act.then.items():
        row["then_weights"][act_names.index(name)] = weight
    return row


def _edges(spec: FightSpec) -> Array:
    rows = [(edge.out_x, edge.out_y, edge.offset_m, edge.cliff) for edge in spec.arena.edges]
    return np.array(rows, dtype_of(EdgeRow))


def _constants(spec: FightSpec, roll_curves: dict[str, int]) -> Array:
    sources = {name: value for name, value in vars(Constants).items() if callable(value)}
    constants = np.zeros(1, dtype_of(Constants))
    for name, value in {**{name: source(spec) for name, source in sources.items()}, **roll_curves}.items():
        constants[name][0] = value
    return constants
