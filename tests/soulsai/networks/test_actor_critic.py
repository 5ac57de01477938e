"""Policy and value."""

import pytest
import torch

from soulsai.config.schema import NetworkConfig
from soulsai.networks import ActorCritic

X = torch.tensor([[1.0, 2.0, 3.0], [-1.0, 0.5, 0.0]])


def made(network):
    """Three numbers seen, four actions."""
    torch.manual_seed(1)
    return ActorCritic(3, 4, network)


@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("normalize", [False, True])
def test_shapes_and_every_parameter_learns(separate, normalize):
    network = made(NetworkConfig(hidden=(8, 8), separate=separate, normalize=normalize))
    logits, values = network(X)
    assert logits.shape == (2, 4)
    assert values.shape == (2,)
    ((logits * torch.tensor([1.0, 2.0, 3.0, 5.0])).sum() + values.sum()).backward()
    assert all(parameter.grad.any() for parameter in network.parameters())


@pytest.mark.parametrize(("separate", "touched"), [(False, True), (True, False)])
def test_only_separate_networks_keep_the_value_out_of_the_policy(separate, touched):
    network = made(NetworkConfig(hidden=(8,), separate=separate))
    network(X)[1].sum().backward()
    assert (network.torso[0].weight.grad is not None) == touched


def test_gains():
    network = made(NetworkConfig(hidden=(8,)))
    for layer, gain in ((network.torso[0], 2**0.5), (network.policy_head, 0.01), (network.value_head, 1.0)):
        assert torch.linalg.matrix_norm(layer.weight, 2).item() == pytest.approx(gain, rel=1e-4)
        assert not layer.bias.any()


def test_the_first_policy_is_nearly_even():
    network = made(NetworkConfig())
    assert torch.allclose(network(X)[0].softmax(1), torch.full((2, 4), 0.25), atol=0.02)


def test_inputs_are_normalised_for_both():
    normal = made(NetworkConfig(separate=True, normalize=True))
    plain = made(NetworkConfig(separate=True))
    normal.normalizer.update(torch.tensor([[1.0, 0.0, 5.0], [3.0, 4.0, 9.0]]))
    scaled = (X - torch.tensor([2.0, 2.0, 7.0])) / torch.tensor([1.0, 2.0, 2.0])
    for ours, expected in zip(normal(X), plain(scaled), strict=True):
        assert torch.allclose(ours, expected, atol=1e-5)


def test_scores_are_logits_and_states_are_worth_what_the_value_head_says():
    network = made(NetworkConfig(hidden=(8,)))
    logits, values = network(X)
    assert torch.equal(network.scores(X), logits)
    assert torch.equal(network.state_values(X), values)
