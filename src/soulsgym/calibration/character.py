"""The player's own numbers, as far as recordings show them: walking, rolling, what his moves cost, how he recovers.

A variant changes the boss alone, so these are told beside the numbers of the character's file, not written.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from soulsgym.calibration.estimate import Estimate, Path
from soulsgym.calibration.timeline import Array, Bout
from soulsgym.calibration.timing import SPREAD
from soulsgym.labels import label_begins
from soulsgym.recordings.player_metrics import gap_m
from soulsgym.sim.pack import cumulative
from soulsgym.sim.tables import TICKS_PER_S, TICKS_PER_STEP
from soulsgym.spec import FightSpec
from soulsgym.spec.player import Roll

STEADY_S = 0.4
"""Walking has its full speed by then."""
ROLL_STEPS = 6
"""Steps of a roll that are measured, from its second record on: before, the motion from before it lives on."""
FIRST_M = {"forward_m": "first_forward_m", "right_m": "first_sideways_m", "left_m": "first_sideways_m"}
"""What a roll moves before the first of its steps, which is part of its curve."""
STRAIGHT = math.tan(math.radians(8.0))
SLANT = 0.01
"""A way that is so far from straight is that much shorter."""
WAYS = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))
"""Forward, right, backward, left."""
CLEAR_M = 0.3
"""Room between both that rules out contact."""
FEWEST, LEAST_M = 3, 0.01
FLOOR_SP = 0.5
"""Stamina is shown without its fraction: a difference is off by this much in the mean."""


def character_estimates(bouts: Sequence[Bout], spec: FightSpec) -> list[Estimate]:
    """What was seen of the character, beside what his file says."""
    says, seen = _file_numbers(spec), defaultdict[Path, list[float]](list)
    for bout in bouts:
        clear = gap_m(bout.fights) > spec.boss.least_distance_m + CLEAR_M
        for path, value in (*_walks(bout, spec, clear), *_rolls(bout, spec, clear, says), *_stamina(bout, spec)):
            seen[path].append(value)
    found = []
    for path, values in sorted(seen.items(), key=lambda pair: str(pair[0])):
        if len(values) >= FEWEST and path in says:
            # Metres by the median, since a wall may hold him; stamina by the mean, since its fraction is not shown.
            is_stamina = path[-1] in ("sp_cost", "sp_per_s")
            value = float(np.mean(values) if is_stamina else np.median(values))
            spread = float(np.std(values) if is_stamina else 1.4826 * np.median(np.abs(np.array(values) - value)))
            half = SPREAD * max(spread, FLOOR_SP if is_stamina else LEAST_M) / math.sqrt(len(values))
            half = half if is_stamina else max(half, SLANT * value)
            found.append(Estimate.rounded(path, value, value - half, value + half, len(values), says[path]))
    return found


def _file_numbers(spec: FightSpec) -> dict[Path, float]:
    player, step_s = spec.player, spec.player.label_s_per_step
    says: dict[Path, float] = {("walk", "full_m", way): metres for way, metres in enumerate(player.walk.full_m)}
    says |= {("body", "sp_per_s"): player.sp_per_s, ("roll", "sp_cost"): player.roll.sp_cost}
    says |= {("move", move.name, "sp_cost"): move.sp_cost for move in player.moves}
    # On average, the first record shows half a step of it.
    says |= {("roll", key): _rolled_m(player.roll, key, 1.5 * step_s, (1.5 + ROLL_STEPS) * step_s) for key in FIRST_M}
    return says


def _rolled_m(roll: Roll, key: str, from_s: float, to_s: float) -> float:
    """Metres of a roll between two times of its label, as the file has them."""
    metres = (getattr(roll, FIRST_M[key]), *getattr(roll, key))
    first, last = cumulative(roll.first_s, roll.step_s, metres, np.array([from_s, to_s]))
    return float(last - first)


def _steps(bout: Bout) -> Array:
    """Forward and right metres of the player in every step, in the frame of his heading after it."""
    pose = bout.fights["player_pose"].astype(np.float64)
    moved, sine, cosine = np.diff(pose[:, :2], axis=0), np.sin(pose[1:, 3]), np.cos(pose[1:, 3])
    forward, right = -sine * moved[:, 0] - cosine * moved[:, 1], -cosine * moved[:, 0] + sine * moved[:, 1]
    return np.concatenate([np.zeros((1, 2)), np.stack([forward, right], axis=1)])


def _way(forward: float, right: float) -> int:
    """Which of the four main ways a motion goes; -1 for one between them."""
    for way, (ahead, aside) in enumerate(WAYS):
        along, across = forward * ahead + right * aside, forward * aside - right * ahead
        if along > 0.0 and abs(across) < STRAIGHT * along:
            return way
    return -1


def _walks(bout: Bout, spec: FightSpec, clear: Array) -> Iterator[tuple[Path, float]]:
    names = [label.name for label in spec.player_animations]
    label, shown_s = bout.fights["player_animation"], bout.fights["player_animation_duration"][:, 0]
    steps, actions = _steps(bout), bout.actions
    walks = (label == names.index("Move")) & clear
    for i in range(2, len(steps) - 1):
        steady = walks[i - 1] and walks[i] and shown_s[i - 1] >= STEADY_S and shown_s[i] > shown_s[i - 1]
        if steady and actions[i] == actions[i - 1] == actions[i - 2]:
            way = _way(*steps[i])
            if way >= 0:
                yield ("walk", "full_m", way), float(np.hypot(*steps[i]))


def _rolls(bout: Bout, spec: FightSpec, clear: Array, says: Mapping[Path, float]) -> Iterator[tuple[Path, float]]:
    """Metres of whole rolls, as if the first record showed as much of each as `says` supposes."""
    names = [label.name for label in spec.player_animations]
    rolls = [names.index(name) for name in spec.player.roll.animations]
    label, shown_s = bout.fights["player_animation"], bout.fights["player_animation_duration"][:, 0]
    begins, hp, steps = label_begins(label, shown_s), bout.fights["player_hp"][:, 0], _steps(bout)
    for first in np.flatnonzero(begins & np.isin(label, rolls)).tolist():
        part = slice(first, first + ROLL_STEPS + 2)
        whole = len(label[part]) == ROLL_STEPS + 2 and not begins[first + 1 : part.stop].any()
        if whole and first and clear[part].all() and np.ptp(hp[part]) == 0.0 and shown_s[first] < 1.0:
            forward, right = steps[first + 2 : part.stop].sum(axis=0)
            way = _way(forward, right)
            if way in (0, 1, 3):
                key = {0: "forward_m", 1: "right_m", 3: "left_m"}[way]
                seen_m = _rolled_m(spec.player.roll, key, shown_s[first + 1], shown_s[part.stop - 1])
                yield ("roll", key), math.hypot(forward, right) * says["roll", key] / seen_m


def _stamina(bout: Bout, spec: FightSpec) -> Iterator[tuple[Path, float]]:
    """Costs, in the steps in which nothing else changes the stamina, and what a step at rest brings."""
    names, player = [label.name for label in spec.player_animations], spec.player
    free = {names.index("Idle"), names.index("Move")}
    rolls = {names.index(name) for name in player.roll.animations}
    paid = {names.index(move.animation): move for move in player.moves if move.sp_cost > 0.0}
    label, shown_s = bout.fights["player_animation"].tolist(), bout.fights["player_animation_duration"][:, 0].tolist()
    stamina, hp = bout.fights["player_sp"][:, 0].tolist(), bout.fights["player_hp"][:, 0].tolist()
    for i in range(2, len(label) - 1):
        if hp[i] < hp[i - 1]:  # a blow against the shield costs stamina, too
            continue
        lost, same = stamina[i - 1] - stamina[i], label[i] == label[i - 1] and shown_s[i] > shown_s[i - 1]
        if label[i] in free and label[i - 1] in free and label[i - 2] in free and stamina[i] < player.sp:
            yield ("body", "sp_per_s"), -lost * TICKS_PER_S / TICKS_PER_STEP
        elif label[i] in rolls and not same and stamina[i - 1] >= player.sp:
            yield ("roll", "sp_cost"), lost
        elif label[i] in paid and same:
            move = paid[label[i]]
            due = sum(shown_s[i - 1] + 0.02 < time_s < shown_s[i] - 0.02 for time_s in move.sp_s)
            if due and shown_s[i] < move.regen_from_s:
                yield ("move", move.name, "sp_cost"), lost * len(move.sp_s) / due
