"""Policy and value."""

import pytest
import torch

from soulsai.config.schema import NetworkConfig
from soulsai.networks import build_actor_critic

X = torch.tensor([[1.0, 2.0, 3.0], [-1.0, 0.5, 0.0]])


@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("normalize", [False, True])
def test_shapes_and_every_parameter_learns(separate, normalize):
    network = build_actor_critic(3, 4, NetworkConfig(hidden=(8, 8), separate=separate, normalize=normalize), seed=1)
    logits, values = network(X)
    assert logits.shape == (2, 4)
    assert values.shape == (2,)
    ((logits * torch.tensor([1.0, 2.0, 3.0, 5.0])).sum() + values.sum()).backward()
    assert all(parameter.grad.any() for parameter in network.parameters())


@pytest.mark.parametrize(("separate", "touched"), [(False, True), (True, False)])
def test_only_separate_networks_keep_the_value_out_of_the_policy(separate, touched):
    network = build_actor_critic(3, 4, NetworkConfig(hidden=(8,), separate=separate), seed=1)
    network(X)[1].sum().backward()
    assert (network.torso[0].weight.grad is not None) == touched


def test_gains():
    network = build_actor_critic(3, 4, NetworkConfig(hidden=(8,)), seed=1)
    for layer, gain in ((network.torso[0], 2**0.5), (network.policy_head, 0.01), (network.value_head, 1.0)):
        assert torch.linalg.matrix_norm(layer.weight, 2).item() == pytest.approx(gain, rel=1e-4)
        assert not layer.bias.any()


def test_the_first_policy_is_nearly_even():
    network = build_actor_critic(3, 4, NetworkConfig(), seed=1)
    assert torch.allclose(network(X)[0].softmax(1), torch.full((2, 4), 0.25), atol=0.02)


def test_inputs_are_normalised_for_both():
    normal = build_actor_critic(3, 4, NetworkConfig(separate=True, normalize=True), seed=1)
    plain = build_actor_critic(3, 4, NetworkConfig(separate=True), seed=1)
    normal.normalizer.update(torch.tensor([[1.0, 0.0, 5.0], [3.0, 4.0, 9.0]]))
    scaled = (X - torch.tensor([2.0, 2.0, 7.0])) / torch.tensor([1.0, 2.0, 2.0])
    for ours, expected in zip(normal(X), plain(scaled), strict=True):
        assert torch.allclose(ours, expected, atol=1e-5)
