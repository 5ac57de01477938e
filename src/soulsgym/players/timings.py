"""What a good player knows of a fight by heart: when the blows of each label come, and what may follow."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from soulsgym.spec import FightSpec
from soulsgym.spec.boss import BossMove, Hit, Motion, Phase

Table = npt.NDArray[np.float64]
NEVER_S = np.inf
WALKING_KINDS = ("idle", "walk", "strafe", "retreat", "turn")
"""Kinds of moves whose labels tell nothing of what comes."""
QUICK_SHARE = 0.25
"""A quarter of the attacks, by their weights, are quicker than what counts as a quick one."""


@dataclass(frozen=True)
class LightAttack:
    """What a player knows of his first light attack."""

    reach_m: float
    lunge_m: float  # how far it carries him before its blow begins
    sp_cost: float
    roll_after_s: float  # when he may roll again


@dataclass(frozen=True)
class BossTimings:
    """Times [s] since the real start of a move, by phase and label; row 0 of the labels is the unknown one, -1."""

    blow_from_s: Table  # phase x label x blow; NEVER_S where there is none
    blow_to_s: Table
    reach_m: Table  # phase x label x blow
    left: Table  # phase x label x blow; bearings between which it is dangerous [rad]
    right: Table
    link_s: Table  # phase x label; when a follow-up would begin, NEVER_S if none can
    follow_s: Table  # phase x label; first blow of the fastest follow-up, counted from its start
    decided_s: Table  # phase x label; when the next attack is chosen, and shown, at the earliest
    end_s: Table
    first_s: Table  # phase; the fastest blow out of standing
    quick_s: Table  # phase; a quick one, see QUICK_SHARE


def light_attack(spec: FightSpec) -> LightAttack:
    """The first light attack of the fight's player, as far as it reaches the fight's boss."""
    move = next(move for move in spec.player.moves if move.name == "light_1")
    reach_m = max((strike.reach_m for strike in move.strikes), default=0.0) + spec.boss.bulk_m
    begins_s = min((strike.from_s for strike in move.strikes), default=0.0)
    return LightAttack(reach_m, _moved_m(move.motion, begins_s), move.sp_cost, roll_after_s(spec, move.name))


def _moved_m(motion: Motion | None, until_s: float) -> float:
    """Metres forward from the start of a motion."""
    if motion is None or not motion.forward_m:
        return 0.0
    ends_s = motion.first_s + motion.step_s * np.arange(len(motion.forward_m))
    return float(np.interp(until_s, [0.0, *ends_s], [0.0, *np.cumsum(motion.forward_m)]))


def roll_after_s(spec: FightSpec, move_name: str) -> float:
    """Seconds after the beginning of a move of the player at which he may roll."""
    animation = next(move.animation for move in spec.player.moves if move.name == move_name)
    return next(label.roll_s for label in spec.player_animations if label.name == animation)


def boss_timings(spec: FightSpec) -> BossTimings:
    """The timings of the fight's boss."""
    phases, labels = spec.boss.phases, spec.boss_animations
    blows = max(1, *(len(move.hits) for move in spec.boss.moves))
    shape = (len(phases), 1 + len(labels))
    known = BossTimings(
        blow_from_s=np.full((*shape, blows), NEVER_S),
        blow_to_s=np.full((*shape, blows), -NEVER_S),
        reach_m=np.zeros((*shape, blows)),
        left=np.full((*shape, blows), -np.pi),
        right=np.full((*shape, blows), np.pi),
        link_s=np.full(shape, NEVER_S),
        follow_s=np.zeros(shape),
        decided_s=np.full(shape, NEVER_S),
        end_s=np.full(shape, NEVER_S),
        first_s=np.full(len(phases), NEVER_S),
        quick_s=np.full(len(phases), NEVER_S),
    )
    walking = {move.animation for move in spec.boss.moves if move.kind in WALKING_KINDS}
    for p, phase in enumerate(phases):
        moves = _moves_of(spec, phase)
        known.first_s[p], known.quick_s[p] = _first_and_quick_s(phase, moves)
        for name, move in moves.items():
            if move.animation in walking:
                continue
            row = p, 1 + (labels.index(move.animation) if move.animation in labels else -1)
            followers = _followers(phase, name)
            if followers:
                known.link_s[row] = move.link_s
                known.follow_s[row] = min(_first_blow_s(moves[follower]) for follower in followers)
            known.decided_s[row], known.end_s[row] = move.label_end_s, move.end_s
            for b, hit in enumerate(sorted(move.hits, key=lambda hit: hit.from_s)):
                known.blow_from_s[*row, b], known.blow_to_s[*row, b] = hit.from_s, hit.to_s
                known.reach_m[*row, b] = hit.reach_m + abs(hit.offset_m)
                known.left[*row, b], known.right[*row, b] = _sides(hit)
    return known


def _sides(hit: Hit) -> tuple[float, float]:
    """The bearings between which a blow is dangerous [rad]; a sweep is wherever it comes by."""
    if hit.shape == "thrust":
        return -np.pi / 2, np.pi / 2
    if hit.shape == "disc" or hit.sweep:
        return -np.pi, np.pi
    return float(np.radians(hit.arc_deg[0])), float(np.radians(hit.arc_deg[1]))


def _moves_of(spec: FightSpec, phase: Phase) -> dict[str, BossMove]:
    names = {act.first_move for act in phase.acts} | {phase.change_move}
    names |= {link.move for act in phase.acts for chain in act.chains for link in chain.links}
    names |= {interrupt.move for interrupt in phase.interrupts}
    return {move.name: move for move in spec.boss.moves if move.name in names}


def _first_and_quick_s(phase: Phase, moves: dict[str, BossMove]) -> tuple[float, float]:
    """The first blow of the fastest act, and of the one below which lies the share QUICK_SHARE of all weights."""
    weights: dict[str, float] = {}
    for rule in phase.rules:
        for name, weight in () if rule.every_s else rule.weights.items():
            weights[name] = weights.get(name, 0.0) + weight
    blows = sorted((_first_blow_s(moves[act.first_move]), weights.get(act.name, 0.0)) for act in phase.acts)
    if not blows:
        return NEVER_S, NEVER_S
    shares = np.cumsum([weight for _, weight in blows])
    quick = int(np.searchsorted(shares, QUICK_SHARE * shares[-1]))
    return blows[0][0], blows[quick][0]


def _followers(phase: Phase, name: str) -> set[str]:
    """The moves that some chain of the phase lets follow a move."""
    found = set()
    for act in phase.acts:
        for chain in act.chains:
            names = (act.first_move, *(link.move for link in chain.links))
            found |= {after for before, after in pairwise(names) if before == name}
    return found


def _first_blow_s(move: BossMove) -> float:
    return min((hit.from_s for hit in move.hits), default=NEVER_S)
