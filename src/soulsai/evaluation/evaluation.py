"""Evaluation: what came out of many fights on unseen seeds."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsai.evaluation.statistics import wilson
from soulsgym.errors import MisuseError
from soulsgym.state import Outcome

FORMAT = 1
"""Version of the JSON; rises when the meaning of a key changes."""
FALL = "fall"
"""How a death without a blow is listed."""
PER_FIGHT = {
    "outcome": np.int32,
    "time_s": np.float64,
    "player_hp_share": np.float64,
    "boss_hp_share": np.float64,
    "damage_taken": np.float64,
    "steps": np.int32,
    "phase": np.int32,
}
Groups = Mapping[str, int]
"""Counts by name."""


@dataclass(frozen=True)
class EvaluationSettings:
    """Everything that decides which fights are fought."""

    boss: str
    variant: str
    phase: int
    full: bool
    randomize: float
    random_pose: bool
    step_limit: int
    no_hit: bool
    seed: int
    fights: int
    engine: str = "sim"  # or game


@dataclass(frozen=True)
class AttackCount:
    """What one attack of the boss did in all fights; a grab and its throw are one attack."""

    name: str
    started: int
    hits: int
    damage: float
    dodged: int  # blows that passed through the invulnerable player, and did not hit him after all; -1 not known
    deaths: int

    @property
    def dodge_rate(self) -> float | None:
        """Share of the blows that reached the player which he dodged; none if none did, or a game does not tell."""
        reached = self.dodged + self.hits
        return self.dodged / reached if self.dodged >= 0 and reached else None


@dataclass(frozen=True)
class Breakdown:
    """Blows counted by what dealt them, and by how the player stood one step before."""

    attack: Groups
    distance: Groups
    animation: Groups
    stamina: Groups


@dataclass(frozen=True)
class DamageOverTime:
    """Mean damage by time since a fight began, each time among the fights that were still going on."""

    seconds: tuple[float, ...]  # where each stretch begins
    taken: tuple[float, ...]
    dealt: tuple[float, ...]
    fights: tuple[int, ...]  # that reached it


@dataclass(frozen=True)
class PhaseCount:
    """Fights that reached a phase, and how those went that ended in it."""

    phase: int
    reached: int
    won: int
    died: int
    fell: int
    time_outs: int


@dataclass(frozen=True)
class Quartiles:
    """A quarter of the values lies below the first, a half below the second, three quarters below the third."""

    low: float
    median: float
    high: float


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How each fight went, and what the boss's attacks did. Deaths by a fall are in no breakdown but by attack."""

    settings: EvaluationSettings
    last_phase: int
    outcome: npt.NDArray[np.int32]  # Outcome; RUNNING where the step limit ended it
    killed_by: tuple[str, ...]  # attack of the fatal blow, FALL, or nothing
    time_s: npt.NDArray[np.float64]  # game time until the end
    player_hp_share: npt.NDArray[np.float64]
    boss_hp_share: npt.NDArray[np.float64]
    damage_taken: npt.NDArray[np.float64]
    steps: npt.NDArray[np.int32]
    phase: npt.NDArray[np.int32]  # the one it ended in
    attacks: tuple[AttackCount, ...]
    deaths: Breakdown
    hits: Breakdown
    places: npt.NDArray[np.int64]  # steps by metres ahead of and to the right of the boss; see tally.GRID_M
    hit_places: npt.NDArray[np.int64]  # the same for the hits alone
    damage_over_time: DamageOverTime | None = None  # not known of old files

    @property
    def fights(self) -> int:
        """How many there were."""
        return len(self.outcome)

    @property
    def won(self) -> npt.NDArray[np.bool_]:
        """Fights in which the boss died."""
        return np.equal(self.outcome, Outcome.WON)

    @property
    def wins(self) -> int:
        """Number of wins."""
        return int(self.won.sum())

    @property
    def died(self) -> int:
        """Fights ended by a blow."""
        return int((self.outcome == Outcome.DIED).sum())

    @property
    def fell(self) -> int:
        """Fights ended by a fall."""
        return int((self.outcome == Outcome.FELL).sum())

    @property
    def time_outs(self) -> int:
        """Fights ended by the step limit; they count as lost."""
        return int((self.outcome == Outcome.RUNNING).sum())

    @property
    def win_rate(self) -> float:
        """Share of wins."""
        return self.wins / self.fights

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the win rate (Wilson's)."""
        return wilson(self.wins, self.fights)

    @property
    def headline(self) -> str:
        """The result in a sentence, without its subject."""
        low, high = self.interval
        number = f"{self.fights:,} fight{'s' if self.fights != 1 else ''}"
        return f"wins {self.win_rate:.1%} of {number} (95 % interval {100 * low:.1f}-{100 * high:.1f})".replace(
            "% of", " % of"
        )

    @property
    def phases(self) -> tuple[PhaseCount, ...]:
        """Phase by phase: who reached it and what became of those who stayed."""
        return tuple(self._phase(phase) for phase in range(self.settings.phase, self.last_phase + 1))

    def _phase(self, phase: int) -> PhaseCount:
        ended = self.outcome[self.phase == phase]
        counts = {outcome: int((ended == outcome).sum()) for outcome in Outcome}
        return PhaseCount(
            phase=phase,
            reached=int((self.phase >= phase).sum()),
            won=counts[Outcome.WON],
            died=counts[Outcome.DIED],
            fell=counts[Outcome.FELL],
            time_outs=counts[Outcome.RUNNING],
        )

    @property
    def time_to_kill_s(self) -> Quartiles | None:
        """Of the won fights; none if there are none."""
        return _quartiles(self.time_s[self.won])

    @property
    def hp_left(self) -> Quartiles | None:
        """Share of the player's health left in the won fights."""
        return _quartiles(self.player_hp_share[self.won])

    @property
    def boss_hp_left(self) -> Quartiles | None:
        """Share of the boss's health left in the lost fights."""
        return _quartiles(self.boss_hp_share[~self.won])

    @property
    def attack_damage(self) -> float:
        """Damage of all attacks in all fights; falls are not in it."""
        return sum(attack.damage for attack in self.attacks)

    def damage_share(self, attack: AttackCount) -> float:
        """Share of an attack in the damage of all."""
        return attack.damage / self.attack_damage if self.attack_damage else 0.0

    def summary(self) -> dict[str, Any]:
        """The figures a user asks for first, as plain values."""
        low, high = self.interval
        return {
            "headline": self.headline,
            "fights": self.fights,
            "wins": self.wins,
            "win_rate": self.win_rate,
            "win_rate_low": low,
            "win_rate_high": high,
            "died": self.died,
            "fell": self.fell,
            "time_outs": self.time_outs,
            "phases": [dataclasses.asdict(phase) for phase in self.phases],
            "time_to_kill_s": _plain(self.time_to_kill_s),
            "hp_left": _plain(self.hp_left),
            "boss_hp_left": _plain(self.boss_hp_left),
            "mean_damage_taken": float(self.damage_taken.mean()),
        }

    def to_json(self) -> str:
        """All of it as text; `summary` is for the reader and is worked out again when it is read."""
        content = {
            "format": FORMAT,
            "settings": dataclasses.asdict(self.settings),
            "summary": self.summary(),
            "last_phase": self.last_phase,
            "attacks": [self._attack(attack) for attack in self.attacks],
            "deaths": dataclasses.asdict(self.deaths),
            "hits": dataclasses.asdict(self.hits),
            "per_fight": {
                **{name: getattr(self, name).tolist() for name in PER_FIGHT},
                "killed_by": list(self.killed_by),
            },
            "places": self.places.tolist(),
            "hit_places": self.hit_places.tolist(),
        }
        if self.damage_over_time:
            content["damage_over_time"] = dataclasses.asdict(self.damage_over_time)
        return json.dumps(content, allow_nan=False)

    def _attack(self, attack: AttackCount) -> dict[str, Any]:
        rates = {"dodge_rate": attack.dodge_rate, "damage_share": self.damage_share(attack)}
        return {**dataclasses.asdict(attack), **rates}

    @staticmethod
    def from_json(text: str) -> Evaluation:
        """What `to_json` wrote."""
        try:
            return _read(json.loads(text))
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            if isinstance(error, MisuseError):
                raise
            raise MisuseError(f"evaluation cannot be read ({error!r}); evaluate again") from error


def _quartiles(values: npt.NDArray[np.float64]) -> Quartiles | None:
    if not len(values):
        return None
    low, median, high = np.quantile(values, (0.25, 0.5, 0.75))
    return Quartiles(float(low), float(median), float(high))


def _plain(quartiles: Quartiles | None) -> dict[str, float] | None:
    return None if quartiles is None else dataclasses.asdict(quartiles)


def _read(content: dict[str, Any]) -> Evaluation:
    if content["format"] != FORMAT:
        raise MisuseError(f"evaluation has format {content['format']!r}, this version reads {FORMAT}; evaluate again")
    settings, per_fight = EvaluationSettings(**content["settings"]), content["per_fight"]
    columns = {name: np.array(per_fight[name], kind) for name, kind in PER_FIGHT.items()}
    killed_by = tuple(str(name) for name in per_fight["killed_by"])
    for name, column in (*columns.items(), ("killed_by", killed_by)):
        if len(column) != settings.fights:
            raise ValueError(f"{name} has {len(column)} entries for {settings.fights} fights")
    fields = [field.name for field in dataclasses.fields(AttackCount)]
    return Evaluation(
        settings=settings,
        last_phase=int(content["last_phase"]),
        killed_by=killed_by,
        attacks=tuple(AttackCount(**{name: attack[name] for name in fields}) for attack in content["attacks"]),
        deaths=Breakdown(**content["deaths"]),
        hits=Breakdown(**content["hits"]),
        places=np.array(content["places"], np.int64),
        hit_places=np.array(content["hit_places"], np.int64),
        damage_over_time=_damage_over_time(content.get("damage_over_time")),
        **columns,
    )


def _damage_over_time(content: dict[str, Any] | None) -> DamageOverTime | None:
    if content is None:
        return None
    kinds = {"seconds": float, "taken": float, "dealt": float, "fights": int}
    columns = {name: tuple(map(kind, content[name])) for name, kind in kinds.items()}
    if len({len(column) for column in columns.values()}) > 1:
        raise ValueError("the columns of damage_over_time differ in length")
    return DamageOverTime(**columns)
