"""Hidden layers and heads from a network's config."""

from __future__ import annotations

import math

from torch import nn

from soulsai.config.schema import NetworkConfig
from soulsai.networks.normalizer import Normalizer

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "silu": nn.SiLU,
    "leaky_relu": nn.LeakyReLU,
}
HIDDEN_GAIN = math.sqrt(2.0)


def normalizer(observation_size: int, network: NetworkConfig) -> Normalizer | None:
    """What scales the inputs, if the config asks for it."""
    return Normalizer(observation_size) if network.normalize else None


def torso(observation_size: int, network: NetworkConfig) -> nn.Sequential:
    """The hidden layers: linear, normalised if asked for, activated."""
    layers: list[nn.Module] = []
    size = observation_size
    for width in network.hidden:
        layers.append(linear(size, width, network, gain=HIDDEN_GAIN))
        if network.layer_norm:
            layers.append(nn.LayerNorm(width))
        layers.append(ACTIVATIONS[network.activation]())
        size = width
    return nn.Sequential(*layers)


def torso_width(observation_size: int, network: NetworkConfig) -> int:
    """Numbers that leave the hidden layers."""
    return network.hidden[-1] if network.hidden else observation_size


def linear(inputs: int, outputs: int, network: NetworkConfig, *, gain: float) -> nn.Linear:
    """A linear layer, its weights orthogonal and its biases 0 if the config asks for it."""
    layer = nn.Linear(inputs, outputs)
    if network.orthogonal:
        nn.init.orthogonal_(layer.weight, gain)
        nn.init.zeros_(layer.bias)
    return layer
