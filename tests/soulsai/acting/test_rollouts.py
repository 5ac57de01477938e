"""Rollouts: which value follows which, and how actions are drawn."""

from itertools import repeat

import numpy as np
import pytest
import torch

from soulsai.acting.rollouts import ROLLOUT, RolloutActor
from soulsai.acting.world import sizes_of
from soulsai.config.schema import NetworkConfig
from soulsai.experience import Schema
from soulsai.networks import ActorCritic


def plain_network(num_actions, logits):
    """V is the first number of the observation plus a half; the logits are always the same."""
    network = ActorCritic(2, num_actions, NetworkConfig(hidden=()))
    with torch.no_grad():
        network.value_head.weight[:] = torch.tensor([[1.0, 0.0]])
        network.value_head.bias[:] = 0.5
        network.policy_head.weight[:] = 0.0
        network.policy_head.bias[:] = torch.tensor(logits)
    return network


def make_actor(world, logits=(0.0, 1.0, 2.0), *, rollout, gamma=0.5, masks=True):
    schema = Schema.of(ROLLOUT, sizes_of(world), rollout)
    return RolloutActor(world, schema, plain_network(world.num_actions, logits), gamma=gamma, masks=masks, seed=[0])


def test_values_rewards_and_discounts_by_hand(scripted_world):
    script = [
        {"rewards": [1.0, 2.0], "steps": [1, 3]},
        {"rewards": [0.0, -1.0], "steps": [1, 3], "truncated": [False, True]},
        {"steps": [2, 1], "terminated": [True, False]},
        {"steps": [1, 1], "terminated": [False, True], "truncated": [False, True]},
    ]
    world = scripted_world(2, 3, script)
    chunk = make_actor(world, rollout=4).play()
    rollout = chunk.columns
    assert chunk.steps == (1 + 3) + (1 + 3) + (2 + 1) + (1 + 1)
    assert rollout["observations"][:, :, 0].tolist() == [[0, 0], [1, 1], [2, 2], [3, 3]]
    assert rollout["rewards"].tolist() == [[1, 2], [0, -1], [0, 0], [0, 0]]
    assert rollout["values"].tolist() == [[0.5, 0.5], [1.5, 1.5], [2.5, 2.5], [3.5, 3.5]]
    # The value after a step is that of the next observation, of the final one where cut off, and none at an end.
    assert rollout["next_values"].tolist() == [[1.5, 1.5], [2.5, 1002.5], [0.0, 3.5], [4.5, 0.0]]
    assert rollout["discounts"].tolist() == [[0.5, 0.125], [0.5, 0.125], [0.0, 0.5], [0.5, 0.0]]
    assert rollout["continues"].tolist() == [[True, True], [True, False], [False, True], [True, False]]
    assert np.array_equal(rollout["actions"], np.array(world.actions))
    assert chunk.ended.lengths.tolist() == [6, 4, 2]
    assert chunk.ended.terms.tolist() == [[1.0], [1.0], [0.0]]


def test_a_second_rollout_forgets_the_first(scripted_world):
    world = scripted_world(1, 3, [{"truncated": [True]}, {}, {}, {}])
    actor = make_actor(world, rollout=2)
    actor.play()
    rollout = actor.play().columns
    assert rollout["continues"].tolist() == [[True], [True]]
    assert rollout["next_values"].tolist() == [[3.5], [4.5]]


def test_log_probabilities_are_those_among_open_actions(scripted_world):
    masks = np.array([[True, True, False], [True, True, True]])
    world = scripted_world(2, 3, repeat({"masks": masks}))
    world.masks[:] = masks
    rollout = make_actor(world, rollout=50).play().columns
    e = np.exp
    expected = (np.log([1 / (1 + e(1)), e(1) / (1 + e(1)), 0.1]), np.log(e([0, 1, 2]) / e([0, 1, 2]).sum()))
    for env in range(2):
        actions = rollout["actions"][:, env]
        assert len(set(actions.tolist())) == 2 + env
        assert rollout["log_probs"][:, env] == pytest.approx(expected[env][actions], abs=1e-6)


def test_closed_actions_are_never_chosen(scripted_world):
    generator = np.random.default_rng(0)
    masks = generator.random((101, 100, 5)) < 0.4
    masks[..., 3] |= ~masks.any(axis=2)
    world = scripted_world(100, 5, ({"masks": mask} for mask in masks[1:]))
    world.masks[:] = masks[0]
    # The closed ones would be far the best.
    rollout = make_actor(world, (0.0, 20.0, 0.0, -20.0, 20.0), rollout=100).play().columns
    assert np.array_equal(rollout["masks"], masks[:100])
    assert np.take_along_axis(rollout["masks"], rollout["actions"][..., None], 2).all()
    assert set(np.unique(rollout["actions"]).tolist()) == {0, 1, 2, 3, 4}


def test_open_actions_are_drawn_by_their_probability(scripted_world):
    mask = np.array([True, False, True])
    world = scripted_world(100, 3, repeat({"masks": mask}))
    world.masks[:] = mask
    rollout = make_actor(world, (0.0, 5.0, 1.0), rollout=100).play().columns
    shares = np.bincount(rollout["actions"].reshape(-1), minlength=3) / 10_000
    # Deviation of a share of 10,000 draws: 0.0044.
    assert shares == pytest.approx([1 / (1 + np.e), 0.0, np.e / (1 + np.e)], abs=0.018)


def test_without_masks_everything_may_be_chosen(scripted_world):
    mask = np.array([True, False, True])
    world = scripted_world(50, 3, repeat({"masks": mask}))
    world.masks[:] = mask
    rollout = make_actor(world, rollout=20, masks=False).play().columns
    assert rollout["masks"].all()
    assert set(np.unique(rollout["actions"]).tolist()) == {0, 1, 2}


def test_it_plays_with_weights_that_are_loaded_later(scripted_world):
    """The network is not flat before."""
    world = scripted_world(2, 3, repeat({}))
    actor = make_actor(world, (0.0, 0.0, 0.0), rollout=2)
    actor.play()
    other = plain_network(3, (-50.0, 50.0, -50.0))
    with torch.no_grad():
        other.value_head.bias[:] = 7.0
    actor._network.network.load_state_dict(other.state_dict())
    found = actor.play().columns
    assert (found["actions"] == 1).all()
    assert (found["values"] == found["observations"][:, :, 0] + 7.0).all()
