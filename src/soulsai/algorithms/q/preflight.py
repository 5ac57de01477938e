"""What looks wrong about settings of Q-learning."""

from __future__ import annotations

import math
from collections.abc import Iterator

from soulsai.algorithms.findings import Finding, Sample, UselessSettings, rate_findings
from soulsai.algorithms.q.config import QConfig
from soulsai.config.schema import Config
from soulsai.config.toml import toml_value

FEWEST_REPLAYS, MOST_REPLAYS = 8.0, 512.0
"""How often a transition is learned from: 8 in DQN and Rainbow on Atari, 256 in SAC. RL-Souls has 6: most of what its
one game shows is hardly looked at. `clipped-dqn` has 280, which was better than 140 here. Far beyond,
networks overfit to what little is new."""
SHORTEST_LAG, LONGEST_LAG = 50.0, 50_000.0
"""Gradient steps in which the target network takes over the online one. Faster, it is no fixed target; DQN has 10,000,
SAC 200."""
LONGEST_LAG_STEPS = 100_000.0
"""The same in environment steps: DQN on Atari has 40,000. RL-Souls, with 200,000, learns from its own past."""
MOST_EPSILON = 0.1
"""Beside learned noise; more random actions than these leave the noise little to explore."""


def findings(config: Config, sample: Sample) -> Iterator[Finding]:
    """Numbers that are far from those that ever led anywhere."""
    yield from rate_findings("q.learning_rate", config.section(QConfig).learning_rate)
    yield from _conflicts(config)
    yield from _replay_findings(config, sample.steps_per_decision)
    yield from _target_findings(config)
    yield from _schedule_findings(config)
    yield from _correction_findings(config)
    yield from _value_range_findings(config, sample)


def useless(config: Config) -> Iterator[UselessSettings]:
    """Settings that others make useless."""
    q = config.section(QConfig)
    separate = ("network.separate",)
    yield UselessSettings(True, separate, 'algorithm is "q"')
    yield UselessSettings(
        q.twin,
        ("q.double", "q.target", "q.tau", "q.target_period"),
        "with q.twin there is no target network, each twin values what the other chooses",
    )
    yield UselessSettings(q.clipped, ("q.double",), "with q.clipped both target networks choose together")
    yield UselessSettings(not q.twin and q.target == "hard", ("q.tau",), 'q.target is "hard"')
    yield UselessSettings(not q.noisy, ("q.noise",), "q.noisy is false")
    yield UselessSettings(q.distribution == "none", ("q.atoms",), 'q.distribution is "none"')
    yield UselessSettings(q.distribution != "c51", ("q.value_range",), 'q.distribution is not "c51"')
    yield UselessSettings(q.distribution != "none", ("q.value_clip", "q.loss"), f'q.distribution is "{q.distribution}"')
    yield UselessSettings(q.epsilon == q.final_epsilon == 0.0, ("q.spread",), "q.epsilon and q.final_epsilon are 0")
    yield UselessSettings(q.warmup_steps == 0, ("q.random_warmup",), "q.warmup_steps is 0")
    shown = ("demos.share", "demos.final_share", "demos.share_steps", "demos.margin", "demos.margin_weight")
    yield UselessSettings(not config.demos.files, shown, "demos.files is empty")
    unused = ("replay.alpha", "replay.beta", "replay.final_beta")
    yield UselessSettings(not config.replay.prioritized, unused, "replay.prioritized is false")


def _conflicts(config: Config) -> Iterator[Finding]:
    q = config.section(QConfig)
    if q.noisy and q.final_epsilon > MOST_EPSILON:
        yield Finding(
            "options-cancel",
            f"q.noisy already explores, but q.final_epsilon = {q.final_epsilon:g} of the actions stay random; "
            f"use {MOST_EPSILON:g} or less, such as 0",
        )
    if q.weight_decay and q.optimizer == "adam":
        yield Finding(
            "options-cancel",
            f"q.weight_decay = {q.weight_decay:g} goes through the moments of adam and hardly decays large weights; "
            "use --set q.optimizer=adamw",
        )


def _replay_findings(config: Config, steps_per_decision: float) -> Iterator[Finding]:
    q = config.section(QConfig)
    replays = q.batch / q.update_every * steps_per_decision
    found = f"a transition is learned from {replays:.3g} times (q.batch {q.batch}, q.update_every {q.update_every:.4g})"
    if replays < FEWEST_REPLAYS:
        yield Finding("few-updates", f"{found}, less than {FEWEST_REPLAYS:g}: most of it is wasted; update more often")
    if replays > MOST_REPLAYS:
        yield Finding("many-updates", f"{found}, more than {MOST_REPLAYS:g}: it is overfitted to; update less often")


def _target_findings(config: Config) -> Iterator[Finding]:
    q = config.section(QConfig)
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
    q, steps = config.section(QConfig), config.run.steps
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
    replay, n_step = config.replay, config.section(QConfig).n_step
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


def _value_range_findings(config: Config, sample: Sample) -> Iterator[Finding]:
    """A range that the best or the worst return does not lie in: what is outside of it is cut off in silence."""
    q = config.section(QConfig)
    if q.distribution != "c51":
        return
    worst, best = min(sample.worst_return, sample.lowest_return), max(sample.best_return, sample.highest_return)
    low, high = q.value_range
    if worst < low or best > high:
        yield Finding(
            "value-range",
            f"returns can be as low as {worst:.1f} and as high as {best:.1f}, but c51 knows none outside of "
            f"q.value_range = {toml_value(q.value_range)}; make it wider, or the reward's weights smaller",
        )
