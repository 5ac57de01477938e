"""Measuring a policy while it is being trained: greedy, on seeds that training never sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from soulsai.acting.gym_world import GymWorld
from soulsai.acting.policy import NetworkPolicy, Policy
from soulsai.config.schema import Config
from soulsai.evaluation.evaluate import Progress, evaluate
from soulsai.evaluation.evaluation import Evaluation
from soulsai.learning.showing import EvaluationFiles
from soulsai.learning.wiring import against, build_fighter

SCORING_SEED = 0x6A75_6467
"""Another one than the default of `souls eval`, whose fights must not have had a say in which policy is kept."""


@dataclass(frozen=True)
class PolicyScore:
    """A score, larger is better, with its 95 % interval: a win rate, or the mean return of Gymnasium episodes.

    Of several bosses it is the win rate against the one that is won against least: all of them are to be won against.
    """

    value: float
    low: float
    high: float
    episodes: int
    time_outs: int
    is_win_rate: bool
    length: float | None = None  # mean steps of an episode
    boss_left: Mapping[str, float] = field(default_factory=dict)  # of all fights, and by the phase they ended in
    by_boss: Mapping[str, float] = field(default_factory=dict)  # win rates, if there are several bosses

    @staticmethod
    def of(values: Mapping[str, Any] | None) -> PolicyScore | None:
        """From its saved form."""
        return PolicyScore(**values) if values else None

    def metrics(self) -> dict[str, float]:
        """By metric name."""
        length = {} if self.length is None else {"episode/length_evaluation": self.length}
        if not self.is_win_rate:
            return {"return/evaluation": self.value} | length
        return {
            "win_rate/evaluation": self.value,
            "win_rate/evaluation_low": self.low,
            "win_rate/evaluation_high": self.high,
            "time_out_rate/evaluation": self.time_outs / self.episodes,
            **length,
            **{f"boss_health_left/{name}": share for name, share in self.boss_left.items()},
            **{f"win_rate/against/{boss}": rate for boss, rate in self.by_boss.items()},
        }


def score_policy(
    config: Config,
    policy: NetworkPolicy,
    episodes: int,
    *,
    step: int = 0,
    evaluation_files: EvaluationFiles | None = None,
    progress: Progress | None = None,
) -> PolicyScore:
    """Play `episodes` with the greedy policy as it is at a step of the training; some fights can be kept."""
    if config.world == "gym":
        returns = gym_returns(config, policy, episodes, SCORING_SEED)
        error = 1.96 * float(returns.std(ddof=1)) / len(returns) ** 0.5 if len(returns) > 1 else float("inf")
        mean = float(returns.mean())
        return PolicyScore(mean, mean - error, mean + error, len(returns), 0, False)
    recorders = {boss: evaluation_files.recorder() if evaluation_files else None for boss in config.fight.all_bosses}
    found = {
        boss: evaluate_policy(
            against(config, boss), policy, episodes, seed=SCORING_SEED, recorder=recorder, progress=progress
        )
        for boss, recorder in recorders.items()
    }
    worst = min(found, key=lambda boss: found[boss].win_rate)
    if evaluation_files:
        evaluation_files.show(found[worst], policy, recorders[worst], step)
    return _score_of(found[worst], {boss: one.win_rate for boss, one in found.items()} if len(found) > 1 else {})


def _score_of(found: Evaluation, by_boss: Mapping[str, float]) -> PolicyScore:
    low, high = found.interval
    return PolicyScore(
        found.win_rate,
        low,
        high,
        found.fights,
        found.time_outs,
        is_win_rate=True,
        length=float(found.steps.mean()),
        boss_left=boss_health_left(found),
        by_boss=by_boss,
    )


def boss_health_left(evaluation: Evaluation) -> dict[str, float]:
    """Mean share of the boss's health left at the end: of all fights, and of those that ended in each phase."""
    phases = {f"phase_{each.phase}": evaluation.phase == each.phase for each in evaluation.phases}
    left = evaluation.boss_hp_share
    ended = {name: float(left[here].mean()) for name, here in phases.items() if here.any()}
    return {"all": float(left.mean())} | (ended if len(phases) > 1 else {})


def evaluate_policy(config: Config, policy: Policy, fights: int, *, seed: int, **changes: Any) -> Evaluation:
    """Full evaluation of a policy in fights like those with its main boss, but plain; `changes` ask for others."""
    fight = config.fight
    asked: dict[str, Any] = {
        "boss": fight.main_boss,
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
    everything = np.ones_like(world.masks)
    # Each copy plays the same number of episodes: taking the first to end would favour short ones.
    quota = np.full(world.number, episodes // world.number)
    quota[: episodes % world.number] += 1
    totals, returns = np.zeros(world.number), []
    while quota.any():
        step = world.step(policy.choose(world.observations, world.masks if config.actions.masks else everything))
        totals += step.rewards
        for i in np.flatnonzero(step.ended):
            if quota[i]:
                returns.append(totals[i])
                quota[i] -= 1
            totals[i] = 0.0
    world.close()
    return np.array(returns)
