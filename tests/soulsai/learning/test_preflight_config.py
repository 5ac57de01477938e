"""Checks that the settings alone decide, or nearly: each is triggered by some settings and by nothing near them."""

from __future__ import annotations

import psutil
import pytest

from soulsai.config import Config, with_settings
from soulsai.learning.preflight import MEANINGS, Finding, findings, sample, verdict

Q = ["algorithm=q", "fight.number=8"]
GYM = ["world=gym", "gym.id=CartPole-v1"]


@pytest.fixture(autouse=True)
def no_fights(monkeypatch):
    """Leave out the checks that play fights for themselves, and play little for the others."""
    monkeypatch.setattr(sample, "STEPS", 60)
    monkeypatch.setattr(verdict, "exploit_findings", lambda config: iter(()))
    monkeypatch.setattr(verdict, "encoder_findings", lambda config: iter(()))


def found(settings: list[str]) -> list[Finding]:
    return findings(with_settings(Config(), settings))


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (["ppo.learning_rate=0.02"], "learning-rate"),
        (["ppo.learning_rate=0.0"], "learning-rate"),
        ([*Q, "q.learning_rate=1e-7"], "learning-rate"),
        (["ppo.epochs=21"], "many-updates"),
        (["ppo.minibatch=2000"], "minibatch-remainder"),
        (["fight.decisions=false"], "decisions-unmerged"),
        ([*Q, "q.update_every=200.0", "q.batch=64"], "few-updates"),
        ([*Q, "q.update_every=0.1"], "many-updates"),
        ([*Q, "q.tau=0.05"], "target-period"),
        ([*Q, "q.tau=0.0"], "target-period"),
        ([*Q, "q.target=hard", "q.target_period=49"], "target-period"),
        ([*Q, "q.target=hard", "q.target_period=12501"], "target-period"),
        ([*Q, "q.target=hard", "q.target_period=50001", "q.update_every=1.0", "q.batch=32"], "target-period"),
        ([*Q, "run.steps=2000", "q.epsilon_steps=2000"], "warmup-too-long"),
        ([*Q, "run.steps=49_999"], "epsilon-unfinished"),
        ([*Q, "replay.prioritized=true", "replay.beta=1.1"], "beta-above-one"),
        ([*Q, "replay.prioritized=true", "replay.final_beta=1.01"], "beta-above-one"),
        ([*Q, "q.n_step=2"], "n-step-uncorrected"),
        ([*Q, "q.distribution=c51", "q.value_range=[-10.0, 8.9]"], "value-range"),
        ([*Q, "q.distribution=c51", "q.value_range=[-4.4, 10.0]"], "value-range"),
        ([*Q, "q.distribution=c51", "reward.weights.win=4.5"], "value-range"),
        (["algorithm=q", *GYM, "q.distribution=c51"], "value-range"),
    ],
)
def test_settings_that_trigger_exactly_one_check(settings, name):
    assert [finding.name for finding in found(settings)] == [name]
    assert name in MEANINGS


@pytest.mark.parametrize(
    "settings",
    [
        [],
        Q,
        ["ppo.learning_rate=0.01"],
        ["ppo.epochs=20", "ppo.minibatch=1024"],
        [*Q, "q.learning_rate=1e-6"],
        [*Q, "q.tau=0.02"],
        [*Q, "q.target=hard", "q.target_period=50"],
        [*Q, "q.target=hard", "q.target_period=12500"],
        [*Q, "run.steps=2001", "q.epsilon_steps=2001"],
        [*Q, "run.steps=30_000", "q.epsilon=0.02"],
        [*Q, "replay.prioritized=true", "replay.beta=1.0"],
        ["algorithm=q", *GYM, "q.n_step=3"],
        [*Q, "q.distribution=c51", "q.value_range=[-4.6, 9.1]"],
        ["algorithm=q", *GYM, "q.distribution=c51", "q.value_range=[0.0, 100.0]"],
        ["algorithm=q", *GYM, "q.batch=32", "q.update_every=4.0"],
        ["algorithm=q", *GYM, "q.batch=256", "q.update_every=1.0"],
    ],
)
def test_settings_that_trigger_nothing(settings):
    assert found(settings) == []


def test_hints_do_not_refuse():
    hints = [*found(["ppo.minibatch=2000"]), *found([*Q, "q.n_step=2"]), *found([*Q, "run.steps=40_000"])]
    assert [hint.refuses for hint in hints] == [False] * 3
    # 512 fights x 32 decisions = 16,384 = 8 x 2000 + 384; the greatest common divisor of 16,384 and 2000 is 16.
    assert "leaves 384 of 16384 decisions out of every pass; a divisor such as 16 leaves none out" in hints[0].text
    # 1 - 0.98 x 40 / 50
    assert "after all 40000 steps 22% of the actions are still random" in hints[2].text


def test_lag_of_the_target_network_in_both_kinds_of_steps():
    (finding,) = found([*Q, "q.tau=0.005", "q.target_period=100"])
    assert "needs 20,000 gradient steps (160,000 steps of the world) to follow, which is too many" in finding.text


def test_uses_of_a_transition_count_merged_decisions():
    (gym,) = found(["algorithm=q", *GYM, "q.batch=31", "q.update_every=4.0"])
    assert gym.name == "few-updates"
    assert "learned from 7.75 times (q.batch 31, q.update_every 4)" in gym.text
    assert found([*Q, "q.batch=31", "q.update_every=4.0"]) == []  # a decision spans more than one step


def test_range_of_returns_by_the_weights():
    # 6 dealt + 3 for the win; -3 taken and -0.03 for each of 3000 steps at a discount of 0.98: 50 steps' worth.
    (finding,) = found([*Q, "q.distribution=c51", "q.value_range=[-1.0, 1.0]"])
    assert "as low as -4.5 and as high as 9.0" in finding.text
    (undiscounted,) = found([*Q, "q.distribution=c51", "q.gamma=1.0", "fight.step_limit=1000"])
    assert "as low as -33.0 and as high as 9.0" in undiscounted.text
    # 0.03 x (1 - 0.98^50) / (1 - 0.98) = 0.95
    (short,) = found([*Q, "q.distribution=c51", "q.value_range=[-1.0, 1.0]", "fight.step_limit=50"])
    assert "as low as -4.0 and as high as 9.0" in short.text


def test_replay_that_does_not_fit(monkeypatch):
    free = psutil.virtual_memory()
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free._replace(available=200_000_000))
    (finding,) = found(Q)
    assert finding.name == "replay-too-large"
    assert "replay.capacity = 262144 needs 0.3 GB of memory, but only 0.2 GB are free" in finding.text
    assert found([*Q, "replay.capacity=10_000"]) == []
    assert found([]) == []  # PPO has no replay


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        (["q.dueling=true"], "q.dueling = true"),
        (["replay.capacity=1_000_000"], "replay.capacity = 1000000"),
        (["gym.number=4"], "gym.number = 4"),
        (["starts.curriculum=0.5"], "starts.curriculum = 0.5"),
        (["starts.mid_fight=0.5", "starts.late_phase=0.5", "fight.full=false"], "starts.late_phase = 0.5"),
        (['actions.names=["roll F", "light attack"]', "actions.preset=reduced"], 'actions.preset = "reduced"'),
        (["run.evaluate_every_steps=0", "run.stop_at=0.9"], "run.stop_at = 0.9"),
        ([*GYM, "ppo.minibatch=256", "starts.random_pose=true"], "starts.random_pose = true"),
        ([*GYM, "ppo.minibatch=256", "reward.weights.win=1.0"], "reward.weights = {...}"),
        ([*Q, "ppo.gamma=0.9"], "ppo.gamma = 0.9"),
        ([*Q, "network.separate=true"], "network.separate = true"),
        ([*Q, "q.twin=true", "q.tau=0.01"], "q.tau = 0.01"),
        ([*Q, "q.twin=true", "q.double=true"], "q.double = true"),
        ([*Q, "q.target=hard", "q.target_period=500", "q.tau=0.01"], "q.tau = 0.01"),
        ([*Q, "q.noise=0.1"], "q.noise = 0.1"),
        ([*Q, "q.atoms=101"], "q.atoms = 101"),
        ([*Q, "q.distribution=quantile", "q.value_range=[-5.0, 5.0]"], "q.value_range = [-5.0, 5.0]"),
        ([*Q, "q.distribution=c51", "q.value_clip=2.0"], "q.value_clip = 2.0"),
        ([*Q, "q.distribution=quantile", "q.loss=mse"], 'q.loss = "mse"'),
        ([*Q, "q.epsilon=0", "q.final_epsilon=0", "q.spread=7"], "q.spread = 7.0"),
        ([*Q, "q.warmup_steps=0", "q.random_warmup=true"], "q.random_warmup = true"),
        ([*Q, "replay.beta=0.5"], "replay.beta = 0.5"),
        ([*Q, "q.noisy=true", "q.final_epsilon=0.2"], "q.final_epsilon = 0.2"),
        ([*Q, "q.weight_decay=1e-5"], "q.weight_decay = 1e-05"),
    ],
)
def test_settings_that_cancel_each_other(settings, key):
    (finding,) = found(settings)
    assert finding.name == "options-cancel"
    assert key in finding.text


@pytest.mark.parametrize(
    "settings",
    [
        ["starts.mid_fight=0.5", "starts.curriculum=0.5", "starts.late_phase=0.5"],
        ["run.stop_at=0.9"],
        [*GYM, "ppo.minibatch=256", "actions.masks=false"],
        [*Q, "q.twin=true"],
        [*Q, "q.noisy=true", "q.noise=0.1", "q.final_epsilon=0.1"],
        [*Q, "q.distribution=quantile", "q.atoms=101"],
        [*Q, "q.value_clip=2.0", "q.loss=mse"],
        [*Q, "q.spread=7"],
        [*Q, "replay.prioritized=true", "replay.alpha=0.5", "replay.beta=0.5"],
        [*Q, "q.optimizer=adamw", "q.weight_decay=1e-5"],
    ],
)
def test_settings_that_go_together(settings):
    assert found(settings) == []


def test_all_settings_in_vain_for_one_reason_are_one_finding():
    (finding,) = found([*Q, "q.twin=true", "q.target=hard", "q.target_period=100"])
    assert finding.text.startswith('q.target = "hard", q.target_period = 100 have no effect: with q.twin')
