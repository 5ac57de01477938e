"""How far the simulated boss is from the recorded one: M8 to M11."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.movesets import Moveset
from soulsgym.movesets.pack import TICKS_PER_STEP
from soulsgym.recordings.metrics import GOALS, Metric
from soulsgym.recordings.player_metrics import wrapped
from soulsgym.recordings.replay import Episode, Replay
from soulsgym.recordings.script import Script, follow_ups
from soulsgym.sim.hidden import HIDDEN
from soulsgym.sim.kernels import time_label
from soulsgym.sim.replay import GUARDED_BLOW, NO_BLOW

SAME_HIT_S = 0.3
"""A simulated and a recorded hit of one move within this time are the same."""
STEADY_S = 0.45
"""Walking has its full speed by then."""
LONGEST_S = 30.0
FEWEST_SPEEDS = 3
"""A speed seen in fewer steps than this is not measured."""
NEAR_LIMIT = 0.05

Array = npt.NDArray[Any]
_GOAL = {goal.id: goal for goal in GOALS}


@dataclass(frozen=True)
class RecordedHit:
    """A blow that landed in the recording: between two moments, in ticks, and what it cost."""

    earliest: float
    latest: float
    move: int
    damage: float


def boss_metrics(episodes: list[Episode], replay: Replay) -> list[Metric]:
    """M8 to M11 over all episodes."""
    return [
        _motion_metric(episodes, replay.moveset),
        _link_metric(episodes, replay),
        _hit_metric(episodes, replay),
        _speed_metric(episodes, replay.moveset),
    ]


def recorded_steps(episode: Episode) -> Array:
    """Forward, right [m] and turn [rad] of the recorded boss in every step, in the frame of its heading before it."""
    pose = episode.fights["boss_pose"].astype(float)
    steps = np.zeros((len(pose), 3))
    angle, moved = pose[:-1, 3], np.diff(pose[:, :2], axis=0)
    steps[1:, 0] = -np.sin(angle) * moved[:, 0] - np.cos(angle) * moved[:, 1]
    steps[1:, 1] = -np.cos(angle) * moved[:, 0] + np.sin(angle) * moved[:, 1]
    steps[1:, 2] = wrapped(np.diff(pose[:, 3]))
    return steps


def _rms(values: Array) -> float:
    return math.sqrt(float(np.mean(values**2)))


def _motion_metric(episodes: list[Episode], moveset: Moveset) -> Metric:
    forward, right, yaw, moves, free = [], [], [], [], []
    for episode in episodes:
        real, sim = recorded_steps(episode), episode.boss_steps
        known = np.zeros(len(real), bool)
        for stay in episode.script.stays:
            known[stay.first : stay.last + 1] = stay.known
        known[0] = False
        gap = np.hypot(*(episode.fights["player_pose"][:, :2] - episode.fights["boss_pose"][:, :2]).T)
        forward.append((sim["forward"] - real[:, 0])[known])
        right.append((sim["right"] - real[:, 1])[known])
        yaw.append(np.degrees(wrapped(sim["yaw"] - real[:, 2]))[known])
        moves.append(sim["move"][known])
        free.append((gap > moveset.player.least_distance_m + 0.1)[known])
    f, r, y, m = (np.concatenate(parts) for parts in (forward, right, yaw, moves))
    if not len(f):
        return Metric(_GOAL["M8"], None, 0)
    apart = np.concatenate(free)
    both = np.stack([f, r])
    details = {"forward": _rms(f), "right": _rms(r), "yaw deg": _rms(y), "median yaw deg": float(np.median(np.abs(y)))}
    if apart.any():
        details["apart"] = _rms(both[:, apart])
    if not apart.all():
        details["in contact"] = _rms(both[:, ~apart])
    for move in np.unique(m):
        details[moveset.boss.moves[move].name] = _rms(both[:, m == move])
    return Metric(_GOAL["M8"], _rms(both), len(f), details)


def _link_metric(episodes: list[Episode], replay: Replay) -> Metric:
    moves, links = replay.moveset.boss.moves, follow_ups(replay.moveset.boss)
    linked: dict[tuple[int, int], list[float]] = {}
    ended: dict[int, list[float]] = {}
    for episode in episodes:
        stays = episode.script.stays
        for stay, following in zip(stays, stays[1:], strict=False):
            if not stay.known or stay.first == 0:
                continue
            if following.linked:
                linked.setdefault((stay.move, following.move), []).append(stay.lasted_s)
            elif moves[stay.move].kind in ("attack", "turn") and not moves[stay.move].grab_move:
                ended.setdefault(stay.move, []).append(stay.lasted_s)
    details: dict[str, float] = {}
    differences = []
    for (move, following_move), times in sorted(linked.items()):
        row, within_m = links[move, following_move]
        shown_s = _label_time(replay, move, row, 1, 0.9 * within_m)
        differences.append(abs(shown_s - float(np.median(times))))
        details[f"{moves[move].name} -> {moves[following_move].name}"] = differences[-1]
    for move, times in sorted(ended.items()):
        away_m = replay.moveset.player.least_distance_m
        details[f"{moves[move].name} label"] = abs(_label_time(replay, move, 0, 0, away_m) - float(np.median(times)))
    samples = sum(len(times) for times in linked.values())
    return Metric(_GOAL["M9"], max(differences, default=None), samples, details)


def _label_time(replay: Replay, move: int, row: int, links: int, away_m: float) -> float:
    state = np.zeros(1, HIDDEN)
    return float(time_label(replay.template, state, replay.tables, move, row, links, away_m, LONGEST_S))


def recorded_hits(episode: Episode, tick_s: float) -> list[RecordedHit]:
    """The blows that landed, each at the begin of the reaction it causes or, without one, within a step."""
    fights = episode.fights
    lost = np.maximum(0.0, -np.diff(fights["player_hp"][:, 0], prepend=fights["player_hp"][0, 0]))
    shown_s = fights["player_animation_duration"][:, 0]
    hits, spent = [], set()
    for i in range(1, len(fights)):
        if episode.blows["move"][i] in (NO_BLOW, GUARDED_BLOW):
            continue
        at = TICKS_PER_STEP * i - float(shown_s[i]) / tick_s
        # A reaction that fills its whole first step begins with it, and its damage shows one observation before.
        step = i if lost[i] > 0.0 or at > TICKS_PER_STEP * (i - 1) + 1.5 else i - 1
        spent.add(step)
        hits.append(_hit(episode.script, at, at, float(lost[step])))
    for i in np.flatnonzero(lost > 0.0):
        if int(i) not in spent:
            hits.append(_hit(episode.script, TICKS_PER_STEP * (int(i) - 1), TICKS_PER_STEP * int(i), float(lost[i])))
    return sorted(hits, key=lambda hit: hit.latest)


def _hit(script: Script, earliest: float, latest: float, damage: float) -> RecordedHit:
    return RecordedHit(earliest, latest, script.move_at(latest - 1.0), damage)


def _hit_metric(episodes: list[Episode], replay: Replay) -> Metric:
    differences, wrong_damage, false_hits, missed = [], 0, 0, 0
    details: dict[str, float] = {}
    moves = replay.moveset.boss.moves
    for episode in episodes:
        # A simulated blow lands at the end of its tick.
        open_hits = [(float(row["tick"]) + 1.0, int(row["move"]), float(row["damage"])) for row in episode.boss_hits]
        for real in recorded_hits(episode, replay.tick_s):
            near = [
                (max(real.earliest - at, at - real.latest, 0.0), at, move, damage)
                for at, move, damage in open_hits
                if move == real.move
            ]
            if not near or min(near)[0] * replay.tick_s > SAME_HIT_S:
                missed += 1
                continue
            apart, at, move, damage = min(near)
            open_hits.remove((at, move, damage))
            differences.append(apart * replay.tick_s)
            wrong_damage += int(abs(damage - real.damage) > 0.5)
            name = moves[move].name
            details[name] = max(details.get(name, 0.0), differences[-1])
        false_hits += len(open_hits)
    details |= {"wrong damage": wrong_damage, "missed": missed, "false": false_hits}
    fault = "" if not (wrong_damage or missed) else f"{wrong_damage} with wrong damage, {missed} missed"
    return Metric(_GOAL["M10"], max(differences, default=None), len(differences), details, fault)


def _speed_metric(episodes: list[Episode], moveset: Moveset) -> Metric:
    walk = moveset.boss.move_index("walk")
    kinds = np.array([move.kind for move in moveset.boss.moves])
    walked, turned = [], []
    for episode in episodes:
        recorded, steps = recorded_steps(episode), episode.boss_steps
        steady = (steps["move"] == walk) & (steps["move_s"] >= STEADY_S)
        lengths = np.stack([np.hypot(recorded[:, 0], recorded[:, 1]), np.hypot(steps["forward"], steps["right"])])
        walked.append(lengths[:, steady])
        moving = np.isin(kinds[steps["move"]], ("walk", "strafe")) & (np.arange(len(steps)) > 0)
        turned.append(np.degrees(np.abs(np.stack([recorded[:, 2], steps["yaw"]])))[:, moving])
    details: dict[str, float] = {}
    walks, turns = np.concatenate(walked, axis=1), np.concatenate(turned, axis=1)
    differences = []
    for name, middle, real_speeds, sim_speeds in (
        ("walk m", np.mean, walks[0], walks[1]),
        ("turn deg", np.median, _saturated(turns[0]), _saturated(turns[1])),
    ):
        details[f"n {name}"] = len(real_speeds)
        if len(real_speeds) >= FEWEST_SPEEDS and len(sim_speeds):
            real, sim = float(middle(real_speeds)), float(middle(sim_speeds))
            details[f"{name} recorded"], details[f"{name} simulated"] = real, sim
            differences.append(100.0 * abs(sim / real - 1.0))
    samples = int(details["n walk m"] + details["n turn deg"])
    return Metric(_GOAL["M11"], max(differences, default=None), samples, details)


def _saturated(speeds: Array) -> Array:
    """The largest of the speeds, which gather at a limit; the very largest may be an outlier and does not decide."""
    if len(speeds) < FEWEST_SPEEDS:
        return speeds
    limit = np.sort(speeds)[-2]
    return speeds[(speeds >= (1.0 - NEAR_LIMIT) * limit) & (speeds <= (1.0 + NEAR_LIMIT) * limit)]
