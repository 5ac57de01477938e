"""Measuring a policy while it is being trained: greedy, on seeds that training never sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from soulsai.acting.gym_world import GymWorld
from soulsai.acting.policy import NetworkPolicy, Policy
from soulsai.config.schema import Config
from soulsai.evaluation.evaluate import Evaluation, evaluate
from soulsai.learning.exhibition import Exhibition
from soulsai.learning.wiring import build_fighter

JUDGING_SEED = 0x6A75_6467
"""Another one than the default of `souls eval`, whose fights must not have had a say in which policy is kept."""


@dataclass(frozen=True)
class Judgement:
    """A score, larger is better, with its 95 % interval: a win rate, or the mean return of Gymnasium episodes."""

    score: float
    low: float
    high: float
    episodes: int
    time_outs: int
    wins: bool  # is the score a win rate?

    @staticmethod
    def of(values: Mapping[str, Any] | None) -> Judgement | None:
        """From its saved form."""
        return Judgement(**values) if values else None

    def metrics(self) -> dict[str, float]:
        """By metric name."""
        if not self.wins:
            return {"return/evaluation": self.score}
        return {
            "win_rate/evaluation": self.score,
            "win_rate/evaluation_low": self.low,
            "win_rate/evaluation_high": self.high,
            "time_out_rate/evaluation": self.time_outs / self.episodes,
        }


def judge(
    config: Config, policy: NetworkPolicy, episodes: int, *, step: int = 0, exhibition: Exhibition | None = None
) -> Judgement:
    """Play `episodes` with the greedy policy as it is at a step of the training; fights can be exhibited."""
    if config.world == "gym":
        returns = gym_returns(config, policy, episodes, JUDGING_SEED)
        error = 1.96 * float(returns.std(ddof=1)) / len(returns) ** 0.5 if len(returns) > 1 else float("inf")
        mean = float(returns.mean())
        return Judgement(mean, mean - error, mean + error, len(returns), 0, False)
    witness = exhibition.witness() if exhibition else None
    found = evaluate_policy(config, policy, episodes, seed=JUDGING_SEED, witness=witness)
    if exhibition:
        exhibition.show(found, policy, witness, step)
    low, high = found.interval
    return Judgement(found.win_rate, low, high, found.fights, found.time_outs, True)


def evaluate_policy(config: Config, policy: Policy, fights: int, *, seed: int, **changes: Any) -> Evaluation:
    """Full evaluation of a policy in fights like those it trained on, but plain; `changes` ask for others."""
    fight = config.fight
    asked: dict[str, Any] = {
        "boss": fight.boss,
        "variant": fight.main_variant,
        "phase": fight.phase,
        "full": fight.full,
        "randomize": 0.0,
        "random_pose": config.starts.random_pose and not fight.full,
        "step_limit": fight.step_limit,
        "no_hit": fight.no_hit,
    } | changes
    return evaluate(build_fighter(config, policy), fights, seed=seed, **asked)


def gym_returns(
    config: Config, policy: Policy, episodes: int, seed: int
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Returns of greedy Gymnasium episodes."""
    world = GymWorld(config.gym.id, min(episodes, 16), config.gym.kwargs)
    world.reset(seed)
    # Each copy plays the same number of episodes: taking the first to end would favour short ones.
    quota = np.full(world.number, episodes // world.number)
    quota[: episodes % world.number] += 1
    totals, returns = np.zeros(world.number), []
    while quota.any():
        step = world.step(policy.choose(world.observations, world.masks))
        totals += step.rewards
        for i in np.flatnonzero(step.ended):
            if quota[i]:
                returns.append(totals[i])
                quota[i] -= 1
            totals[i] = 0.0
    world.close()
    return np.array(returns)
