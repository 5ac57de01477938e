"""How the boss moves and turns: root motion by time, and how fast he turns with the player.

The recorded fights are replayed on the simulator with the boss's moves forced to where they were seen to begin. What
its boss does in a step too much or too little is shared out among the stretches of the motion's curve that the step
covers: a linear regression whose prior is the curve of the file. So is the turning, over the steps in which he does not
come to face the player; in all others he may have waited for him.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.calibration.estimate import Estimate
from soulsgym.calibration.timeline import Bout
from soulsgym.calibration.timing import SPREAD
from soulsgym.geometry import wrap_angle
from soulsgym.recordings.boss_metrics import recorded_steps
from soulsgym.recordings.player_metrics import gap_m
from soulsgym.recordings.recording import Recording
from soulsgym.recordings.replay import Episode, Replay
from soulsgym.sim.tables import TICKS_PER_S, TICKS_PER_STEP
from soulsgym.spec import FightSpec
from soulsgym.spec.boss import BossMove, Motion

CLEAR_M = 0.35
"""Room between both that rules out contact."""
FEWEST_STEPS, FEWEST_TURNS = 6, 3
SURE_RAD = math.radians(2.0)
"""A player this far from where the boss looks, at least, is not yet faced."""
CHASE_ROUNDS, CHASE_STEP, LEAST_SLOPE_M, MOST_CHASE = 3, 0.05, 0.02, 0.99
CHASE_UNSURE = 0.005
"""Share of a chase that a replay cannot tell: the player is known from step to step alone."""
WALK_KINDS = ("walk", "retreat", "strafe")

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Prior:
    """Standard deviations of a curve before anything is seen, and the least noise of what is."""

    scale: float
    """Of a factor of the whole curve."""
    own_share: float
    """Of each stretch of it beside that, as a share of it and beyond."""
    own: float
    noise: float


MOTION = Prior(scale=0.3, own_share=0.15, own=0.01, noise=0.01)
TURNING = Prior(scale=0.4, own_share=0.1, own=0.001, noise=0.002)


@dataclass(frozen=True)
class Steps:
    """All steps in which one known move was under way from beginning to end, far from contact."""

    move: npt.NDArray[np.int64]
    until_s: Array
    """Time in the move at the end of the step."""
    real: Array  # forward, right [m], turn [rad]
    replayed: Array


def read_steps(recordings: Sequence[Recording], spec: FightSpec) -> Steps:
    """Replay the recordings on `spec` and put what the boss did beside what its boss does."""
    step_s = spec.player.label_s_per_step
    replay = Replay(spec)
    parts: list[tuple[Array, ...]] = []
    for recording in recordings:
        for episode in replay.follow(recording):
            parts.append(_steps(episode, spec, step_s))
    if not parts:
        return Steps(np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 3)), np.zeros((0, 3)))
    return Steps(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _steps(episode: Episode, spec: FightSpec, step_s: float) -> tuple[Array, ...]:
    real, sim = recorded_steps(episode), episode.boss_steps
    replayed = np.stack([sim["forward"], sim["right"], sim["yaw"]], axis=1)
    real[:, 2] = wrap_angle(real[:, 2] - replayed[:, 2]) + replayed[:, 2]
    known = np.zeros(len(real), np.bool_)
    for span in episode.script.spans:
        known[span.first : span.last + 1] = span.known
    gap = gap_m(episode.fights)
    clear = np.minimum(gap, np.concatenate([gap[:1], gap[:-1]])) > spec.boss.least_distance_m + CLEAR_M
    kinds = np.array([move.kind for move in spec.boss.moves])
    whole = (sim["move_s"] >= step_s - 1e-6) & (kinds[sim["move"]] != "transform")
    whole[0] = False
    use = known & clear & whole & _inside(episode.fights["boss_pose"], spec.boss.radius_m, spec)
    return sim["move"][use].astype(np.int64), sim["move_s"][use].astype(float), real[use], replayed[use]


def _inside(poses: Array, radius_m: float, spec: FightSpec) -> npt.NDArray[np.bool_]:
    """Where no edge of the arena holds a body."""
    room = np.full(len(poses), np.inf)
    for edge in spec.arena.edges:
        room = np.minimum(room, edge.offset_m - poses[:, :2].astype(float) @ np.array([edge.out_x, edge.out_y]))
    return room > radius_m + CLEAR_M


def motion_estimates(steps: Steps, spec: FightSpec) -> list[Estimate]:
    """Curves of the moves that were seen."""
    found, step_s = [], spec.player.label_s_per_step
    for index, move in enumerate(spec.boss.moves):
        rows = steps.move == index
        if move.motion is None or rows.sum() < FEWEST_STEPS:
            continue
        until_s, missing = steps.until_s[rows], (steps.real - steps.replayed)[rows]
        for axis, key in ((0, "forward_m"), (1, "right_m")):
            curve = np.array(getattr(move.motion, key))
            if not len(curve) or (key == "forward_m" and move.motion.chase_share):
                continue
            cells = _cells(move.motion, len(curve), until_s - step_s, until_s)
            change, spread, n = _regression(cells, missing[:, axis], curve, MOTION)
            value = curve + change
            low, high = value - SPREAD * spread, value + SPREAD * spread
            path = ("move", move.name, "motion", key)
            found.append(Estimate(path, _rounded(value), _rounded(low), _rounded(high), n, curve.tolist()))
    return found


def chase_estimates(recordings: Sequence[Recording], spec: FightSpec) -> list[Estimate]:
    """How far leaps carry the boss after the player: one factor for all shares of a move.

    Gauss-Newton: a replay with larger shares tells what a larger factor would do to every step.
    """
    chasing = [index for index, move in enumerate(spec.boss.moves) if move.motion and move.motion.chase_share]
    factors, spreads, counts = (np.full(len(spec.boss.moves), value) for value in (1.0, np.inf, 0))
    for _ in range(CHASE_ROUNDS if chasing else 0):
        now, more = (read_steps(recordings, _chasing(spec, factors + add)) for add in (0.0, CHASE_STEP))
        for index in chasing:
            rows = now.move == index
            slope = (more.replayed - now.replayed)[rows, 0] / CHASE_STEP
            missing, told = (now.real - now.replayed)[rows, 0], np.abs(slope) > LEAST_SLOPE_M
            counts[index] = told.sum()
            if counts[index] < FEWEST_STEPS:
                continue
            noise = max(MOTION.noise, 1.4826 * float(np.median(np.abs(missing[told]))))
            told &= np.abs(missing) < 10.0 * noise
            square = float((slope[told] ** 2).sum()) / noise**2 + 1.0 / MOTION.scale**2
            pull = float((slope[told] * missing[told]).sum()) / noise**2 + (1.0 - factors[index]) / MOTION.scale**2
            factors[index] = np.clip(factors[index] + pull / square, 0.5, 2.0)
            spreads[index] = math.hypot(1.0 / math.sqrt(square), CHASE_UNSURE)
    found = []
    for index in chasing:
        if counts[index] >= FEWEST_STEPS:
            motion = _chasing(spec, np.ones(len(factors))).boss.moves[index].motion
            assert motion is not None
            shares = np.array(motion.chase_share)
            value, low, high = (
                _rounded(np.clip(shares * (factors[index] + side * spreads[index]), 0.0, MOST_CHASE))
                for side in (0.0, -SPREAD, SPREAD)
            )
            path = ("move", spec.boss.moves[index].name, "motion", "chase_share")
            found.append(Estimate(path, value, low, high, int(counts[index]), _rounded(shares)))
    return found


def _chasing(spec: FightSpec, factors: Array) -> FightSpec:
    """The boss with other shares."""

    def scaled(move: BossMove, factor: float) -> BossMove:
        if move.motion is None or not move.motion.chase_share:
            return move
        shares = tuple(min(factor * share, MOST_CHASE) for share in move.motion.chase_share)
        return replace(move, motion=replace(move.motion, chase_share=shares))

    moves = tuple(scaled(move, float(factor)) for move, factor in zip(spec.boss.moves, factors, strict=True))
    return replace(spec, boss=replace(spec.boss, moves=moves))


def _rounded(values: Array) -> list[float]:
    return [round(float(value), 4) for value in values]


def _cells(motion: Motion, count: int, from_s: Array, to_s: Array) -> Array:
    """By step and stretch of the curve: which share of the stretch the step covers."""
    edges = np.concatenate([[0.0], motion.first_s + motion.step_s * np.arange(count)])
    if motion.loop_from_s is not None:
        return _looped(motion, edges, from_s, to_s)
    return _shares(edges, from_s, to_s)


def _shares(edges: Array, from_s: Array, to_s: Array) -> Array:
    low, high = np.maximum(from_s[:, None], edges[:-1]), np.minimum(to_s[:, None], edges[1:])
    return np.asarray(np.maximum(high - low, 0.0) / np.diff(edges))


def _looped(motion: Motion, edges: Array, from_s: Array, to_s: Array) -> Array:
    """The same where the curve goes on from `loop_from_s` when it has come to its end."""
    begin, end = float(motion.loop_from_s or 0.0), edges[-1]
    total = _shares(edges, np.minimum(from_s, end), np.minimum(to_s, end))
    over_from, over_to = np.maximum(from_s, end) - end, np.maximum(to_s, end) - end
    length = end - begin
    for turn in range(int(over_to.max(initial=0.0) / length) + 1):
        low = np.clip(over_from - turn * length, 0.0, length) + begin
        high = np.clip(over_to - turn * length, 0.0, length) + begin
        total += _shares(edges, low, high)
    return total


def _regression(cells: Array, missing: Array, curve: Array, kind: Prior) -> tuple[Array, Array, int]:
    """What to add to a curve, the standard deviation of it, and how many steps tell."""
    prior = np.outer(curve, curve) * kind.scale**2 + np.diag((kind.own_share * np.abs(curve) + kind.own) ** 2)
    covered = cells.sum(axis=1) > 1e-9
    cells, missing = cells[covered], missing[covered]
    if len(missing) < FEWEST_STEPS:
        return np.zeros(len(curve)), np.sqrt(np.diag(prior)), len(missing)
    keep = np.ones(len(missing), np.bool_)
    change, covariance = np.zeros(len(curve)), prior
    for _ in range(3):  # without what lies far out: a contact or a wall that nobody saw
        rest = missing[keep] - cells[keep] @ change
        noise = max(kind.noise, 1.4826 * float(np.median(np.abs(rest - np.median(rest)))))
        gain = prior @ cells[keep].T
        inner = np.linalg.inv(cells[keep] @ gain + noise**2 * np.eye(int(keep.sum())))
        change = gain @ inner @ missing[keep]
        covariance = prior - gain @ inner @ gain.T
        keep = np.abs(missing - cells @ change) < max(5.0 * noise, 0.05)
    return change, np.sqrt(np.maximum(np.diag(covariance), 0.0)), int(keep.sum())


def turning_estimates(bouts: Sequence[Bout], spec: FightSpec) -> list[Estimate]:
    """How fast the boss turns in each stretch of a move, and while he walks.

    It is told by the steps in which he never came to face the player: there he turned as fast as he can.
    """
    tick_s, found = spec.player.label_s_per_step / TICKS_PER_STEP, []
    rows: dict[int, list[tuple[Array, float]]] = defaultdict(list)
    active = [_active_tracks(move, tick_s) for move in spec.boss.moves]
    for bout in bouts:
        turned, chases = _turns(bout, spec)
        for span, after in pairwise(bout.spans):
            if span.move < 0 or not span.is_sure or not active[span.move].any():
                continue
            low, high = np.searchsorted(bout.ticks, (span.start, after.start + 1))
            for i in range(low + 1, high):
                ticks = np.arange(bout.ticks[i - 1], bout.ticks[i]) - span.start
                if chases[i] and ticks[-1] < len(active[span.move]):
                    rows[span.move].append((active[span.move][ticks].sum(axis=0), turned[i]))
    walked: list[tuple[Array, float]] = []
    for index, seen in sorted(rows.items()):
        move = spec.boss.moves[index]
        if move.kind in WALK_KINDS:
            walked += seen
            continue
        speeds = [track.deg_per_s for track in move.tracks]
        paths = [("move", move.name, "track", name, "deg_per_s") for name in _track_names(spec, move)]
        found += _speeds(paths, speeds, seen)
    return found + _speeds([("body", "turn_deg_per_s")], [spec.boss.turn_deg_per_s], walked)


def _active_tracks(move: BossMove, tick_s: float) -> Array:
    """By tick and track: does it decide how fast he turns? Of several at a time the fastest does."""
    times_s = (np.arange(math.ceil(move.end_s / tick_s)) + 0.5) * tick_s
    if move.kind in WALK_KINDS:
        return np.ones((len(times_s), 1))
    speeds = np.array([[track.deg_per_s * (track.from_s <= time_s < track.to_s) for track in move.tracks]
                       for time_s in times_s]).reshape(len(times_s), len(move.tracks))  # fmt: skip
    active = np.zeros_like(speeds)
    if move.tracks:
        fastest = speeds.argmax(axis=1)
        active[np.arange(len(speeds)), fastest] = speeds.max(axis=1) > 0.0
    return active


def _turns(bout: Bout, spec: FightSpec) -> tuple[Array, npt.NDArray[np.bool_]]:
    """By record: how far he turned towards the player in the step before it, and whether he surely never faced him."""
    boss, player = (bout.fights[key].astype(np.float64) for key in ("boss_pose", "player_pose"))
    apart = boss[:, :2] - player[:, :2]
    to_player, away = np.arctan2(apart[:, 0], apart[:, 1]), np.hypot(*apart.T)
    off = wrap_angle(to_player - boss[:, 3])[:-1]
    turned = wrap_angle(np.diff(boss[:, 3])) * np.sign(off)
    left = np.abs(off) - np.abs(turned) - np.abs(wrap_angle(np.diff(to_player)))
    clear = np.minimum(away[:-1], away[1:])
    # Facing somebody in one tick, he may be a little off in the next, by what both move.
    sure = SURE_RAD + np.hypot(*np.diff(apart, axis=0).T) / TICKS_PER_STEP / clear
    chases = (left > sure) & (np.abs(off) < np.pi - sure) & (clear > spec.boss.least_distance_m + CLEAR_M)
    # A player at a wall is put back into the arena after he was looked at.
    chases &= _inside(player, spec.player.radius_m, spec)[1:]
    return np.append(0.0, turned), np.append(False, chases)


def _speeds(
    paths: Sequence[tuple[str, ...]], speeds: Sequence[float], seen: Sequence[tuple[Array, float]]
) -> list[Estimate]:
    """The speeds of a move's tracks from ticks of each in a step, and how far he turned in it."""
    if len(seen) < FEWEST_TURNS:
        return []
    ticks, turned = np.array([row for row, _ in seen]), np.array([one for _, one in seen])
    before = np.radians(speeds) / TICKS_PER_S
    change, spread, _ = _regression(ticks, turned - ticks @ before, before, TURNING)
    found = []
    for column, path in enumerate(paths):
        # One that was never seen turns with the others of its move.
        n = int((ticks[:, column] > 0.0).sum()) or len(seen)
        if spread[column] < 0.5 * TURNING.scale * before[column]:
            turn = (before + change)[column] + np.array([0.0, -SPREAD, SPREAD]) * spread[column]
            value, low, high = np.maximum(np.degrees(turn) * TICKS_PER_S, 0.0)
            found.append(Estimate.rounded(path, value, low, high, n, speeds[column], weighed=True))
    return found


def _track_names(spec: FightSpec, move: BossMove) -> list[str]:
    start = f"move.{move.name}.track."
    names = [key.removeprefix(start).split(".")[0] for key in spec.boss.sources if key.startswith(start)]
    return list(dict.fromkeys(names))
