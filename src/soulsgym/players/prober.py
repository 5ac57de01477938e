"""A player that goes where something can be learned about the boss, and lets him strike."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from soulsgym.actions import DIRECTIONS, NOTHING
from soulsgym.players.observation import distance_m, heading_to_boss, key_along
from soulsgym.players.player import Actions, Mask, Observation
from soulsgym.spec import FightSpec
from soulsgym.spec.boss import Phase

NEAREST_M, FARTHEST_M = 0.15, 7.75
"""Where he waits for the next attack, beyond where the bodies meet: each distance makes the boss choose others."""
BEYOND_M = 0.5
"""How far inside and outside of where a blow may end he stands."""
AROUND = 0.3
"""Share of attacks in which he walks round the boss instead, to find out how wide they are."""
NEAR_M = 0.15
"""He stands where he is when he is this near to where he wants to be."""
USUAL_SHARE = 0.25
"""How far a reach may be from the file's, if nobody tells."""

Intervals = Mapping[tuple[int, str], tuple[float, float]]
"""By phase and animation, between which distances the end of its reach is looked for."""


class Prober:
    """Waits at changing distances; when an attack comes, stands where its blow may just reach or just miss him.

    He never rolls or strikes, so whatever reaches him lands.
    """

    def __init__(self, spec: FightSpec, n: int, seed: int, *, wanted: Intervals | None = None) -> None:
        self._rng = np.random.default_rng(seed)
        self._nearest_m, self._farthest_m = (spec.boss.least_distance_m + far for far in (NEAREST_M, FARTHEST_M))
        labels = len(spec.boss_animations)
        self._low_m = np.full((len(spec.boss.phases), labels + 1), np.nan)
        self._high_m = self._low_m.copy()
        for number, phase in enumerate(spec.boss.phases, start=1):
            for animation, interval in (_usual(spec, phase) | _of_phase(wanted or {}, number)).items():
                if animation in spec.boss_animations:
                    column = 1 + spec.boss_animations.index(animation)
                    self._low_m[number - 1, column], self._high_m[number - 1, column] = interval
        self._label, self._shown_s = np.full(n, -2), np.zeros(n)
        self._stand_m, self._side = np.full(n, self._nearest_m), np.zeros(n, np.int64)

    def reset(self, mask: Mask) -> None:
        """Nothing seen yet, and another place to wait at."""
        self._label[mask] = -2
        self._stand_m[mask] = self._rng.uniform(self._nearest_m, self._farthest_m, int(mask.sum()))
        self._side[mask] = 0

    def act(self, observation: Observation, mask: Mask) -> Actions:
        """Walk to where he wants to be, or round the boss."""
        self._watch(observation)
        r, ahead = distance_m(observation), heading_to_boss(observation)
        away = np.where(r < self._stand_m, np.pi, 0.0)
        key = key_along(observation, ahead + away)
        round_key = (key_along(observation, ahead) + 2 * self._side) % len(DIRECTIONS)
        there = np.abs(r - self._stand_m) < NEAR_M
        action = np.where(self._side != 0, round_key, np.where(there, NOTHING, key))
        return np.where(mask[:, 0], action, NOTHING)

    def _watch(self, observation: Observation) -> None:
        """With each new label of the boss choose where to be for it."""
        label, shown_s = observation["boss_animation"], observation["boss_animation_duration"][:, 0].astype(float)
        new = (label != self._label) | (shown_s < self._shown_s)
        self._label, self._shown_s = label.copy(), shown_s
        row = observation["phase"] - 1, label + 1
        low_m, high_m = self._low_m[row] - BEYOND_M, self._high_m[row] + BEYOND_M
        attacks = new & np.isfinite(low_m)
        n = len(label)
        share = self._rng.random(n)
        edge_m = np.maximum(self._nearest_m, low_m + share * (high_m - low_m))
        waits_m = self._nearest_m + (self._farthest_m - self._nearest_m) * self._rng.random(n) ** 2
        around = self._rng.random(n) < AROUND
        sides = np.where(self._rng.random(n) < 0.5, 1, -1)
        self._stand_m = np.where(attacks, edge_m, np.where(new, waits_m, self._stand_m))
        self._side = np.where(attacks, np.where(around, sides, 0), np.where(new, 0, self._side))


def _usual(spec: FightSpec, phase: Phase) -> dict[str, tuple[float, float]]:
    """By animation of the phase's attacks, about where their reach ends by the file."""
    names = {act.first_move for act in phase.acts} | {
        link.move for act in phase.acts for chain in act.chains for link in chain.links
    }
    found = {}
    for move in spec.boss.moves:
        if move.name in names and move.hits:
            reach_m = max(hit.reach_m + abs(hit.offset_m) for hit in move.hits)
            found[move.animation] = ((1.0 - USUAL_SHARE) * reach_m, (1.0 + USUAL_SHARE) * reach_m)
    return found


def _of_phase(wanted: Intervals, number: int) -> dict[str, tuple[float, float]]:
    return {animation: interval for (phase, animation), interval in wanted.items() if phase == number}
