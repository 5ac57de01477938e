"""Players that pay no attention to what the boss does."""

from __future__ import annotations

import numpy as np

from soulsgym.actions import DIRECTIONS, NOTHING
from soulsgym.geometry import heading_along
from soulsgym.players.observation import LIGHT, ROLLS, distance_m, heading_to_boss, key_along
from soulsgym.players.player import Actions, Mask, Observation
from soulsgym.players.timings import light_attack
from soulsgym.spec import FightSpec
from soulsgym.spec.arena import Arena
from soulsgym.state import NUM_ACTIONS

LUNGE = 0.4
"""A light attack steps forward, so it lands from this share of the step beyond the blade's reach."""
STRAY = 3
"""How many of the eight directions a roll may be off the way to the boss, to either side: less one."""
EDGE_SHARE, AWAY_SHARE = 0.8, 0.55
"""Of the way from the middle of the arena to its nearest edge: how far out and how near to the boss the runner goes."""


class Idle:
    """Stands still."""

    def __init__(self, spec: FightSpec, n: int, seed: int) -> None:
        self._n = n

    def reset(self, mask: Mask) -> None:
        """Nothing to forget."""

    def act(self, observation: Observation, mask: Mask) -> Actions:
        """No key at all."""
        return np.full(self._n, NOTHING)


class Random:
    """Presses one of all twenty actions, open or not, as the player of the recorded fights did."""

    def __init__(self, spec: FightSpec, n: int, seed: int) -> None:
        self._n = n
        self._rng = np.random.default_rng(seed)

    def reset(self, mask: Mask) -> None:
        """Nothing to forget."""

    def act(self, observation: Observation, mask: Mask) -> Actions:
        """Any action; one that is not open has no effect."""
        return self._rng.integers(NUM_ACTIONS, size=self._n)


class AttackSpam:
    """Walks up to the boss and strikes whenever the mask lets him."""

    def __init__(self, spec: FightSpec, n: int, seed: int) -> None:
        light = light_attack(spec)
        self._strike_within_m = light.reach_m + LUNGE * light.lunge_m

    def reset(self, mask: Mask) -> None:
        """Nothing to forget."""

    def act(self, observation: Observation, mask: Mask) -> Actions:
        """Light in reach, a step towards the boss out of it."""
        key = key_along(observation, heading_to_boss(observation))
        near = distance_m(observation) <= self._strike_within_m
        walk = np.where(mask[:, 0], key, NOTHING)
        return np.where(near, np.where(mask[:, LIGHT], LIGHT, NOTHING), walk)


class RollSpam:
    """Rolls about the boss without looking at him, and strikes out of every other roll that ends in reach."""

    def __init__(self, spec: FightSpec, n: int, seed: int) -> None:
        light = light_attack(spec)
        self._strike_within_m = light.reach_m + LUNGE * light.lunge_m
        self._rng = np.random.default_rng(seed)
        self._struck = np.zeros(n, np.bool_)

    def reset(self, mask: Mask) -> None:
        """The first roll ends in a strike."""
        self._struck[mask] = False

    def act(self, observation: Observation, mask: Mask) -> Actions:
        """Strike if the last chance to was not used, else roll."""
        stray = self._rng.integers(-STRAY + 1, STRAY, size=len(mask))
        key = (key_along(observation, heading_to_boss(observation)) + stray) % len(DIRECTIONS)
        strike = mask[:, LIGHT] & ~self._struck & (distance_m(observation) <= self._strike_within_m)
        roll = mask[:, ROLLS] & ~strike
        self._struck = np.where(strike, True, np.where(roll, False, self._struck))
        return np.where(strike, LIGHT, np.where(roll, ROLLS + key, NOTHING))


class Runner:
    """Keeps away from the boss and circles about the middle of the arena; strikes never."""

    def __init__(self, spec: FightSpec, n: int, seed: int) -> None:
        self._centre_m = spec.arena.centre_m
        room_m = _room_m(spec.arena)
        self._edge_m, self._away_m = EDGE_SHARE * room_m, AWAY_SHARE * room_m

    def reset(self, mask: Mask) -> None:
        """Nothing to forget."""

    def act(self, observation: Observation, mask: Mask) -> Actions:
        """Away from a near boss, around a far one, and inwards along the edge."""
        away = heading_to_boss(observation) + np.pi
        around = away + np.where(distance_m(observation) < self._away_m, np.pi / 4, np.pi / 2)
        x = self._centre_m[0] - observation["player_pose"][:, 0]
        y = self._centre_m[1] - observation["player_pose"][:, 1]
        at_edge = np.hypot(x, y) > self._edge_m
        heading = np.where(at_edge, heading_along(x, y) - np.pi / 3, around)
        return np.where(mask[:, 0], key_along(observation, heading), NOTHING)


def _room_m(arena: Arena) -> float:
    """Metres from the middle of the arena to its nearest edge."""
    x_m, y_m = arena.centre_m
    return min(edge.offset_m - edge.out_x * x_m - edge.out_y * y_m for edge in arena.edges)
