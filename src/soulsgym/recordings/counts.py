"""Recordings without positions: what the boss did, how often it hit, how far away the player was; no places, no angles.

They cannot be replayed, since nobody knows where anybody stood. But the policy that was recorded can be played in the
simulator for as long, and the distributions of both compared. A file is JSON: the policy, and either the counts
themselves or the steps they are counted from.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.actions import CONTROL, Button
from soulsgym.engine import standard_starts
from soulsgym.errors import RecordingError
from soulsgym.sim.engine import SimEngine
from soulsgym.sim.hidden import ROLL_MOVE
from soulsgym.spec import FightSpec
from soulsgym.state import Outcome

STEP_S = 0.1
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
DODGE_S = 0.40
"""A roll that begins at most this long before a blow should avoid it."""
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Policy:
    """The recorded policy: forward is held, and in each `step_s` a roll is pressed with a chance; health is refilled.

    A press that comes too early counts for `buffer_s`.
    """

    roll_chance: float
    step_s: float
    files: int
    file_s: float
    buffer_s: float = 0.3


@dataclass
class Counts:
    """How often what happened, and how far away the player was; `follow_ups` are shares by move."""

    starts: dict[str, float]
    transitions: dict[tuple[str, str], float]
    hits: dict[str, float]
    hits_per_file: float
    damage_per_file: float
    distance_quantiles: dict[float, float]
    follow_ups: dict[str, tuple[tuple[str, ...], float]] = field(default_factory=dict)
    dodges: tuple[int, int] = (0, 0)
    """Blows that a roll begun in time met, and how many of them it avoided."""


@dataclass(frozen=True)
class CountedRecording:
    """A recording without positions: whom it is of, what the player did, and what was counted."""

    boss: str
    policy: Policy
    counts: Counts


def total_variation(first: Mapping[Any, float], second: Mapping[Any, float]) -> float:
    """Half of the sum of the differences of two distributions, each given by counts."""
    sums = [sum(counts.values()) or 1.0 for counts in (first, second)]
    keys = first.keys() | second.keys()
    return 0.5 * sum(abs(first.get(key, 0.0) / sums[0] - second.get(key, 0.0) / sums[1]) for key in keys)


def follow_up_rate(counts: Counts, move: str, followers: Sequence[str]) -> float:
    """The share of a move's ends after which one of the followers came."""
    ends = sum(number for (first, _), number in counts.transitions.items() if first == move)
    return sum(counts.transitions.get((move, name), 0.0) for name in followers) / ends if ends else 0.0


# ---------------------------------------------------------------- files


def has_no_positions(file: Path | str) -> bool:
    """Is the file a recording without positions?"""
    try:
        with Path(file).open("rb") as opened:
            if opened.read(2) == b"PK":
                return False
        content = json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and "policy" in content


def read_counts(file: Path | str) -> CountedRecording:
    """A recording without positions; every problem is a RecordingError."""
    try:
        content = json.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise RecordingError(f"{file}: cannot be read: {error.strerror}; give a recording") from error
    except ValueError as error:
        raise RecordingError(f"{file}: is not JSON: {error}") from error
    policy = _policy(file, content)
    boss = content.get("boss", "")
    if not isinstance(boss, str):
        raise RecordingError(f"{file}: boss = {boss!r} is not a name; give one, or leave it out")
    return CountedRecording(boss, policy, _counted(file, content) if "steps" in content else _given(file, content))


def _given(file: Path | str, content: Mapping[str, Any]) -> Counts:
    try:
        return Counts(
            starts={name: float(number) for name, number in content["starts"].items()},
            transitions={
                (first, second): float(number)
                for first, seconds in content["transitions"].items()
                for second, number in seconds.items()
            },
            hits={name: float(number) for name, number in content["hits"].items()},
            hits_per_file=float(content["hits_per_file"]),
            damage_per_file=float(content["damage_per_file"]),
            distance_quantiles={float(share): float(m) for share, m in content["distance_quantiles"].items()},
            follow_ups={
                name: (tuple(followers), float(rate))
                for name, (followers, rate) in content.get("follow_ups", {}).items()
            },
        )
    except KeyError as error:
        raise RecordingError(f"{file}: {error.args[0]} is missing; give the counts or the steps") from error
    except (AttributeError, TypeError, ValueError) as error:
        raise RecordingError(f"{file}: counts are not numbers by name: {error}") from error


def _policy(file: Path | str, content: Any) -> Policy:
    given = content.get("policy") if isinstance(content, dict) else None
    if not isinstance(given, dict):
        raise RecordingError(f"{file}: policy is missing; say what the player did: roll_chance, step_s, files, file_s")
    known = Policy.__dataclass_fields__
    for key, value in given.items():
        if key not in known:
            raise RecordingError(f"{file}: policy.{key} is not known; give {', '.join(known)}")
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 <= value <= 1e6:
            raise RecordingError(f"{file}: policy.{key} = {value!r} is not possible; give a number from 0")
    try:
        policy = Policy(**given)
    except TypeError as error:
        raise RecordingError(f"{file}: policy lacks a number: {error}") from error
    if policy.roll_chance > 1.0 or policy.step_s <= 0.0 or policy.files < 1 or policy.file_s <= 0.0:
        raise RecordingError(f"{file}: policy = {given} is not possible; give a chance, a time and a number of files")
    return policy


def _counted(file: Path | str, content: Mapping[str, Any]) -> Counts:
    """Counts of steps: lists of the boss's label, the distance and the damage taken, one number or name for each."""
    steps = content["steps"]
    try:
        labels = [str(label) for label in steps["boss_animation"]]
        files = np.asarray(steps["file"], np.int64)
        distance = np.asarray(steps["distance_m"], np.float64)
        damage = np.asarray(steps["damage_taken"], np.float64)
    except KeyError as error:
        raise RecordingError(f"{file}: steps.{error.args[0]} is missing; give a list") from error
    except (TypeError, ValueError) as error:
        raise RecordingError(f"{file}: steps are not lists of numbers: {error}") from error
    if not len(labels) == len(files) == len(distance) == len(damage) or not labels:
        raise RecordingError(f"{file}: steps are {len(labels)} labels beside {len(distance)} distances; give as many")
    names = sorted(set(labels))
    index = np.array([names.index(label) for label in labels])
    columns = [np.flatnonzero(files == one) for one in np.unique(files)]
    return _count([(index[rows], distance[rows], damage[rows], index[rows]) for rows in columns], names)


# ---------------------------------------------------------------- the simulator


def play_policy(spec: FightSpec, policy: Policy, *, repeat: int = 1, seed: int = 1) -> Counts:
    """Play the policy as long as it was recorded, `repeat` times, and count the same."""
    n, steps = policy.files * repeat, round(policy.file_s / STEP_S)
    engine = SimEngine(spec, n)
    generator = np.random.default_rng(seed)
    engine.reset(np.ones(n, bool), standard_starts(n), generator.integers(0, 1 << 62, n, np.uint64))
    chance = 1.0 - (1.0 - policy.roll_chance) ** (STEP_S / policy.step_s)
    presses = generator.random((steps, n)) < chance
    controls = np.zeros(n, CONTROL)
    pending = np.zeros(n)
    shape = (steps, n)
    labels, hit_by = np.zeros(shape, np.int16), np.zeros(shape, np.int16)
    distance, damage = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    blows = _blows(spec)
    dodges = np.zeros(2, np.int64)
    before_move, before_s = engine.fights["boss_move"].copy(), engine.fights["boss_move_s"].copy()
    first_roll = 8  # of the twenty actions in the mask
    for step in range(steps):
        pending = np.where(presses[step], policy.buffer_s + STEP_S, pending - STEP_S)
        rolls = (pending > 0.0) & (engine.fights["action_mask"][:, first_roll] == 1)
        pending[rolls] = 0.0
        controls["button"] = np.where(rolls, int(Button.ROLL), int(Button.NONE))
        engine.step(controls)
        fights = engine.fights
        engine.hidden["player_hp"] = spec.player.hp
        labels[step], damage[step] = fights["boss_animation"], fights["damage_taken"]
        hit_by[step] = fights["hit_by"]
        distance[step] = np.hypot(*(fights["player_pose"] - fights["boss_pose"])[:, :2].T)
        dodges += _dodged(fights, before_move, before_s, blows)
        before_move[:], before_s[:] = fights["boss_move"], fights["boss_move_s"]
    if (engine.fights["outcome"] != Outcome.RUNNING).any():
        raise RecordingError("the recorded policy died in the simulator, so it cannot be compared; check the damages")
    names = [*spec.boss_animations, "unknown"]
    of_move = np.array(
        [names.index(move.animation) if move.animation in names else len(names) - 1 for move in spec.boss.moves]
    )
    hitting = np.where(hit_by >= 0, of_move[hit_by], -1)
    labels[labels < 0] = len(names) - 1
    counts = _count([(labels[:, i], distance[:, i], damage[:, i], hitting[:, i]) for i in range(n)], names)
    counts.dodges = int(dodges[0]), int(dodges[1])
    return counts


def _blows(spec: FightSpec) -> list[tuple[int, float]]:
    return [
        (number, hit.from_s)
        for number, move in enumerate(spec.boss.moves)
        for hit in move.hits
        if hit.shape != "shot" and not hit.sweep
    ]


def _dodged(fights: Array, before_move: Array, before_s: Array, blows: Sequence[tuple[int, float]]) -> Array:
    """Of this step: blows that came while a roll was at most `DODGE_S` old, and how many of them did not land."""
    found = np.zeros(2, np.int64)
    rolling = (fights["player_move"] == ROLL_MOVE) | (fights["hit_by"] >= 0)
    for move, at_s in blows:
        came = (
            (fights["boss_move"] == move) & (before_move == move) & (before_s < at_s) & (fights["boss_move_s"] >= at_s)
        )
        if came.any():
            rows = fights[came & rolling]
            age_s = rows["player_move_s"] - (rows["boss_move_s"] - at_s)
            met = (rows["player_move"] == ROLL_MOVE) & (age_s >= 0.0) & (age_s <= DODGE_S)
            found += int(met.sum()), int((met & (rows["hit_by"] != move)).sum())
    return found


def _count(files: Sequence[tuple[Array, Array, Array, Array]], names: Sequence[str]) -> Counts:
    """Counts of files: labels, distances, damage taken, and the label that a damage is due to."""
    starts: Counter[str] = Counter()
    transitions: Counter[tuple[str, str]] = Counter()
    hits: Counter[str] = Counter()
    for labels, _, damage, hitting in files:
        changes = np.flatnonzero(np.diff(labels)) + 1
        shown = [names[label] for label in labels[np.concatenate([[0], changes])]]
        starts.update(shown)
        transitions.update(pairwise(shown))
        hits.update(names[label] for label in hitting[(damage > 0.0) & (hitting >= 0)])
    distance = np.concatenate([distance for _, distance, _, _ in files])
    return Counts(
        starts=dict(starts), transitions=dict(transitions), hits=dict(hits),
        hits_per_file=sum(int((damage > 0.0).sum()) for _, _, damage, _ in files) / len(files),
        damage_per_file=float(sum(damage.sum() for _, _, damage, _ in files)) / len(files),
        distance_quantiles={share: float(np.quantile(distance, share)) for share in QUANTILES},
    )  # fmt: skip


# ---------------------------------------------------------------- the comparison

VARIATION_LIMITS = {"starts": 0.08, "hits": 0.10, "transitions": 0.20}
RATE_LIMIT, DISTANCE_LIMIT_M, FOLLOW_UP_LIMIT, DODGE_LIMIT = 0.10, 0.5, 0.08, 0.03


@dataclass(frozen=True)
class Comparison:
    """One distance between recording and simulator, and the most it should be."""

    name: str
    text: str
    value: float
    limit: float

    @property
    def ok(self) -> bool:
        """Is it small enough?"""
        return self.value <= self.limit


def compare(recorded: Counts, played: Counts) -> list[Comparison]:
    """All distances between a recording and the simulator."""
    rows = [
        Comparison(
            f"total variation of {name}", "", total_variation(getattr(recorded, name), getattr(played, name)), most
        )
        for name, most in VARIATION_LIMITS.items()
    ]
    for name, mine, its in (
        ("hits in a file", recorded.hits_per_file, played.hits_per_file),
        ("health lost in a file", recorded.damage_per_file, played.damage_per_file),
    ):
        away = abs(its / mine - 1.0) if mine else float(its > 0.0)
        rows.append(Comparison(name, f"{mine:.1f}, simulated {its:.1f}", away, RATE_LIMIT))
    for share, mine in recorded.distance_quantiles.items():
        its = played.distance_quantiles[share]
        text = f"{mine:.2f} m, simulated {its:.2f} m"
        rows.append(Comparison(f"distance, quantile {share:g}", text, abs(its - mine), DISTANCE_LIMIT_M))
    for move, (followers, mine) in recorded.follow_ups.items():
        its = follow_up_rate(played, move, followers)
        text = f"{mine:.0%}, simulated {its:.0%}"
        rows.append(Comparison(f"follow-ups of {move}", text, abs(its - mine), FOLLOW_UP_LIMIT))
    if played.dodges[0]:
        missed = 1.0 - played.dodges[1] / played.dodges[0]
        text = f"{played.dodges[1]} of {played.dodges[0]} blows avoided"
        rows.append(Comparison(f"rolls up to {DODGE_S:g} s before a blow", text, missed, DODGE_LIMIT))
    return rows
