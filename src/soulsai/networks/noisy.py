"""A linear layer that explores by noise in its weights (Fortunato et al. 2018)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class NoisyLinear(nn.Module):
    """Weights are mean + deviation * noise; the noise of a weight is that of its input times that of its output."""

    noise_in: Tensor
    noise_out: Tensor

    def __init__(self, inputs: int, outputs: int, sigma0: float) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(inputs)
        self.weight_mean = nn.Parameter(torch.empty(outputs, inputs).uniform_(-bound, bound))
        self.bias_mean = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound))
        self.weight_deviation = nn.Parameter(torch.full((outputs, inputs), sigma0 * bound))
        self.bias_deviation = nn.Parameter(torch.full((outputs,), sigma0 * bound))
        self.register_buffer("noise_in", torch.zeros(inputs))
        self.register_buffer("noise_out", torch.zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """The layer with the noise drawn last; without any before the first draw."""
        weight = torch.addcmul(self.weight_mean, self.weight_deviation, torch.outer(self.noise_out, self.noise_in))
        return functional.linear(x, weight, torch.addcmul(self.bias_mean, self.bias_deviation, self.noise_out))

    def draw_noise(self, generator: torch.Generator) -> None:
        """New noise, the same for all rows until the next draw."""
        # New tensors: a backward pass may still need the old ones. Drawn where the generator is, then moved.
        for name in ("noise_in", "noise_out"):
            noise = getattr(self, name)
            drawn = torch.empty(noise.shape, device=generator.device).normal_(generator=generator)
            setattr(self, name, _signed_root(drawn).to(noise.device))

    def quiet(self) -> None:
        """No noise: the mean weights."""
        self.noise_in = torch.zeros_like(self.noise_in)
        self.noise_out = torch.zeros_like(self.noise_out)


def _signed_root(normal: Tensor) -> Tensor:
    return normal.sign() * normal.abs().sqrt_()
