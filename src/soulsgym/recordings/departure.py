"""Where a replay that is never restarted leaves a recorded fight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low

import numpy as np

from soulsgym.labels import player_labels
from soulsgym.recordings.replay import Episode
from soulsgym.spec import FightSpec

LIMIT_M = 0.25
"""The player is somewhere else when he is farther than this from where he was recorded."""


@dataclass(frozen=True)
class Departure:
    """The first step at which a replay is not the recorded fight any more."""

    fight: int
    """Among those of the file, from 1."""
    steps: int
    step: int | None
    """None: never."""
    reason: str
    """How it left, such as "0.31 m away"; empty if it never did."""


def median_step(departures: Sequence[Departure]) -> int | None:
    """The step at which the middle one of the replays leaves; None if it never does, or if there is none."""
    steps = [float("inf") if each.step is None else each.step for each in departures]
    middle = median_low(steps) if steps else float("inf")
    return None if middle == float("inf") else int(middle)


def earliest(departures: Sequence[Departure]) -> Departure | None:
    """The one that leaves first; None if none of them leaves."""
    left = [each for each in departures if each.step is not None]
    return min(left, key=lambda each: each.step or 0, default=None)


def player_departure(episode: Episode, spec: FightSpec) -> Departure:
    """Where the player leaves who starts as recorded and meets the boss, the camera and the blows as recorded."""
    sim, real = episode.from_start[1:], episode.fights[1:]
    away_m = np.hypot(sim["x"] - real["player_pose"][:, 0], sim["y"] - real["player_pose"][:, 1])
    mislabelled = sim["label"] != real["player_animation"]
    left = np.flatnonzero(mislabelled | (away_m > LIMIT_M))
    if not len(left):
        return Departure(episode.number, len(real), None, "")
    first = int(left[0])
    names = [*player_labels(spec), "an unknown label"]
    reason = f"{away_m[first]:.3g} m away"
    if mislabelled[first]:
        reason = f"{names[sim['label'][first]]} instead of {names[real['player_animation'][first]]}"
    return Departure(episode.number, len(real), first + 1, reason)
