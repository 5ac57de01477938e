"""A player that dodges and punishes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from soulsgym.actions import DIRECTIONS, NOTHING
from soulsgym.players.observation import (
    LIGHT,
    ROLLS,
    Floats,
    bearing_from_boss,
    distance_m,
    heading_to_boss,
    key_along,
)
from soulsgym.players.player import Actions, Mask, Observation
from soulsgym.players.timings import boss_timings, light_attack, roll_after_s
from soulsgym.spec import FightSpec

ROLL_BEFORE = 3.0 / 7.0
"""How much of a roll's invulnerable time he means to be over when a blow begins."""
ERROR_S = 0.08
"""Standard deviation of his timing: chosen so that he wins about half. Without error he wins four fights of five."""
LUNGE = 0.5
"""A light attack steps forward, so he strikes from this share of the step beyond the blade's reach."""
CLOSE_M = 0.1
"""He walks up to the boss until the blade reaches this much farther than needed."""
SPARE_SP = 4.0
"""Stamina he wants left after a strike, to be able to roll."""
FLINCH_M = 1.2
"""He dodges blows that would miss him by less than this, when the boss has come as near as he is going to meanwhile."""
LATE_FLINCH_M = 0.3
"""And by less than this if the blow lasts longer than a roll makes invulnerable: then he waits until it is there."""
ASIDE_RAD = 0.5
"""A blow that has begun is no danger if it misses him by this much to the side."""
UNSEEN = -2
"""No label of the observation."""

Indices = npt.NDArray[np.int64]


class Duellist:
    """Knows the moves by heart, and sees only what the observation shows.

    He rolls past the boss shortly before each blow, or aside if it lasts longer than a roll makes invulnerable, and
    strikes when no blow can come before he could roll again. The label of an attack that was chosen while the boss
    recovers comes up before its animation begins; he tells it from a follow-up by when it comes, and counts from the
    end of the move before it. `delay_s` makes his dodges late by that much.
    """

    def __init__(self, spec: FightSpec, n: int, seed: int, *, delay_s: float = 0.0, error_s: float = ERROR_S) -> None:
        self._known = boss_timings(spec)
        self._step_s = spec.player.label_s_per_step
        light = light_attack(spec)
        self._strike_within_m = light.reach_m + LUNGE * light.lunge_m
        self._stand_at_m = light.reach_m - CLOSE_M
        before_s = ROLL_BEFORE * spec.player.roll.invulnerable_s[1]
        self._strike_from_sp = light.sp_cost + SPARE_SP
        self._strike_takes_s = light.roll_after_s + before_s
        self._get_up_takes_s = roll_after_s(spec, "get_up_roll") + before_s
        self._rng = np.random.default_rng(seed)
        self._before_s = before_s - delay_s
        self._error_s = error_s
        self._invulnerable_s = spec.player.roll.invulnerable_s[1]
        self._steps_ahead = before_s / self._step_s
        self._distance_m = np.full(n, np.nan)
        self._label = np.full(n, UNSEEN)
        self._shown_s = np.zeros(n)
        self._lead_s = np.zeros(n)
        self._roll_s = np.zeros(n)
        self._row: tuple[Indices, Indices] = np.zeros(n, np.int64), np.zeros(n, np.int64)

    def reset(self, mask: Mask) -> None:
        """Nothing seen yet."""
        self._label[mask] = UNSEEN
        self._distance_m[mask] = np.nan
        self._shown_s[mask] = 0.0
        self._lead_s[mask] = 0.0

    def act(self, observation: Observation, mask: Mask) -> Actions:
        """Dodge what comes, get up, strike if there is time for it, else close in."""
        moved_s = self._watch(observation)
        bearing, r = bearing_from_boss(observation), distance_m(observation)
        until_s = self._until_blows_s(moved_s, bearing)
        comes, is_long = self._threats(until_s, r)
        time_s = self._time_left_s(moved_s, until_s.min(axis=1))
        may_walk, may_roll, may_strike = mask[:, 0], mask[:, ROLLS], mask[:, LIGHT]
        dodge = may_roll & comes
        on_the_ground = may_roll & ~may_walk & ~may_strike
        get_up = on_the_ground & (time_s > self._get_up_takes_s)
        rested = observation["player_sp"][:, 0] >= self._strike_from_sp
        strike = may_strike & rested & (r <= self._strike_within_m) & (time_s >= self._strike_takes_s)
        ahead = key_along(observation, heading_to_boss(observation))
        past = (ahead + np.where(bearing > 0.0, 1, -1) * np.where(is_long, 2, 1)) % len(DIRECTIONS)
        walk = np.where(may_walk & (r > self._stand_at_m), ahead, NOTHING)
        return np.where(dodge | get_up, ROLLS + past, np.where(strike, LIGHT, walk))

    def _watch(self, observation: Observation) -> Floats:
        """Follow the labels; returns for how long the boss's move has really been going on, as far as he can tell."""
        label = observation["boss_animation"]
        shown_s = observation["boss_animation_duration"][:, 0].astype(np.float64)
        new = (label != self._label) | (shown_s < self._shown_s)
        before_s = self._shown_s + self._step_s - shown_s - self._lead_s
        recovering = (self._label != UNSEEN) & (before_s >= self._known.decided_s[self._row] - self._step_s / 2)
        # The attack begins when the move before it is over, and he knows how long that lasts.
        left_s = np.where(recovering, self._known.end_s[self._row] - before_s, 0.0)
        self._lead_s = np.where(new, left_s, self._lead_s)
        meant_s = self._before_s + self._rng.normal(0.0, self._error_s, len(label))
        self._roll_s = np.where(new, meant_s, self._roll_s)
        self._label, self._shown_s = label.copy(), shown_s
        self._row = observation["phase"] - 1, label + 1
        return shown_s - self._lead_s

    def _until_blows_s(self, moved_s: Floats, bearing: Floats) -> Floats:
        """Seconds until each blow of the move begins: negative while it lasts, infinite once it is no danger."""
        known = self._known
        until_s = known.blow_from_s[self._row] - moved_s[:, None]
        over = known.blow_to_s[self._row] <= moved_s[:, None]
        left, right = known.left[self._row] - ASIDE_RAD, known.right[self._row] + ASIDE_RAD
        aside = (until_s < 0.0) & ((bearing[:, None] < left) | (bearing[:, None] > right))
        return np.where(over | aside, np.inf, until_s)

    def _threats(self, until_s: Floats, r: Floats) -> tuple[Mask, Mask]:
        """Is it time to roll away from a blow, and is it one that lasts longer than a roll makes invulnerable?"""
        nearer_m = np.fmax(self._distance_m - r, 0.0) * self._steps_ahead
        self._distance_m = r
        known = self._known
        is_long = known.blow_to_s[self._row] - known.blow_from_s[self._row] > self._invulnerable_s
        reach_m = known.reach_m[self._row] + np.where(is_long, LATE_FLINCH_M, FLINCH_M)
        comes = (until_s <= self._roll_s[:, None]) & ((r - nearer_m)[:, None] <= reach_m)
        return np.any(comes, axis=1), np.any(comes & is_long, axis=1)

    def _time_left_s(self, moved_s: Floats, until_s: Floats) -> Floats:
        """Seconds until a blow can come at the earliest: of this move, a follow-up, or whatever he does next."""
        known = self._known
        link_s = known.link_s[self._row] - moved_s
        linked_s = np.where(link_s > -self._step_s, link_s + known.follow_s[self._row], np.inf)
        left_s = known.end_s[self._row] - moved_s
        # While the boss stands or walks he counts on a quick attack: on the quickest of all he could never strike.
        phase = self._row[0]
        free_s = np.where(np.isfinite(left_s), np.maximum(left_s, 0.0) + known.first_s[phase], known.quick_s[phase])
        return np.minimum(np.minimum(until_s, linked_s), free_s)
