"""IMPALA: it learns, also from a policy that is long gone."""

import numpy as np
import pytest
import torch

from soulsai.acting.rollouts import ROLLOUT, RolloutActor
from soulsai.acting.world import sizes_of
from soulsai.algorithms.algorithm import algorithm_of
from soulsai.algorithms.impala.config import ImpalaConfig
from soulsai.algorithms.impala.learner import ImpalaLearner
from soulsai.config.schema import Config, NetworkConfig, RunConfig
from soulsai.experience import Chunk, Ended, Schema
from soulsai.networks import ActorCritic

SETTINGS = ImpalaConfig(rollout=4, sequences=16, learning_rate=0.01, entropy=0.0, final_entropy=0.0)


def made(bandit, settings=SETTINGS, seed=1):
    config = Config(
        algorithm="impala", impala=settings, network=NetworkConfig(hidden=(16,)), run=RunConfig(steps=10**6, seed=seed)
    )
    return ImpalaLearner(config, Schema.of(ROLLOUT, sizes_of(bandit), settings.rollout), torch.device("cpu"))


def chosen(learner):
    with torch.no_grad():
        logits, value = learner.network(torch.ones(1, 1))
    return logits[0, :3].softmax(0).tolist(), float(value)


@pytest.mark.parametrize("stale", [False, True])
def test_it_finds_the_best_arm_even_from_a_policy_that_never_learns(stale, bandit):
    learner = made(bandit)
    acting = ActorCritic(1, 4, learner.config.network) if stale else learner.network
    actor = RolloutActor(bandit, learner.schema, acting, gamma=0.9, masks=True, seed=[0])
    for _ in range(60):
        learner.take(actor.play())
        learner.update(1.0)
    probabilities, value = chosen(learner)
    assert probabilities[2] > 0.95
    assert value == pytest.approx(1.0, abs=0.15)


def test_what_only_the_old_policy_would_do_counts_for_little(bandit):
    """A decision that the learned policy would hardly make moves it less than one that both would make."""
    moved = []
    for old in (0.0, -8.0):  # log probability of the acting policy: it was sure, or hardly ever did it
        learner = made(bandit)
        columns = learner.schema.empty(4)
        columns["observations"][:], columns["masks"][:] = 1.0, [True, True, True, False]
        columns["log_probs"][:], columns["rewards"][:] = old, 1.0
        before = learner.flat.data.clone()
        learner.take(Chunk(columns, Ended.join([], 1), 4))
        metrics = learner.update(1.0)
        moved.append(float(metrics["gradient/norm"]))
        assert not torch.equal(before, learner.flat.data)
    assert moved[0] < moved[1] / 2  # the ratio is a third, beside one that is cut at 1


def test_a_gradient_step_for_every_so_many_sequences(bandit):
    learner = made(bandit)
    actor = RolloutActor(bandit, learner.schema, learner.network, gamma=0.9, masks=True, seed=[0])
    learner.take(actor.play())  # 32 sequences
    assert learner.is_due
    assert np.isfinite([float(value) for value in learner.update(1.0).values()]).all()
    assert (learner.counters.updates, learner.is_due) == (2, False)
    assert learner.update(1.0) == {}


def test_workers_need_not_wait_and_may_lag():
    config = Config(algorithm="impala")
    algorithm = algorithm_of(config)
    assert (algorithm.workers_wait, algorithm.max_lag(config)) == (False, 100)
    assert algorithm.rows_of_update(config) == 16 * 64
