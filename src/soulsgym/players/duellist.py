"""A player that dodges and punishes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from soulsgym.actions import DIRECTIONS, NOTHING
from soulsgym.players.bearings import (
    LIGHT,
    ROLLS,
    Floats,
    bearing_from_boss,
    distance_m,
    heading_to_boss,
    key_along,
)
from soulsgym.players.knowledge import knowledge_of
from soulsgym.players.player import Actions, Mask, Observation

STEP_S = 0.097
"""What a step adds to the durations in the observation."""
ROLL_BEFORE_S = 0.18
"""How long before a blow he means to roll."""
ERROR_S = 0.08
"""Standard deviation of his timing: chosen so that he wins about half. Without error he wins four fights of five."""
STRIKE_LOCK_S = 0.80
"""After a light attack the next roll is open this much later."""
GET_UP_LOCK_S = 0.60
"""The same after rolling up from the ground."""
NEUTRAL_S = 1.0
"""What he counts on while the boss stands or walks: the thrust, his favourite, takes that long."""
STRIKE_WITHIN_M = 2.9
STAND_AT_M = 2.2
STRIKE_FROM_SP = 24.0
"""Enough to be able to roll after the strike."""
FLINCH_M = 1.2
"""He dodges blows that would miss him by less than this."""
UNSEEN = -2
"""No label of the observation."""

Indices = npt.NDArray[np.int64]


class Duellist:
    """Knows the moves by heart, and sees only what the observation shows.

    He rolls past the boss shortly before each blow, and strikes when no blow can come before he could roll again. The
    label of an attack that was chosen while the boss recovers comes up before its animation begins; he tells it from a
    follow-up by when it comes, and counts from the end of the move before it. `delay_s` makes his dodges late by that
    much.
    """

    def __init__(
        self, n: int, seed: int = 0, *, boss: str = "iudex", delay_s: float = 0.0, error_s: float = ERROR_S
    ) -> None:
        self._known = knowledge_of(boss)
        self._rng = np.random.default_rng(seed)
        self._before_s = ROLL_BEFORE_S - delay_s
        self._error_s = error_s
        self._label = np.full(n, UNSEEN)
        self._shown_s = np.zeros(n)
        self._lead_s = np.zeros(n)
        self._roll_s = np.zeros(n)
        self._row: tuple[Indices, Indices] = np.zeros(n, np.int64), np.zeros(n, np.int64)

    def reset(self, mask: Mask) -> None:
        """Nothing seen yet."""
        self._label[mask] = UNSEEN
        self._shown_s[mask] = 0.0
        self._lead_s[mask] = 0.0

    def act(self, observation: Observation, mask: Mask) -> Actions:
        """Dodge what comes, get up, strike if there is time for it, else close in."""
        moved_s = self._watch(observation)
        until_s, reach_m = self._next_blow(moved_s)
        time_s = self._time_left_s(moved_s, until_s)
        r = distance_m(observation)
        may_walk, may_roll, may_strike = mask[:, 0], mask[:, ROLLS], mask[:, LIGHT]
        dodge = may_roll & (until_s <= self._roll_s) & (r <= reach_m + FLINCH_M)
        on_the_ground = may_roll & ~may_walk & ~may_strike
        get_up = on_the_ground & (time_s > GET_UP_LOCK_S + ROLL_BEFORE_S)
        rested = observation["player_sp"][:, 0] >= STRIKE_FROM_SP
        strike = may_strike & rested & (r <= STRIKE_WITHIN_M) & (time_s >= STRIKE_LOCK_S + ROLL_BEFORE_S)
        ahead = key_along(observation, heading_to_boss(observation))
        past = (ahead + np.where(bearing_from_boss(observation) > 0.0, 1, -1)) % len(DIRECTIONS)
        walk = np.where(may_walk & (r > STAND_AT_M), ahead, NOTHING)
        return np.where(dodge | get_up, ROLLS + past, np.where(strike, LIGHT, walk))

    def _watch(self, observation: Observation) -> Floats:
        """Follow the labels; returns for how long the boss's move has really been going on, as far as he can tell."""
        label = observation["boss_animation"]
        shown_s = observation["boss_animation_duration"][:, 0].astype(np.float64)
        new = (label != self._label) | (shown_s < self._shown_s)
        before_s = self._shown_s + STEP_S - shown_s - self._lead_s
        recovering = (self._label != UNSEEN) & (before_s >= self._known.decided_s[self._row] - STEP_S / 2)
        # The attack begins when the move before it is over, and he knows how long that lasts.
        left_s = np.where(recovering, self._known.end_s[self._row] - before_s, 0.0)
        self._lead_s = np.where(new, left_s, self._lead_s)
        meant_s = self._before_s + self._rng.normal(0.0, self._error_s, len(label))
        self._roll_s = np.where(new, meant_s, self._roll_s)
        self._label, self._shown_s = label.copy(), shown_s
        self._row = observation["phase"] - 1, label + 1
        return shown_s - self._lead_s

    def _next_blow(self, moved_s: Floats) -> tuple[Floats, Floats]:
        """Seconds until the next blow begins, negative while it lasts, and how far it reaches."""
        known = self._known
        over = known.blow_to_s[self._row] <= moved_s[:, None]
        until_s = np.where(over, np.inf, known.blow_from_s[self._row] - moved_s[:, None])
        first = until_s.argmin(axis=1)[:, None]
        reach_m = np.take_along_axis(known.reach_m[self._row], first, 1)
        return np.take_along_axis(until_s, first, 1)[:, 0], reach_m[:, 0]

    def _time_left_s(self, moved_s: Floats, until_s: Floats) -> Floats:
        """Seconds until a blow can come at the earliest: of this move, a follow-up, or whatever he does next."""
        known = self._known
        link_s = known.link_s[self._row] - moved_s
        linked_s = np.where(link_s > -STEP_S, link_s + known.follow_s[self._row], np.inf)
        left_s = known.end_s[self._row] - moved_s
        free_s = np.where(np.isfinite(left_s), np.maximum(left_s, 0.0) + known.first_s[self._row[0]], NEUTRAL_S)
        return np.minimum(np.minimum(until_s, linked_s), free_s)
