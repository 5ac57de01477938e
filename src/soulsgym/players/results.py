"""Plays seeded fights with a player and counts how they went."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from soulsgym.actions import ACTION_CONTROLS
from soulsgym.engine import standard_starts
from soulsgym.errors import MisuseError
from soulsgym.players.player import Player
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import FightSpec
from soulsgym.state import Outcome, action_mask_of, observation_of

STEP_LIMIT = 3000
"""Steps of 0.1 s after which a fight counts as lost."""
FALL = "fall"
"""How a death without a blow is listed."""


@dataclass(frozen=True)
class FightResults:
    """How each of `n` fights went."""

    outcome: npt.NDArray[np.int32]  # Outcome; RUNNING where the step limit ended it
    survival_s: npt.NDArray[np.float32]  # game time until the end
    player_hp: npt.NDArray[np.float32]
    boss_hp: npt.NDArray[np.float32]
    phase: npt.NDArray[np.int64]  # the one it ended in
    killed_by: tuple[str, ...]  # move of the fatal blow, FALL, or nothing

    @property
    def fights(self) -> int:
        """How many there were."""
        return len(self.outcome)

    @property
    def wins(self) -> int:
        """Fights in which the boss died."""
        return int((self.outcome == Outcome.WON).sum())

    @property
    def win_rate(self) -> float:
        """Share of wins."""
        return self.wins / self.fights

    @property
    def time_outs(self) -> int:
        """Fights the step limit ended; they count as lost."""
        return int((self.outcome == Outcome.RUNNING).sum())

    @property
    def median_survival_s(self) -> float:
        """Median of the survival times."""
        return float(np.median(self.survival_s))

    @property
    def deaths_by_attack(self) -> dict[str, int]:
        """Deaths by the move that dealt the fatal blow, most frequent first."""
        names, counts = np.unique([name for name in self.killed_by if name], return_counts=True)
        order = np.argsort(-counts, kind="stable")
        return {str(names[i]): int(counts[i]) for i in order}


def run_fights(
    player: Player,
    spec: FightSpec,
    n: int,
    seed: int = 0,
    *,
    phase: int = 1,
    changes: bool = True,
    randomize: float = 0.0,
    step_limit: int = STEP_LIMIT,
    threads: int = 1,
) -> FightResults:
    """Play `n` fights side by side, each once; the same seed gives the same fights to a player in the same state."""
    if step_limit < 1:
        raise MisuseError(f"step limit {step_limit} is not possible; give 1 or more")
    engine = SimEngine(spec, n, phase=phase, changes=changes, randomize=randomize, threads=threads)
    seeds = np.random.SeedSequence(seed).generate_state(n, np.uint64).astype(np.uint64)
    everyone = np.ones(n, np.bool_)
    engine.reset(everyone, standard_starts(n), seeds)
    player.reset(everyone)
    fights = engine.fights
    for _ in range(step_limit):
        actions = player.act(observation_of(fights), action_mask_of(fights))
        engine.step(ACTION_CONTROLS[actions])
        if not (fights["outcome"] == Outcome.RUNNING).any():
            break
    engine.close()
    moves = spec.boss.moves
    died = np.isin(fights["outcome"], (Outcome.DIED, Outcome.FELL))
    return FightResults(
        outcome=fights["outcome"].copy(),
        survival_s=fights["time_s"].copy(),
        player_hp=fights["player_hp"][:, 0].copy(),
        boss_hp=fights["boss_hp"][:, 0].copy(),
        phase=fights["phase"].copy(),
        killed_by=tuple(
            (moves[move].name if move >= 0 else FALL) if dead else ""
            for move, dead in zip(fights["killed_by"], died, strict=True)
        ),
    )
