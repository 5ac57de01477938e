"""Evaluation: what came out of many fights on unseen seeds."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from soulsai.evaluation.statistics import normal_quantile, wilson
from soulsgym.errors import MisuseError
from soulsgym.spec.population import drawn_count, evaluation_seed
from soulsgym.state import Outcome

FORMAT = 1
"""Version of the JSON; rises when the meaning of a key changes."""
FALL = "fall"
"""How a death without a blow is listed."""
EVALUATION_SALT = 0x6576616C
"""The letters `eval`, so that the stream of seeds is anything but that of training."""
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


def evaluation_seeds(seed: int, first: int, count: int) -> npt.NDArray[np.uint64]:
    """Seeds of the fights `first`, `first` + 1, ... of an evaluation.

    Hashed from the user's seed, the purpose and the number of the fight: an agent is never judged by fights it was
    trained on, and fight `i` of a seed is the same however many there are and however they are dealt out.
    """
    if seed < 0:
        raise MisuseError(f"seed {seed} is negative; give 0 or more")
    sequences = (np.random.SeedSequence([EVALUATION_SALT, seed, fight]) for fight in range(first, first + count))
    return np.array([sequence.generate_state(1, np.uint64)[0] for sequence in sequences], np.uint64)


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
    engine: str = "sim"  # or game, or rehearsal

    @property
    def draw_seeds(self) -> tuple[int, ...]:
        """Seeds of the drawn files, each with as many fights, file after file; none if all fights are of one file."""
        return tuple(evaluation_seed(index) for index in range(drawn_count(self.variant) or 0))

    def draw_seed(self, fight: int) -> int | None:
        """Seed of the drawn file that a fight is played on, by its number from 0; None if it is no drawn file."""
        seeds = self.draw_seeds
        return seeds[fight * len(seeds) // self.fights] if seeds else None


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
    """The 25th percentile, the median and the 75th percentile of some values."""

    low: float
    median: float
    high: float


@dataclass(frozen=True)
class DrawnFile:
    """How the fights on one drawn file went."""

    seed: int  # that `souls variant draw` makes the same file from
    fights: int
    wins: int
    time_to_kill_s: float | None  # median of the won fights
    killed_by: str  # the most common cause of death; nothing if nobody died
    deaths: int  # of that cause

    @property
    def win_rate(self) -> float:
        """Share of wins."""
        return self.wins / self.fights

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the win rate (Wilson's)."""
        return wilson(self.wins, self.fights)


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
    players: tuple[str, ...] = ()  # who played: one, or one for each phase; nobody is named in old files
    made: str = ""  # when, as a UTC time stamp
    step: int | None = None  # of the training at which the policy was evaluated

    @property
    def fights(self) -> int:
        """How many there were."""
        return len(self.outcome)

    @property
    def won(self) -> npt.NDArray[np.bool_]:
        """Fights in which the boss died."""
        return np.equal(self.outcome, Outcome.WON)

    @property
    def taken_over_by(self) -> str:
        """Who played the later phases, if that was another."""
        return " and ".join(self.players[1:])

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
        """95 % interval of the win rate (Wilson's).

        Of drawn files, the interval for files like these if that is wider: fights on one file are alike, so they say
        less about other files than their number suggests.
        """
        low, high = wilson(self.wins, self.fights)
        rates = [file.win_rate for file in self.drawn_files]
        if len(rates) > 1:
            half = normal_quantile(0.95) * float(np.std(rates, ddof=1)) / len(rates) ** 0.5
            low, high = min(low, max(0.0, self.win_rate - half)), max(high, min(1.0, self.win_rate + half))
        return low, high

    @cached_property
    def drawn_files(self) -> tuple[DrawnFile, ...]:
        """Drawn file by drawn file; none if all fights are of one file."""
        seeds = self.settings.draw_seeds
        return tuple(self._drawn_file(seed, i * self.fights // len(seeds)) for i, seed in enumerate(seeds))

    def _drawn_file(self, seed: int, first: int) -> DrawnFile:
        number = self.fights // len(self.settings.draw_seeds)
        own = slice(first, first + number)
        won, times = self.won[own], self.time_s[own]
        causes = Counter(filter(None, self.killed_by[own])).most_common(1)
        killed_by, deaths = causes[0] if causes else ("", 0)
        return DrawnFile(
            seed, number, int(won.sum()), float(np.median(times[won])) if won.any() else None, killed_by, deaths
        )

    @property
    def worst_file(self) -> DrawnFile | None:
        """The drawn file with the lowest win rate."""
        return min(self.drawn_files, key=lambda file: file.win_rate, default=None)

    @property
    def headline(self) -> str:
        """The result in a sentence, without its subject."""
        low, high = self.interval
        number, worst = f"{self.fights:,} fight{'s' if self.fights != 1 else ''}", ""
        if (file := self.worst_file) is not None:
            number = f"{number} on {len(self.drawn_files)} drawn files"
            worst = f"; worst file {100 * file.win_rate:.1f}"
        return f"wins {100 * self.win_rate:.1f} % of {number} (95 % interval {100 * low:.1f}-{100 * high:.1f}{worst})"

    @property
    def phases(self) -> tuple[PhaseCount, ...]:
        """Phase by phase: who reached it and what became of those who stayed."""
        return tuple(self._phase(phase) for phase in range(self.settings.phase, self.last_phase + 1))

    def _phase(self, phase: int) -> PhaseCount:
        ended, kinds = self.outcome[self.phase == phase], (Outcome.WON, Outcome.DIED, Outcome.FELL, Outcome.RUNNING)
        return PhaseCount(phase, int((self.phase >= phase).sum()), *(int((ended == kind).sum()) for kind in kinds))

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
        drawn = {"drawn_files": [_drawn_file_json(file) for file in self.drawn_files]} if self.drawn_files else {}
        return drawn | {
            "headline": self.headline,
            "fights": self.fights,
            "wins": self.wins,
            "win_rate": self.win_rate,
            "win_rate_low": low,
            "win_rate_high": high,
            "died": self.died,
            "fell": self.fell,
            "time_outs": self.time_outs,
            "phases": msgspec.to_builtins(self.phases),
            "time_to_kill_s": msgspec.to_builtins(self.time_to_kill_s),
            "hp_left": msgspec.to_builtins(self.hp_left),
            "boss_hp_left": msgspec.to_builtins(self.boss_hp_left),
            "mean_damage_taken": float(self.damage_taken.mean()),
        }

    def to_json(self) -> str:
        """All of it as text; `summary` is for the reader and is worked out again when it is read."""
        content = {
            "format": FORMAT,
            "settings": dataclasses.asdict(self.settings),
            "players": list(self.players),
            "made": self.made,
            "step": self.step,
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
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError, msgspec.ValidationError) as error:
            raise MisuseError(f"evaluation cannot be read ({error!r}); evaluate again") from error


def _drawn_file_json(file: DrawnFile) -> dict[str, Any]:
    low, high = file.interval
    return dataclasses.asdict(file) | {"win_rate": file.win_rate, "win_rate_low": low, "win_rate_high": high}


def _quartiles(values: npt.NDArray[np.float64]) -> Quartiles | None:
    return Quartiles(*np.quantile(values, (0.25, 0.5, 0.75)).tolist()) if len(values) else None


def _read(content: dict[str, Any]) -> Evaluation:
    if content["format"] != FORMAT:
        raise ValueError(f"format {content['format']!r}, this version reads {FORMAT}")
    settings, per_fight = msgspec.convert(content["settings"], EvaluationSettings), content["per_fight"]
    columns: dict[str, Any] = {name: np.array(per_fight[name], kind) for name, kind in PER_FIGHT.items()}
    columns["killed_by"] = msgspec.convert(per_fight["killed_by"], tuple[str, ...])
    for name, column in columns.items():
        if len(column) != settings.fights:
            raise ValueError(f"{name} has {len(column)} entries for {settings.fights} fights")
    if (files := len(settings.draw_seeds)) and (not settings.fights or settings.fights % files):
        raise ValueError(f"{settings.fights} fights cannot be of {files} files alike")
    over_time = msgspec.convert(content.get("damage_over_time"), DamageOverTime | None)
    if over_time and len({len(column) for column in dataclasses.astuple(over_time)}) > 1:
        raise ValueError("the columns of damage_over_time differ in length")
    return Evaluation(
        settings=settings,
        last_phase=int(content["last_phase"]),
        attacks=msgspec.convert(content["attacks"], tuple[AttackCount, ...]),
        deaths=msgspec.convert(content["deaths"], Breakdown),
        hits=msgspec.convert(content["hits"], Breakdown),
        places=np.array(content["places"], np.int64),
        hit_places=np.array(content["hit_places"], np.int64),
        damage_over_time=over_time,
        players=msgspec.convert(content.get("players", ()), tuple[str, ...]),
        made=msgspec.convert(content.get("made", ""), str),
        step=msgspec.convert(content.get("step"), int | None),
        **columns,
    )
