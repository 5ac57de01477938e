"""Greedy choices."""

import numpy as np
import torch

from soulsai.acting.policy import NetworkPolicy
from soulsai.config.schema import NetworkConfig, QConfig
from soulsai.networks import ActorCritic, QNetwork

LINEAR = NetworkConfig(hidden=())
SEEN = np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)
EVERYTHING = np.ones((2, 3), np.bool_)


def q_network(*rows):
    """Q of the two one-hot observations."""
    network = QNetwork(2, 3, LINEAR, QConfig())
    with torch.no_grad():
        network.head.weight[:] = torch.tensor(rows).T
        network.head.bias[:] = 0.0
    return network


def test_the_most_probable_open_action():
    network = ActorCritic(2, 3, LINEAR)
    with torch.no_grad():
        network.policy_head.weight[:] = torch.tensor([[0.1, 3.0], [0.3, 2.0], [0.2, 1.0]])
    policy = NetworkPolicy(network)
    assert policy.choose(SEEN, EVERYTHING).tolist() == [1, 0]
    closed = np.array([[True, False, True], [False, True, True]])
    chosen = policy.choose(SEEN, closed)
    assert chosen.tolist() == [2, 1]
    assert chosen.dtype == np.int64


def test_the_highest_value_even_below_zero():
    policy = NetworkPolicy(q_network([-5.0, -2.0, -3.0], [-1.0, -2.0, -9.0]))
    assert policy.choose(SEEN, EVERYTHING).tolist() == [1, 0]
    assert policy.choose(SEEN, np.array([[True, False, False], [False, False, True]])).tolist() == [0, 2]


def test_twins_are_summed():
    one, other = q_network([3.0, 0.0, 2.0], [1.0, 0.0, 0.0]), q_network([0.0, 0.0, 2.0], [0.0, 2.0, 0.0])
    assert NetworkPolicy(one).choose(SEEN, EVERYTHING).tolist() == [0, 0]
    assert NetworkPolicy(one, other).choose(SEEN, EVERYTHING).tolist() == [2, 1]
