"""The value of every action."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from soulsai.config.schema import NetworkConfig, QConfig
from soulsai.networks.layers import linear, normalizer, torso, torso_width
from soulsai.networks.noisy import NoisyLinear
from soulsai.ops.categorical import categorical_mean


class QNetwork(nn.Module):
    """Observations [B, D] to means [B, A], or to the logits or quantiles of a distribution [B, A, N]."""

    support: Tensor

    def __init__(self, observation_size: int, num_actions: int, network: NetworkConfig, q: QConfig) -> None:
        super().__init__()
        self.num_actions, self.distribution = num_actions, q.distribution
        self.numbers = 1 if q.distribution == "none" else q.atoms
        self.register_buffer("support", _support(q), persistent=False)
        self.normalizer = normalizer(observation_size, network)
        self.torso = torso(observation_size, network)
        width = torso_width(observation_size, network)
        self.head = _head(width, num_actions * self.numbers, network, q)
        """Values of the actions, or with dueling their advantages."""
        self.value_head = _head(width, self.numbers, network, q) if q.dueling else None
        self._noisy = [layer for layer in (self.head, self.value_head) if isinstance(layer, NoisyLinear)]

    def forward(self, x: Tensor) -> Tensor:
        """Means [B, A], or logits or quantiles [B, A, N]."""
        if self.normalizer is not None:
            x = self.normalizer(x)
        features = self.torso(x)
        out = self._per_action(self.head(features), self.num_actions)
        if self.value_head is not None:
            out = out + (self._per_action(self.value_head(features), 1) - out.mean(1, keepdim=True))
        return out

    def _per_action(self, numbers: Tensor, actions: int) -> Tensor:
        return numbers if self.distribution == "none" else numbers.view(-1, actions, self.numbers)

    def means(self, x: Tensor) -> Tensor:
        """Mean value of every action [B, A]."""
        return self.means_of(self(x))

    def means_of(self, out: Tensor) -> Tensor:
        """Mean values [B, A] from what `forward` gave, without a second pass."""
        if self.distribution == "c51":
            return categorical_mean(out, self.support)
        return out.mean(2) if self.distribution == "quantile" else out

    def draw_noise(self, generator: torch.Generator) -> None:
        """New noise in the weights of the head; nothing to do without noisy layers."""
        for layer in self._noisy:
            layer.draw_noise(generator)

    def quiet(self) -> None:
        """No noise: greedy play with the mean weights."""
        for layer in self._noisy:
            layer.quiet()


def _support(q: QConfig) -> Tensor:
    return torch.linspace(*q.value_range, q.atoms) if q.distribution == "c51" else torch.empty(0)


def _head(inputs: int, outputs: int, network: NetworkConfig, q: QConfig) -> nn.Module:
    return NoisyLinear(inputs, outputs, q.noise) if q.noisy else linear(inputs, outputs, network, gain=1.0)
