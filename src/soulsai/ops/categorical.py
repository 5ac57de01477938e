"""C51: the return as a distribution over fixed atoms (Bellemare et al. 2017)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from soulsai.ops.shapes import assert_one_each, assert_rank, assert_same_shape
from soulsgym.errors import MisuseError


def categorical_target(r_t: Tensor, discount_t: Tensor, support: Tensor, probs_t: Tensor) -> Tensor:
    """Probabilities [B, N] of r + discount * return, each dealt out to the atoms around it, or to the nearest edge."""
    assert_rank(2, probs_t=probs_t)
    assert_one_each(probs_t, r_t=r_t, discount_t=discount_t)
    _assert_support(support, probs_t)
    last = support.shape[0] - 1
    spacing = (support[-1] - support[0]) / last
    position = torch.addcmul(r_t.unsqueeze(1), discount_t.unsqueeze(1), support)
    position = ((position - support[0]) / spacing).clamp_(0, last)
    # Never the last atom: what lies exactly on it is then all share of the atom above, and none is lost.
    below = position.floor().clamp_(max=last - 1)
    above_probs = probs_t * (position - below)
    index = below.long()
    target = torch.zeros_like(probs_t).scatter_add_(1, index, probs_t - above_probs)
    return target.scatter_add_(1, index + 1, above_probs)


def categorical_loss(logits_a_tm1: Tensor, target_probs: Tensor) -> Tensor:
    """Cross entropy of each sample [B] between the target and the distribution of the logits [B, N]."""
    assert_rank(2, logits_a_tm1=logits_a_tm1)
    assert_same_shape(logits_a_tm1=logits_a_tm1, target_probs=target_probs)
    return -(target_probs.detach() * functional.log_softmax(logits_a_tm1, 1)).sum(1)


def categorical_mean(logits: Tensor, support: Tensor) -> Tensor:
    """Mean of each distribution: logits [..., N] to means [...]."""
    _assert_support(support, logits)
    return functional.softmax(logits, -1) @ support


def _assert_support(support: Tensor, rows: Tensor) -> None:
    if support.dim() != 1 or support.shape[0] != rows.shape[-1]:
        raise MisuseError(
            f"support has the shape {tuple(support.shape)}; give one atom per probability, ({rows.shape[-1]},)"
        )
