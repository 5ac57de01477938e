"""Hidden layers."""

import math

import pytest
import torch
from torch import nn

from soulsai.config.schema import NetworkConfig
from soulsai.networks.layers import linear, torso, torso_width


def kinds(network):
    return [type(layer) for layer in torso(3, network)]


def test_linear_normalised_activated():
    assert kinds(NetworkConfig(hidden=(4, 5))) == [nn.Linear, nn.ReLU, nn.Linear, nn.ReLU]
    assert kinds(NetworkConfig(hidden=(4,), layer_norm=True)) == [nn.Linear, nn.LayerNorm, nn.ReLU]


@pytest.mark.parametrize(
    ("name", "expected"), [("relu", 0.0), ("tanh", math.tanh(-1)), ("silu", -1 / (1 + math.e)), ("leaky_relu", -0.01)]
)
def test_activations(name, expected):
    layer = torso(3, NetworkConfig(hidden=(4,), activation=name))[-1]
    assert layer(torch.tensor(-1.0)).item() == pytest.approx(expected)


def test_no_hidden_layer_passes_the_observation_on():
    network = NetworkConfig(hidden=())
    assert torso(3, network)(torch.tensor([[1.0, 2.0, 3.0]])).tolist() == [[1.0, 2.0, 3.0]]
    assert torso_width(3, network) == 3
    assert torso_width(3, NetworkConfig(hidden=(8, 5))) == 5


def test_orthogonal_weights_have_the_gain_and_no_bias():
    layer = linear(6, 4, NetworkConfig(), gain=2.0)
    assert torch.allclose(layer.weight @ layer.weight.T, 4.0 * torch.eye(4), atol=1e-5)
    assert not layer.bias.any()


def test_torchs_own_weights_are_left_alone():
    torch.manual_seed(1)
    expected = nn.Linear(6, 4)
    torch.manual_seed(1)
    layer = linear(6, 4, NetworkConfig(orthogonal=False), gain=2.0)
    assert torch.equal(layer.weight, expected.weight)
    assert torch.equal(layer.bias, expected.bias)
