"""Tally: counts, step by step, what the boss's attacks do and where the player stands."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from soulsai.evaluation.evaluation import FALL, AttackCount, Breakdown, DamageOverTime, Groups
from soulsai.evaluation.fighter import Flags, Int64s
from soulsgym.batch import UNKNOWN
from soulsgym.spec import FightSpec
from soulsgym.state import Fights, Outcome

DISTANCES_M = (2.0, 3.0, 4.0, 6.0)
DISTANCE_NAMES = ("0-2 m", "2-3 m", "3-4 m", "4-6 m", "6+ m")
STAMINA_SHARES = (0.2, 0.5)
STAMINA_NAMES = ("under 20 %", "20-50 %", "50 % and more")
GRID_M = 10.0
"""Places are counted up to this far to every side of the boss."""
GRID_CELLS = 40
STRETCH_S = 5.0
"""Damage is summed up over stretches of a fight this long."""

Rows = npt.NDArray[np.intp]
Floats = npt.NDArray[np.float64]


def relative_m(fights: Fights) -> tuple[Floats, Floats]:
    """Where the player stands as the boss sees it: metres ahead and to the right."""
    away = (fights["player_pose"][:, :2] - fights["boss_pose"][:, :2]).astype(np.float64)
    heading = fights["boss_pose"][:, 3].astype(np.float64)
    sine, cosine = np.sin(heading), np.cos(heading)
    return -sine * away[:, 0] - cosine * away[:, 1], -cosine * away[:, 0] + sine * away[:, 1]


class Tally:
    """Counts over all rounds of an evaluation.

    Beside the moves of the boss there is one more, the last: -1, what a running game did not tell.
    """

    def __init__(self, spec: FightSpec, *, knows_dodges: bool = True) -> None:
        self._names, self._knows_dodges = _move_names(spec), knows_dodges
        self._attack = _attack_of_move(spec)
        self._blows = np.array([*(len(move.hits) for move in spec.boss.moves), 0])
        self._is_attack = self._blows > 0
        self._started, self._hits, self._dodged = (np.zeros(len(self._names), np.int64) for _ in range(3))
        self._damage = np.zeros(len(self._names))
        self._hit_blows, self._fatal_blows = _Blows(spec), _Blows(spec)
        self._falls = 0
        # Steps and hits by where the player stood; rows from behind the boss to ahead, columns from left to right.
        self.places, self.hit_places = (np.zeros((GRID_CELLS, GRID_CELLS), np.int64) for _ in range(2))
        self.pace = Pace()
        self._now: Int64s = np.zeros(0, np.int64)  # attack that goes on in every fight
        self._now_hits: Int64s = np.zeros(0, np.int64)
        self._now_dodged: Int64s = np.zeros(0, np.int64)

    def begin(self, fights: Fights) -> None:
        """A round of fights begins."""
        self._now = self._attack[fights["boss_move"]]
        self._now_hits, self._now_dodged = np.zeros(len(fights), np.int64), np.zeros(len(fights), np.int64)
        self.pace.begin(len(fights))

    def add(self, before: Fights, after: Fights, playing: Flags) -> None:
        """Count a step of the fights that were `playing`."""
        self._add_attacks(before, after, playing)
        self._add_blows(before, after, playing)
        self.pace.add(before, after, playing)
        _count_places(self.places, after[playing])

    def end(self) -> None:
        """The round is over: what was dodged stays dodged."""
        self._settle(np.arange(len(self._now)))

    def name_of(self, move: int) -> str:
        """The attack a move belongs to."""
        return self._names[int(self._attack[move])]

    def attacks(self) -> tuple[AttackCount, ...]:
        """The attacks that were seen, in the order of the boss's file."""
        return tuple(
            AttackCount(
                name=self._names[i],
                started=int(self._started[i]),
                hits=int(self._hits[i]),
                damage=float(self._damage[i]),
                dodged=int(self._dodged[i]) if self._knows_dodges else -1,
                deaths=int(self._fatal_blows.attack[i]),
            )
            for i in np.flatnonzero(self._is_attack & ((self._started > 0) | (self._hits > 0)))
        )

    def deaths(self) -> Breakdown:
        """The fatal blows, and the falls among the attacks."""
        return self._fatal_blows.breakdown(falls=self._falls)

    def hits(self) -> Breakdown:
        """All blows that hurt."""
        return self._hit_blows.breakdown()

    def _add_attacks(self, before: Fights, after: Fights, playing: Flags) -> None:
        attack = self._attack[after["boss_move"]]
        hit, dodged = playing & _hurt(after), playing & (after["dodged"] >= 0)
        hit_old = hit & (self._attack[after["hit_by"]] == self._now)
        dodged_old = dodged & (self._attack[after["dodged"]] == self._now)
        self._now_hits += hit_old
        self._now_dodged += dodged_old
        again = (after["boss_move"] == before["boss_move"]) & (after["boss_move_s"] < before["boss_move_s"])
        new = np.flatnonzero(playing & ((attack != self._now) | again))
        if len(new):
            self._settle(new)
            self._now[new] = attack[new]
            self._started += np.bincount(attack[new], minlength=len(self._started))
        # A blow of the attack that has only just begun.
        self._now_hits += hit & ~hit_old
        self._now_dodged += dodged & ~dodged_old

    def _settle(self, rows: Rows) -> None:
        """Note what was dodged of the attacks that end: a blow that came through in the end was not."""
        attack = self._now[rows]
        dodged = np.minimum(self._now_dodged[rows], self._blows[attack] - self._now_hits[rows]).clip(0)
        np.add.at(self._dodged, attack, dodged)
        self._now_hits[rows], self._now_dodged[rows] = 0, 0

    def _add_blows(self, before: Fights, after: Fights, playing: Flags) -> None:
        hit = np.flatnonzero(playing & _hurt(after))
        if len(hit):
            attack = self._attack[after["hit_by"][hit]]
            self._hits += np.bincount(attack, minlength=len(self._hits))
            np.add.at(self._damage, attack, after["damage_taken"][hit])
            self._hit_blows.add(attack, before[hit])
            _count_places(self.hit_places, before[hit])
        over = playing & (after["outcome"] != Outcome.RUNNING)
        fatal = np.flatnonzero(over & (after["outcome"] == Outcome.DIED))
        if len(fatal):
            self._fatal_blows.add(self._attack[after["killed_by"][fatal]], before[fatal])
        self._falls += int((over & (after["outcome"] == Outcome.FELL)).sum())


class Pace:
    """Sums of damage by stretch of the fight, and how many fights came to each."""

    def __init__(self) -> None:
        self._sums = np.zeros((3, 0))  # damage taken, damage dealt, fights that came here; by stretch
        self._in: Int64s = np.zeros(0, np.int64)  # stretch that every fight is in

    def begin(self, n: int) -> None:
        """A round of `n` fights begins."""
        self._in = np.full(n, -1, np.int64)

    def add(self, before: Fights, after: Fights, playing: Flags) -> None:
        """A step belongs to the stretch in which it began."""
        rows = np.flatnonzero(playing)
        here = (before["time_s"][rows] * (1.0 / STRETCH_S) + 1e-4).astype(np.int64)
        size = max(int(here.max(initial=-1)) + 1, self._sums.shape[1])
        self._sums = np.pad(self._sums, ((0, 0), (0, size - self._sums.shape[1])))
        for i, values in enumerate((after["damage_taken"][rows], after["damage_dealt"][rows], self._in[rows] != here)):
            self._sums[i] += np.bincount(here, values, size)
        self._in[rows] = here

    def damage_over_time(self) -> DamageOverTime:
        """The means."""
        taken, dealt, reached = self._sums
        return DamageOverTime(
            seconds=tuple((np.arange(len(reached)) * STRETCH_S).tolist()),
            taken=tuple(np.round(taken / np.maximum(reached, 1.0), 2).tolist()),
            dealt=tuple(np.round(dealt / np.maximum(reached, 1.0), 2).tolist()),
            fights=tuple(reached.astype(np.int64).tolist()),
        )


class _Blows:
    """Counts of blows by attack, and by how the player stood a step before: afterwards he reels or is dead."""

    def __init__(self, spec: FightSpec) -> None:
        self._attacks = _move_names(spec)
        # Number -1, an animation that is not in the table, ends up in the last place.
        self._animations = [*(animation.name for animation in spec.player_animations), UNKNOWN]
        self.attack = np.zeros(len(self._attacks), np.int64)
        self._distance = np.zeros(len(DISTANCE_NAMES), np.int64)
        self._animation = np.zeros(len(self._animations), np.int64)
        self._stamina = np.zeros(len(STAMINA_NAMES), np.int64)

    def add(self, attack: Int64s, before: Fights) -> None:
        """Count blows of `attack` on players who stood as in `before`."""
        ahead_m, right_m = relative_m(before)
        stamina = before["player_sp"][:, 0] / before["player_max_sp"]
        np.add.at(self.attack, attack, 1)
        np.add.at(self._distance, np.digitize(np.hypot(ahead_m, right_m), DISTANCES_M), 1)
        np.add.at(self._animation, before["player_animation"], 1)
        np.add.at(self._stamina, np.digitize(stamina, STAMINA_SHARES), 1)

    def breakdown(self, *, falls: int = 0) -> Breakdown:
        """The counts by name."""
        return Breakdown(
            attack=_most_first([*self._attacks, FALL], [*self.attack, falls]),
            distance=dict(zip(DISTANCE_NAMES, self._distance.tolist(), strict=True)),
            animation=_most_first(self._animations, self._animation),
            stamina=dict(zip(STAMINA_NAMES, self._stamina.tolist(), strict=True)),
        )


def _most_first(names: list[str], counts: Any) -> Groups:
    pairs = [(name, int(count)) for name, count in zip(names, counts, strict=True) if count]
    return dict(sorted(pairs, key=lambda pair: -pair[1]))


def _hurt(fights: Fights) -> Flags:
    """Blows that cost health. A grab that gets hold does not; its throw does, a little later."""
    hurt: Flags = (fights["hit_by"] >= 0) & (fights["damage_taken"] > 0.0)
    return hurt


def _move_names(spec: FightSpec) -> list[str]:
    return [*(move.name for move in spec.boss.moves), UNKNOWN]


def _attack_of_move(spec: FightSpec) -> Int64s:
    """For every move the one it belongs to: the throw belongs to the grab that leads to it."""
    boss = spec.boss
    attack = np.arange(len(boss.moves) + 1)
    for i, move in enumerate(boss.moves):
        if move.grab_move:
            attack[boss.move_index(move.grab_move)] = i
    return attack


def _count_places(grid: Int64s, fights: Fights) -> None:
    ahead_m, right_m = relative_m(fights)
    row, column = (np.floor((m + GRID_M) * (GRID_CELLS / (2 * GRID_M))).astype(np.int64) for m in (ahead_m, right_m))
    inside = (row >= 0) & (row < GRID_CELLS) & (column >= 0) & (column < GRID_CELLS)
    flat = row[inside] * GRID_CELLS + column[inside]
    grid += np.bincount(flat, minlength=grid.size).reshape(grid.shape)
