"""The value of every action."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from soulsai.config.schema import NetworkConfig
from soulsai.networks.layers import linear, normalizer, torso, torso_width
from soulsai.networks.noisy import NoisyLinear
from soulsai.networks.policy_network import PolicyNetwork
from soulsai.ops.categorical import categorical_mean

Distribution = Literal["none", "c51", "quantile"]

HEAD_GAIN = 0.01
"""Small: all values begin near 0. With larger ones the maxima of random values are bootstrapped for a long time."""


class QNetwork(PolicyNetwork):
    """Observations [B, D] to means [B, A], or to the logits or quantiles of a distribution [B, A, N]."""

    scores_are = "q"
    support: Tensor

    def __init__(
        self,
        observation_size: int,
        num_actions: int,
        network: NetworkConfig,
        *,
        dueling: bool = False,
        noise: float | None = None,
        distribution: Distribution = "none",
        atoms: int = 51,
        value_range: tuple[float, float] = (-10.0, 10.0),
    ) -> None:
        """With `noise`, its initial size, the heads are noisy."""
        super().__init__()
        self.num_actions, self.distribution = num_actions, distribution
        self.numbers = 1 if distribution == "none" else atoms
        support = torch.linspace(*value_range, atoms) if distribution == "c51" else torch.empty(0)
        self.register_buffer("support", support, persistent=False)
        self.normalizer = normalizer(observation_size, network)
        self.torso = torso(observation_size, network)
        width = torso_width(observation_size, network)
        self.head = _head(width, num_actions * self.numbers, network, noise)
        """Values of the actions, or with dueling their advantages."""
        self.value_head = _head(width, self.numbers, network, noise) if dueling else None
        self._noisy = [layer for layer in (self.head, self.value_head) if isinstance(layer, NoisyLinear)]

    def forward(self, x: Tensor) -> Tensor:
        """Means [B, A], or logits or quantiles [B, A, N]."""
        features = self._features(x)
        out = self._per_action(self.head(features), self.num_actions)
        return out if self.value_head is None else out + self._level(features, out)

    def of_actions(self, x: Tensor, actions: Tensor) -> Tensor:
        """What `forward` gives for one action of every row: [B], or [B, N]; the others are not made complete."""
        features = self._features(x)
        out = self._per_action(self.head(features), self.num_actions)
        chosen = of_actions(out, actions)
        return chosen if self.value_head is None else chosen + self._level(features, out).squeeze(1)

    def _features(self, x: Tensor) -> Tensor:
        features: Tensor = self.torso(x if self.normalizer is None else self.normalizer(x))
        return features

    def _level(self, features: Tensor, advantages: Tensor) -> Tensor:
        """What dueling adds to the advantages, so that their mean is the value."""
        assert self.value_head is not None
        return self._per_action(self.value_head(features), 1) - advantages.mean(1, keepdim=True)

    def _per_action(self, numbers: Tensor, actions: int) -> Tensor:
        return numbers if self.distribution == "none" else numbers.view(-1, actions, self.numbers)

    def chains(self) -> list[tuple[nn.Sequential, list[nn.Linear]]]:
        """Values of the actions, or their advantages and the value; none if they are noisy or distributions."""
        heads = [head for head in (self.head, self.value_head) if isinstance(head, nn.Linear)]
        return [] if self._noisy or self.distribution != "none" else [(self.torso, heads)]

    def scores(self, x: Tensor) -> Tensor:
        """Mean value of every action [B, A]."""
        return self.means(x)

    def means(self, x: Tensor) -> Tensor:
        """Mean value of every action [B, A]."""
        return self.means_of(self(x))

    def means_of(self, out: Tensor) -> Tensor:
        """Mean values [B, A] from what `forward` gave, without a second pass."""
        if self.distribution == "c51":
            return categorical_mean(out, self.support)
        return out.mean(2) if self.distribution == "quantile" else out

    @property
    def is_noisy(self) -> bool:
        """Whether it explores by noise in its weights."""
        return bool(self._noisy)

    def draw_noise(self, generator: torch.Generator) -> None:
        """New noise in the weights of the head; nothing to do without noisy layers."""
        for layer in self._noisy:
            layer.draw_noise(generator)

    def quiet(self) -> None:
        """No noise: greedy play with the mean weights."""
        for layer in self._noisy:
            layer.quiet()


def of_actions(out: Tensor, actions: Tensor) -> Tensor:
    """The value [B], or the distribution [B, N], of one action of every row."""
    index = actions.view(-1, *([1] * (out.dim() - 1))).expand(-1, 1, *out.shape[2:])
    return out.gather(1, index).squeeze(1)


def _head(inputs: int, outputs: int, network: NetworkConfig, noise: float | None) -> nn.Module:
    if noise is not None:
        return NoisyLinear(inputs, outputs, noise)
    return linear(inputs, outputs, network, gain=HEAD_GAIN)
