"""Quantile regression: the return as equally likely values (Dabney et al. 2018)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from soulsai.ops.shapes import assert_one_each, assert_rank
from soulsgym.errors import MisuseError


def quantile_midpoints(n: int, device: torch.device | None = None) -> Tensor:
    """The share of returns below each of `n` quantiles: (i + 0.5) / n."""
    return torch.arange(0.5, n, device=device) / n


def quantile_target(r_t: Tensor, discount_t: Tensor, quantiles_t: Tensor) -> Tensor:
    """r + discount * each next quantile [B, N]."""
    assert_rank(2, quantiles_t=quantiles_t)
    assert_one_each(quantiles_t, r_t=r_t, discount_t=discount_t)
    return torch.addcmul(r_t.unsqueeze(1), discount_t.unsqueeze(1), quantiles_t)


def quantile_huber_loss(quantiles_a_tm1: Tensor, target: Tensor, kappa: float = 1.0) -> Tensor:
    """Loss of each sample [B]: predictions [B, N] against targets [B, M], mean over targets, sum over predictions."""
    assert_rank(2, quantiles_a_tm1=quantiles_a_tm1, target=target)
    batch, n = quantiles_a_tm1.shape
    if target.shape[0] != batch:
        raise MisuseError(f"target has {target.shape[0]} rows; give one per row of quantiles_a_tm1, {batch}")
    predictions = quantiles_a_tm1.unsqueeze(2).expand(-1, -1, target.shape[1])
    targets = target.detach().unsqueeze(1).expand(-1, n, -1)
    huber = functional.huber_loss(predictions, targets, reduction="none", delta=kappa)
    # tau belongs to the prediction. Along the axis of the targets, all quantiles would collapse into one.
    tau = quantile_midpoints(n, target.device).unsqueeze(1)
    weight = torch.where(targets < predictions, 1.0 - tau, tau)
    return (weight * huber).mean(2).sum(1) / kappa
