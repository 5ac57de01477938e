"""How far the simulated boss is from the recorded one: M8 to M11."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.actions import ACTION_CONTROLS, NOTHING
from soulsgym.engine import standard_starts
from soulsgym.geometry import wrap_angle
from soulsgym.recordings.metrics import GOALS, Metric
from soulsgym.recordings.player_metrics import gap_m
from soulsgym.recordings.replay import Episode, Replay
from soulsgym.recordings.script import follow_ups
from soulsgym.sim.engine import SimEngine
from soulsgym.sim.hidden import HIDDEN
from soulsgym.sim.kernels import time_label
from soulsgym.sim.replay import GUARDED_BLOW, NO_BLOW
from soulsgym.sim.tables import TICKS_PER_STEP
from soulsgym.spec import FightSpec

SAME_HIT_S = 0.3
"""A simulated and a recorded hit of one move within this time are the same."""
STEADY_S = 0.45
"""Walking has its full speed by then."""
LONGEST_S = 30.0
FEWEST_SPEEDS = 5
"""A speed seen in fewer steps than this is not measured."""
NEAR_LIMIT = 0.02
AWAY_M = 8.0
TURNING_STEPS = 20

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class RecordedHit:
    """A blow that landed in the recording: of which move, between which of its times, and what it cost."""

    tick: float
    move: int
    earliest_s: float
    latest_s: float
    damage: float


def boss_metrics(episodes: list[Episode], replay: Replay) -> list[Metric]:
    """M8 to M11 over all episodes."""
    return [
        _motion_metric(episodes, replay.spec),
        _link_metric(episodes, replay),
        _hit_metric(episodes, replay),
        _speed_metric(episodes, replay.spec),
    ]


def recorded_steps(episode: Episode) -> Array:
    """Forward, right [m] and turn [rad] of the recorded boss in every step, in the frame of its heading before it."""
    pose = episode.fights["boss_pose"].astype(float)
    steps = np.zeros((len(pose), 3))
    angle, moved = pose[:-1, 3], np.diff(pose[:, :2], axis=0)
    steps[1:, 0] = -np.sin(angle) * moved[:, 0] - np.cos(angle) * moved[:, 1]
    steps[1:, 1] = -np.cos(angle) * moved[:, 0] + np.sin(angle) * moved[:, 1]
    steps[1:, 2] = wrap_angle(np.diff(pose[:, 3]))
    return steps


def _rms(values: Array) -> float:
    return math.sqrt(float(np.mean(values**2)))


def _motion_metric(episodes: list[Episode], spec: FightSpec) -> Metric:
    forward, right, yaw, moves, free = [], [], [], [], []
    for episode in episodes:
        real, sim = recorded_steps(episode), episode.boss_steps
        known = np.zeros(len(real), bool)
        for span in episode.script.spans:
            known[span.first : span.last + 1] = span.known
        known[0] = False
        forward.append((sim["forward"] - real[:, 0])[known])
        right.append((sim["right"] - real[:, 1])[known])
        yaw.append(np.degrees(wrap_angle(sim["yaw"] - real[:, 2]))[known])
        moves.append(sim["move"][known])
        free.append((gap_m(episode.fights) > spec.boss.least_distance_m + 0.1)[known])
    f, r, y, m = (np.concatenate(parts) for parts in (forward, right, yaw, moves))
    if not len(f):
        return Metric(GOALS["M8"], None, 0)
    apart = np.concatenate(free)
    both = np.stack([f, r])
    details = {"forward": _rms(f), "right": _rms(r), "yaw deg": _rms(y), "median yaw deg": float(np.median(np.abs(y)))}
    if apart.any():
        details["apart"] = _rms(both[:, apart])
    if not apart.all():
        details["in contact"] = _rms(both[:, ~apart])
    for move in np.unique(m):
        details[spec.boss.moves[move].name] = _rms(both[:, m == move])
    return Metric(GOALS["M8"], _rms(both), len(f), details)


def _link_metric(episodes: list[Episode], replay: Replay) -> Metric:
    moves, links = replay.spec.boss.moves, follow_ups(replay.spec.boss)
    linked: dict[tuple[int, int], list[float]] = {}
    ended: dict[int, list[float]] = {}
    for episode in episodes:
        for span, following in itertools.pairwise(episode.script.spans):
            if not span.known or span.first == 0:
                continue
            if following.linked:
                linked.setdefault((span.move, following.move), []).append(span.lasted_s)
            elif moves[span.move].kind in ("attack", "turn") and not moves[span.move].grab_move:
                ended.setdefault(span.move, []).append(span.lasted_s)
    details: dict[str, float] = {}
    differences = []
    for (move, following_move), times in sorted(linked.items()):
        row, within_m = links[move, following_move]
        shown_s = _label_time(replay, move, row, 1, 0.9 * within_m)
        differences.append(abs(shown_s - float(np.median(times))))
        details[f"{moves[move].name} -> {moves[following_move].name}"] = differences[-1]
    for move, times in sorted(ended.items()):
        away_m = replay.spec.boss.least_distance_m
        details[f"{moves[move].name} label"] = abs(_label_time(replay, move, 0, 0, away_m) - float(np.median(times)))
    samples = sum(len(times) for times in linked.values())
    return Metric(GOALS["M9"], max(differences, default=None), samples, details)


def _label_time(replay: Replay, move: int, row: int, links: int, away_m: float) -> float:
    state = np.zeros(1, HIDDEN)
    return float(time_label(replay.template, state, replay.tables, move, row, links, away_m, LONGEST_S))


def recorded_hits(episode: Episode, tick_s: float) -> list[RecordedHit]:
    """The blows that landed, each at the begin of the reaction it causes or, without one, within a step."""
    fights = episode.fights
    lost = np.maximum(0.0, -np.diff(fights["player_hp"][:, 0], prepend=fights["player_hp"][0, 0]))
    shown_s = fights["player_animation_duration"][:, 0].astype(float)
    step_s = TICKS_PER_STEP * tick_s
    hits, spent = [], set()
    for i in range(1, len(fights)):
        if episode.blows["move"][i] in (NO_BLOW, GUARDED_BLOW):
            continue
        # A reaction that fills its whole first step begins with it, and its damage shows one observation before.
        step = i if lost[i] > 0.0 or shown_s[i] < step_s - 1.5 * tick_s else i - 1
        spent.add(step)
        hits.append(_hit(episode, i, float(shown_s[i]), float(shown_s[i]), float(lost[step]), tick_s))
    for i in np.flatnonzero(lost > 0.0).tolist():
        if i not in spent:
            hits.append(_hit(episode, i, step_s, 0.0, float(lost[i]), tick_s))
    return sorted(hits, key=lambda hit: hit.tick)


def _hit(episode: Episode, i: int, longest_ago_s: float, ago_s: float, damage: float, tick_s: float) -> RecordedHit:
    """The hit that came within a span of time before the observation `i`."""
    tick = TICKS_PER_STEP * i - ago_s / tick_s
    move = episode.script.move_at(tick - 1.0)
    latest_s = _move_time_s(episode, i, move, ago_s, TICKS_PER_STEP * tick_s)
    return RecordedHit(tick, move, latest_s - (longest_ago_s - ago_s), latest_s, damage)


def _move_time_s(episode: Episode, i: int, move: int, ago_s: float, step_s: float) -> float:
    """The time of a move some time before the observation `i`, by the clock of its label."""
    shown_s = episode.fights["boss_animation_duration"][:, 0].astype(float)
    for index, since_s in ((i, -ago_s), (i - 1, step_s - ago_s)):
        for span in episode.script.spans:
            if span.move == move and span.first <= index <= span.last and shown_s[index] + since_s >= span.lead_s:
                return float(shown_s[index] + since_s - span.lead_s)
    began_at = episode.script.entries["tick"][episode.script.entries["move"] == move]
    tick = TICKS_PER_STEP * (i - ago_s / step_s)
    return float(tick - began_at[began_at <= tick].max(initial=0)) * step_s / TICKS_PER_STEP


def _hit_metric(episodes: list[Episode], replay: Replay) -> Metric:
    differences, wrong_damage, false_hits, missed = [], 0, 0, 0
    details: dict[str, float] = {}
    moves = replay.spec.boss.moves
    for episode in episodes:
        left = list(range(len(episode.boss_hits)))
        for real in recorded_hits(episode, replay.tick_s):
            near = [
                (abs(float(episode.boss_hits["tick"][k]) - real.tick), k)
                for k in left
                if _same(episode, k, real, replay)
            ]
            if not near:
                missed += 1
                continue
            k = min(near)[1]
            left.remove(k)
            sim = episode.boss_hits[k]
            apart_s = max(real.earliest_s - float(sim["move_s"]), float(sim["move_s"]) - real.latest_s, 0.0)
            differences.append(apart_s)
            wrong_damage += int(abs(float(sim["damage"]) - real.damage) > 0.5)
            details[moves[real.move].name] = max(details.get(moves[real.move].name, 0.0), apart_s)
        false_hits += len(left)
    details |= {"wrong damage": wrong_damage, "missed": missed, "false": false_hits}
    faults = {"hits that the simulator does not repeat": missed, "hits with another damage": wrong_damage}
    fault = ", ".join(f"{what}: {count}" for what, count in faults.items() if count)
    return Metric(GOALS["M10"], max(differences, default=None), len(differences), details, fault)


def _same(episode: Episode, k: int, real: RecordedHit, replay: Replay) -> bool:
    """Are a simulated and a recorded hit the same?"""
    sim = episode.boss_hits[k]
    return bool(sim["move"] == real.move and abs(float(sim["tick"]) - real.tick) * replay.tick_s < SAME_HIT_S)


def _speed_metric(episodes: list[Episode], spec: FightSpec) -> Metric:
    walk = spec.boss.move_index("walk")
    kinds = np.array([move.kind for move in spec.boss.moves])
    walked, turned = [], []
    for episode in episodes:
        recorded, steps = recorded_steps(episode), episode.boss_steps
        steady = (steps["move"] == walk) & (steps["move_s"] >= STEADY_S)
        lengths = np.stack([np.hypot(recorded[:, 0], recorded[:, 1]), np.hypot(steps["forward"], steps["right"])])
        walked.append(lengths[:, steady])
        moving = np.isin(kinds[steps["move"]], ("walk", "strafe")) & (np.arange(len(steps)) > 0)
        turned.append(np.degrees(np.abs(recorded[moving, 2])))
    walks, turns = np.concatenate(walked, axis=1), _saturated(np.concatenate(turned))
    details: dict[str, float] = {"n walk m": walks.shape[1], "n turn deg": len(turns)}
    differences = []
    if walks.shape[1] >= FEWEST_SPEEDS:
        details["walk m recorded"], details["walk m simulated"] = (float(np.mean(lengths)) for lengths in walks)
        differences.append(100.0 * abs(details["walk m simulated"] / details["walk m recorded"] - 1.0))
    if len(turns):
        # Not from the replay: the recorded boss turns in jerks, and following them the simulated one seldom must hurry.
        details["turn deg recorded"], details["turn deg simulated"] = float(np.median(turns)), _turn_limit_deg(spec)
        differences.append(100.0 * abs(details["turn deg simulated"] / details["turn deg recorded"] - 1.0))
    samples = int(details["n walk m"] + details["n turn deg"])
    return Metric(GOALS["M11"], max(differences, default=None), samples, details)


def _saturated(speeds: Array) -> Array:
    """The largest of the speeds, if enough of them gather at a limit; the very largest may be an outlier."""
    if len(speeds) < FEWEST_SPEEDS:
        return speeds[:0]
    limit = np.sort(speeds)[-2]
    gathered: Array = speeds[np.abs(speeds - limit) <= NEAR_LIMIT * limit]
    return gathered if len(gathered) >= FEWEST_SPEEDS and limit > 0.0 else gathered[:0]


def _turn_limit_deg(spec: FightSpec) -> float:
    """How far the simulated boss, walking, turns in one step towards a player so far round that he must hurry."""
    engine = SimEngine(spec, 1)
    starts = standard_starts(1)
    x_m, y_m, _ = spec.arena.boss_start
    # A little farther round and he would turn on the spot instead.
    bearing = math.radians(0.9 * spec.boss.turn_animation_beyond_deg)
    place = (x_m - AWAY_M * math.sin(bearing), y_m - AWAY_M * math.cos(bearing), 0.0)
    starts["boss_pose"], starts["player_pose"] = (x_m, y_m, 0.0), place
    engine.reset(np.ones(1, np.bool_), starts, np.zeros(1, np.uint64))
    # His first decision is to walk up to the player.
    largest, before = 0.0, 0.0
    for _ in range(TURNING_STEPS):
        engine.step(ACTION_CONTROLS[[NOTHING]])
        yaw = float(engine.fights["boss_pose"][0, 3])
        if engine.fights["boss_move"][0] == spec.boss.move_index("walk"):
            largest = max(largest, abs(wrap_angle(yaw - before)))
        before = yaw
    return math.degrees(largest)
