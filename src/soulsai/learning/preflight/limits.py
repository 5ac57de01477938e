"""Numbers that work, and are still far from those that ever led anywhere."""

from __future__ import annotations

import math
from collections.abc import Iterator

from soulsai.config.schema import Config
from soulsai.learning.preflight.finding import Finding
from soulsai.learning.preflight.sample import Sample

FEWEST_REPLAYS, MOST_REPLAYS = 8.0, 512.0
"""How often a transition is learned from: 8 in DQN and Rainbow on Atari, 256 in SAC. RL-Souls has 6: most of what its
one game shows is hardly looked at. `rainbow` has 280, which was better than 140 here. Far beyond,
networks overfit to what little is new."""
MOST_EPOCHS = 20
"""Of PPO: beyond, the clipped ratios leave nothing to learn from."""
SHORTEST_LAG, LONGEST_LAG = 50.0, 50_000.0
"""Gradient steps in which the target network takes over the online one. Faster, it is no fixed target; DQN has 10,000,
SAC 200."""
LONGEST_LAG_STEPS = 100_000.0
"""The same in environment steps: DQN on Atari has 40,000. RL-Souls, with 200,000, learns from its own past."""
LOWEST_RATE, HIGHEST_RATE = 1e-6, 1e-2
"""All published settings for such networks lie between 1e-5 and 3e-3."""


def limit_findings(config: Config, sample: Sample) -> Iterator[Finding]:
    """Everything that the numbers of the config tell."""
    if config.world == "fight" and not config.fight.decisions:
        yield Finding(
            "decisions-unmerged",
            "fight.decisions is false: more than half of what is learned from are steps without any choice; "
            "use --set fight.decisions=true",
        )
    if config.algorithm == "ppo":
        yield from _rate_findings("ppo.learning_rate", config.ppo.learning_rate)
        yield from _ppo_findings(config)
    else:
        yield from _rate_findings("q.learning_rate", config.q.learning_rate)
        yield from _replayed_findings(config, sample.steps_per_decision)
        yield from _target_findings(config)
        yield from _schedule_findings(config)
        yield from _correction_findings(config)


def _rate_findings(key: str, rate: float) -> Iterator[Finding]:
    if not LOWEST_RATE <= rate <= HIGHEST_RATE:
        yield Finding(
            "learning-rate", f"{key} = {rate:g} is not within {LOWEST_RATE:g} to {HIGHEST_RATE:g}; begin with 1e-3"
        )


def _ppo_findings(config: Config) -> Iterator[Finding]:
    ppo = config.ppo
    if ppo.epochs > MOST_EPOCHS:
        yield Finding(
            "many-updates",
            f"ppo.epochs = {ppo.epochs} passes over the same decisions; use {MOST_EPOCHS} or fewer, such as 4",
        )
    collected = ppo.rollout * (config.fight.number if config.world == "fight" else config.gym.number)
    left = collected % ppo.minibatch
    if left:
        yield Finding(
            "minibatch-remainder",
            f"ppo.minibatch = {ppo.minibatch} leaves {left} of {collected} decisions out of every pass; "
            f"a divisor such as {math.gcd(collected, ppo.minibatch)} leaves none out",
            refuses=False,
        )


def _replayed_findings(config: Config, steps_per_decision: float) -> Iterator[Finding]:
    q = config.q
    replays = q.batch / q.update_every * steps_per_decision
    found = f"a transition is learned from {replays:.3g} times (q.batch {q.batch}, q.update_every {q.update_every:.4g})"
    if replays < FEWEST_REPLAYS:
        yield Finding("few-updates", f"{found}, less than {FEWEST_REPLAYS:g}: most of it is wasted; update more often")
    if replays > MOST_REPLAYS:
        yield Finding("many-updates", f"{found}, more than {MOST_REPLAYS:g}: it is overfitted to; update less often")


def _target_findings(config: Config) -> Iterator[Finding]:
    q = config.q
    if q.twin:
        return
    share = q.tau if q.target == "soft" else 1.0
    lag = q.target_period / share if share else math.inf
    found = f"the target network needs {lag:,.0f} gradient steps ({lag * q.update_every:,.0f} steps of the world)"
    if lag < SHORTEST_LAG:
        yield Finding("target-period", f"{found} to follow, which is too few; lower q.tau or raise q.target_period")
    elif lag > LONGEST_LAG or lag * q.update_every > LONGEST_LAG_STEPS:
        yield Finding("target-period", f"{found} to follow, which is too many; raise q.tau or lower q.target_period")


def _schedule_findings(config: Config) -> Iterator[Finding]:
    q, steps = config.q, config.run.steps
    if q.warmup_steps >= steps:
        yield Finding(
            "warmup-too-long",
            f"q.warmup_steps = {q.warmup_steps} is as long as the run of {steps} steps: nothing will be learned; "
            "lower it or raise run.steps",
        )
    if q.epsilon != q.final_epsilon and q.epsilon_steps > steps:
        share = q.epsilon + (q.final_epsilon - q.epsilon) * steps / q.epsilon_steps
        yield Finding(
            "epsilon-unfinished",
            f"after all {steps} steps {share:.0%} of the actions are still random, since q.epsilon_steps = "
            f"{q.epsilon_steps}; lower it or raise run.steps",
            refuses=False,
        )


def _correction_findings(config: Config) -> Iterator[Finding]:
    replay, n_step = config.replay, config.q.n_step
    beta = max(replay.beta, replay.final_beta)
    if replay.prioritized and beta > 1.0:
        yield Finding(
            "beta-above-one",
            f"importance weights of exponent {beta:g} overcorrect: what is sampled often counts for too little; "
            "keep replay.beta and replay.final_beta at 1 or less",
        )
    if config.world == "fight" and n_step > 1 and (replay.prioritized or config.fight.decisions):
        # Phase 1 after 200,000 steps: 93 and 97 % won with one decision, 23 % with three, 9 % with six.
        yield Finding(
            "n-step-uncorrected",
            f"q.n_step = {n_step} learned several times slower than 1 in this fight, where a decision spans up to a "
            "second and old choices stay in the replay; try --set q.n_step=1",
            refuses=False,
        )
