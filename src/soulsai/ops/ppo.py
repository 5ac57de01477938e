"""Proximal policy optimisation (Schulman et al. 2017)."""

from __future__ import annotations

import torch
from torch import Tensor

from soulsai.ops.shapes import assert_rank, assert_same_shape

SMALLEST_DEVIATION = 1e-8


def clipped_surrogate(log_ratio: Tensor, advantage: Tensor, clip: float) -> Tensor:
    """Loss of each sample [B]: a ratio beyond 1 +- clip in the direction of its advantage gives no gradient."""
    assert_rank(1, log_ratio=log_ratio)
    assert_same_shape(log_ratio=log_ratio, advantage=advantage)
    ratio, gain = log_ratio.exp(), -advantage.detach()
    return torch.maximum(ratio * gain, ratio.clamp(1.0 - clip, 1.0 + clip) * gain)


def value_loss(v: Tensor, v_old: Tensor, returns: Tensor, clip: float) -> Tensor:
    """Half the squared error of each sample [B]; with clip > 0 never less than with v kept within v_old +- clip."""
    assert_rank(1, v=v)
    assert_same_shape(v=v, v_old=v_old, returns=returns)
    squared = (v - returns.detach()).square()
    if clip > 0.0:
        near_v = v_old.detach() + (v - v_old.detach()).clamp(-clip, clip)
        squared = torch.maximum(squared, (near_v - returns.detach()).square())
    return 0.5 * squared


def normalize(advantage: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    """Advantages with mean 0 and deviation 1, given those of the batch they belong to."""
    return (advantage - mean) / (deviation + SMALLEST_DEVIATION)


def approximate_kl(log_ratio: Tensor) -> Tensor:
    """Divergence of the new policy from the old one, estimated from the old one's actions; never negative."""
    log_ratio = log_ratio.detach()
    return (log_ratio.expm1() - log_ratio).mean()


def clip_fraction(log_ratio: Tensor, clip: float) -> Tensor:
    """Share of samples whose ratio lies beyond 1 +- clip."""
    return (log_ratio.detach().expm1().abs() > clip).float().mean()
