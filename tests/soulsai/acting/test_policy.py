"""Greedy choices, and random ones among them."""

import numpy as np
import pytest
import torch

from soulsai.acting.network import mix_random
from soulsai.acting.policy import NetworkPolicy
from soulsai.config.schema import NetworkConfig
from soulsai.networks import ActorCritic, QNetwork

LINEAR = NetworkConfig(hidden=())
SEEN = np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)
EVERYTHING = np.ones((2, 3), np.bool_)


def q_network(*rows):
    """Q of the two one-hot observations."""
    network = QNetwork(2, 3, LINEAR)
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


def test_never_random_and_always_random():
    generator = np.random.default_rng(0)
    greedy, masks = np.full(1000, 3), np.ones((1000, 4), np.bool_)
    assert np.array_equal(mix_random(greedy, masks, np.zeros(1000), generator), greedy)
    masks[:, 3] = False
    assert not (mix_random(greedy, masks, np.ones(1000), generator) == 3).any()


def test_only_open_actions_and_all_alike():
    generator, n = np.random.default_rng(1), 30_000
    masks = np.tile(np.array([True, False, True, True, False]), (n, 1))
    chosen = mix_random(np.full(n, 1), masks, np.ones(n), generator)
    counts = np.bincount(chosen, minlength=5)
    assert counts[[1, 4]].tolist() == [0, 0]
    # Chi-square with 2 degrees of freedom: beyond 13.8 once in a thousand.
    assert ((counts[[0, 2, 3]] - n / 3) ** 2 / (n / 3)).sum() < 13.8


def test_each_actor_has_its_own_share():
    generator, n = np.random.default_rng(2), 20_000
    masks = np.tile(np.array([True, False, False]), (n, 1))
    shares = np.tile([0.1, 0.6], n // 2)
    random = mix_random(np.full(n, 2), masks, shares, generator) == 0
    # Deviation of a share of 10,000: 0.005 at most.
    assert random[0::2].mean() == pytest.approx(0.1, abs=0.015)
    assert random[1::2].mean() == pytest.approx(0.6, abs=0.02)
