"""Inputs scaled by their running mean and deviation."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from soulsai.ops.shapes import assert_rank

SMALLEST_VARIANCE = 1e-8
LIMIT = 10.0
"""Deviations from the mean beyond which an input says no more."""


class Normalizer(nn.Module):
    """Remembers mean and variance of all samples it was shown, in float64; before the first they are 0 and 1."""

    mean: Tensor
    variance: Tensor
    count: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("variance", torch.ones(size, dtype=torch.float64))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        """Deviations from the mean, within the limit."""
        scale = (self.variance + SMALLEST_VARIANCE).rsqrt_().float()
        return (x - self.mean.float()).mul(scale).clamp(-LIMIT, LIMIT)

    @torch.no_grad()
    def update(self, x: Tensor) -> None:
        """Learn from samples [B, size] not shown before (Chan et al. 1979: two sets of samples joined)."""
        assert_rank(2, x=x)
        number = x.shape[0]
        if number == 0:
            return
        variance, mean = torch.var_mean(x.double(), 0, correction=0)
        total = self.count + number
        share = number / total
        delta = mean - self.mean
        self.mean.addcmul_(delta, share)
        self.variance.lerp_(variance, share).addcmul_(delta.square(), share * (1.0 - share))
        self.count.copy_(total)
