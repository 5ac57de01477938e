"""SAC: its values on a chain that is known, its policy, its temperature."""

import math

import pytest
import torch

from soulsai.algorithms.sac.config import SACConfig
from soulsai.algorithms.sac.learner import SACLearner
from soulsai.config.schema import Config, NetworkConfig, ReplayConfig, RunConfig
from soulsai.experience import Schema
from soulsai.replay.n_step import TRANSITION


def made(**sac):
    config = Config(
        algorithm="sac",
        sac=SACConfig(**{"learning_rate": 0.02, "tau": 0.2, "gradient_norm": 0.0} | sac),
        network=NetworkConfig(hidden=()),
        replay=ReplayConfig(capacity=64),
        run=RunConfig(steps=1000),
    )
    return SACLearner(config, Schema(TRANSITION, 2, 2, 1), torch.device("cpu"))


def probabilities(learner):
    with torch.no_grad():
        return learner.policy.scores(torch.eye(2)).softmax(1)


def test_critics_learn_the_soft_values_and_the_policy_follows_them(chain_batch):
    learner = made(target_entropy=0.0, temperature=0.05)
    for _ in range(800):
        wrong, metrics = learner.learn(chain_batch())
    # In the second place 0 ends with 2 and 1 with nothing: the policy there is nearly sure, so V is nearly 2.
    with torch.no_grad():
        values = [critic(torch.eye(2)) for critic in learner.critics]
    for found in values:
        torch.testing.assert_close(found, torch.tensor([[1.0, 0.9 * 2.0], [2.0, 0.0]]), atol=0.1, rtol=0.0)
    assert probabilities(learner)[1, 0] > 0.95
    assert float(wrong.max()) < 0.1
    assert all(math.isfinite(float(value)) for value in metrics.values())


def test_closed_actions_have_no_say(chain_batch):
    learner = made(target_entropy=0.0, temperature=0.05)
    masks = torch.tensor([[False, True]]).repeat(4, 1)  # in the second place only 1 is open, which pays nothing
    for _ in range(600):
        learner.learn(chain_batch(masks))
    with torch.no_grad():
        value = learner.critics[0](torch.eye(2))[0, 1]
    assert float(value) == pytest.approx(0.0, abs=0.1)


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_the_temperature_keeps_the_entropy(share, chain_batch):
    learner = made(target_entropy=share, temperature=0.5)
    for _ in range(1500):
        _, metrics = learner.learn(chain_batch())
    assert float(metrics["policy/entropy"]) == pytest.approx(share * math.log(2.0), abs=0.1)


def test_without_a_target_the_temperature_stays(chain_batch):
    learner = made(target_entropy=0.0, temperature=0.3)
    for _ in range(10):
        _, metrics = learner.learn(chain_batch())
    assert float(metrics["temperature"]) == pytest.approx(0.3)


def test_all_of_it_is_in_a_checkpoint(chain_batch):
    learner = made()
    learner.learn(chain_batch())
    parts = learner.parts()
    assert {
        "network",
        "critic",
        "second_critic",
        "target.critic",
        "target.second_critic",
        "temperature",
    } <= parts.keys()
    assert {f"optimizer.{name}" for name in ("network", "critic", "second_critic", "temperature")} <= parts.keys()
