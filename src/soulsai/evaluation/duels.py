"""The duel board: how a person, an agent and a script did in the same fights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from soulsai.evaluation.evaluate import STEP_LIMIT, play_steps
from soulsai.evaluation.fighter import Fighter
from soulsgym.batch import seed_number
from soulsgym.engine import standard_starts
from soulsgym.envs.simulated import FightSettings, fight_specs
from soulsgym.sim.engine import SimEngine
from soulsgym.state import Fights, Outcome, copied

HEAD = ("", "wins", "fights", "time", "dealt", "taken")


@dataclass(frozen=True)
class Duels:
    """How somebody did: wins, and the means of time and damage over all fights."""

    name: str
    fights: int
    wins: int
    time_s: float
    dealt: float
    taken: float

    @property
    def row(self) -> tuple[str, ...]:
        """The same in words, in the order of HEAD."""
        if not self.fights:
            return self.name, "0", "0", "", "", ""
        means = f"{self.time_s:.1f} s", f"{self.dealt:,.0f}", f"{self.taken:,.0f}"
        return self.name, f"{self.wins}", f"{self.fights}", *means


def duels_of(name: str, endings: Fights) -> Duels:
    """Count the last records of somebody's fights."""
    means = (endings[key].mean() if len(endings) else 0.0 for key in ("time_s", "dealt_total", "taken_total"))
    time_s, dealt, taken = map(float, means)
    return Duels(name, len(endings), int((endings["outcome"] == Outcome.WON).sum()), time_s, dealt, taken)


def play_seeds(fighter: Fighter, settings: FightSettings, seeds: Sequence[int], limit: int = STEP_LIMIT) -> Fights:
    """The last records of fights with these seeds, fought side by side."""
    number = len(seeds)
    engine = SimEngine(
        fight_specs(settings)[0], number, phase=settings.phase, changes=settings.changes, randomize=settings.randomize
    )
    engine.reset(np.ones(number, np.bool_), standard_starts(number), np.array([seed_number(seed) for seed in seeds]))
    for _ in play_steps(engine, fighter, limit):
        pass
    engine.close()
    return copied(engine.fights)
