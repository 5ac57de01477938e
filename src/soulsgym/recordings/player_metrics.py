"""How far the simulated player is from the recorded one: M1 to M7."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.geometry import wrap_angle
from soulsgym.labels import label_begins, player_labels
from soulsgym.recordings.metrics import GOALS, Metric
from soulsgym.recordings.replay import Episode
from soulsgym.sim.replay import NO_BLOW
from soulsgym.spec import FightSpec

RESTART_STEPS = 3
NEAR, FAR, FARTHEST = 5, 10, 20
ROLL_STEPS = 7
TOUCHING_M = 0.15
"""Bodies closer than this to their least distance may be pushing each other."""

Array = npt.NDArray[Any]


def mean_of(values: Array) -> float | None:
    """The mean, or None of nothing."""
    return float(np.mean(values)) if len(values) else None


def player_metrics(episodes: list[Episode], spec: FightSpec) -> list[Metric]:
    """M1 to M7 over all episodes."""
    one = np.concatenate([_position_errors(episode, 1, 1) for episode in episodes])
    return [
        _roll_metric(episodes, spec),
        Metric(GOALS["M2"], mean_of(one), len(one), _spread("", one)),
        _far_metric(episodes),
        *_state_metrics(episodes),
        _heading_metric(episodes, spec),
    ]


def _spread(prefix: str, errors: Array) -> dict[str, float]:
    if not len(errors):
        return {}
    return {
        f"{prefix}median": float(np.median(errors)),
        f"{prefix}p90": float(np.quantile(errors, 0.9)),
        f"{prefix}max": float(np.max(errors)),
    }


def _moments(episode: Episode, ahead: int, every: int) -> Array:
    """Recorded moments from which every step up to `ahead` is locked on."""
    locked = episode.fights["lock_on"] == 1
    last = len(locked) - ahead
    return np.array([i for i in range(0, last, every) if locked[i : i + ahead + 1].all()], np.int64)


def _position_errors(episode: Episode, ahead: int, every: int) -> Array:
    moments = _moments(episode, ahead, every)
    predicted, real = episode.predictions[moments, ahead], episode.fights[moments + ahead]["player_pose"]
    errors: Array = np.hypot(predicted["x"] - real[:, 0], predicted["y"] - real[:, 1])
    return errors


def _far_metric(episodes: list[Episode]) -> Metric:
    details: dict[str, float] = {}
    errors = {
        ahead: np.concatenate([_position_errors(episode, ahead, RESTART_STEPS) for episode in episodes])
        for ahead in (NEAR, FAR, FARTHEST)
    }
    for ahead, values in errors.items():
        if len(values):
            details[f"mean@{ahead}"] = float(np.mean(values))
            details[f"median@{ahead}"] = float(np.median(values))
            details[f"n@{ahead}"] = len(values)
    return Metric(GOALS["M3"], mean_of(errors[FAR]), len(errors[FAR]), details)


def _states(episodes: list[Episode], ahead: int) -> Iterator[tuple[Array, Array]]:
    for episode in episodes:
        moments = _moments(episode, ahead, RESTART_STEPS)
        # The record after the end of a fight shows no mask.
        moments = moments[episode.fights["player_hp"][moments + ahead, 0] > 0.0]
        yield episode.predictions[moments, ahead], episode.fights[moments + ahead]


def _state_metrics(episodes: list[Episode]) -> list[Metric]:
    details: dict[str, dict[str, float]] = {"M4": {}, "M5": {}, "M6": {}}
    values: dict[str, Array] = {}
    for ahead in (FARTHEST, FAR):
        pairs = list(_states(episodes, ahead))
        stamina = np.concatenate([np.abs(sim["sp"] - real["player_sp"][:, 0]) for sim, real in pairs])
        masks = np.concatenate([(sim["action_mask"] == real["action_mask"]).all(axis=1) for sim, real in pairs])
        labels = np.concatenate([sim["label"] == real["player_animation"] for sim, real in pairs])
        values = {"M4": stamina, "M5": 100.0 * masks, "M6": 100.0 * labels}
        if len(stamina):
            details["M4"][f"mean@{ahead}"], details["M4"][f"median@{ahead}"] = (
                float(stamina.mean()),
                float(np.median(stamina)),
            )
            details["M5"][f"equal@{ahead}"], details["M6"][f"equal@{ahead}"] = (
                100.0 * float(masks.mean()),
                100.0 * float(labels.mean()),
            )
    return [Metric(GOALS[key], mean_of(values[key]), len(values[key]), details[key]) for key in ("M4", "M5", "M6")]


def gap_m(fights: Array) -> Array:
    """Metres between the centres of player and boss."""
    apart = fights["player_pose"][:, :2] - fights["boss_pose"][:, :2]
    gaps: Array = np.hypot(apart[:, 0], apart[:, 1])
    return gaps


def _is_free(episode: Episode, first: int, spec: FightSpec) -> bool:
    """Does the roll shown first at `first` go on undisturbed for its steps?"""
    stretch = slice(first, first + ROLL_STEPS + 1)
    part = episode.fights[stretch]
    label, shown_s = part["player_animation"], part["player_animation_duration"][:, 0]
    return bool(
        len(part) == ROLL_STEPS + 1
        and (label == label[0]).all()
        and (np.diff(shown_s) > 0.0).all()
        and (episode.blows["move"][first + 1 : first + ROLL_STEPS + 1] == NO_BLOW).all()
        and (np.diff(part["player_hp"][:, 0]) == 0.0).all()
        and (gap_m(part) > spec.boss.least_distance_m + TOUCHING_M).all()
        and (part["lock_on"] == 1).all()
    )


def _roll_metric(episodes: list[Episode], spec: FightSpec) -> Metric:
    labels = player_labels(spec)
    rolls = [labels.index(name) for name in spec.player.roll.animations]
    errors = []
    for episode in episodes:
        fights = episode.fights
        label, shown_s = fights["player_animation"], fights["player_animation_duration"][:, 0]
        begins = label_begins(label, shown_s) & np.isin(label, rolls) & (shown_s < spec.player.label_s_per_step)
        for first in np.flatnonzero(begins[1:]) + 1:
            if _is_free(episode, int(first), spec):
                sim, real = episode.predictions[first, ROLL_STEPS], fights["player_pose"][first + ROLL_STEPS]
                errors.append(np.hypot(sim["x"] - real[0], sim["y"] - real[1]))
    values = np.array(errors)
    return Metric(GOALS["M1"], mean_of(values), len(values), _spread("", values))


def _heading_metric(episodes: list[Episode], spec: FightSpec) -> Metric:
    labels = player_labels(spec)
    attacks = [labels.index(move.animation) for move in spec.player.moves if move.kind in ("attack", "parry")]
    groups = {
        "walking": [labels.index("Move"), *(i for i, name in enumerate(labels) if name.startswith("RunStop"))],
        "rolling": [labels.index(name) for name in spec.player.roll.animations],
        "attacking": attacks,
    }
    details: dict[str, float] = {}
    counts: dict[str, int] = {}
    for group, wanted in groups.items():
        errors = []
        for episode in episodes:
            moments = _moments(episode, 1, 1)
            real = episode.fights[moments + 1]
            error = np.abs(wrap_angle(episode.predictions[moments, 1]["heading"] - real["player_pose"][:, 3]))
            errors.append(error[np.isin(real["player_animation"], wanted)])
        values = np.concatenate(errors)
        counts[group] = len(values)
        if len(values):
            details[f"median {group}"], details[f"mean {group}"] = float(np.median(values)), float(values.mean())
    return Metric(GOALS["M7"], details.get("median walking"), counts["walking"], details)
