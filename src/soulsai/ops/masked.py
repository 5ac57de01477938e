"""Choices among the actions that are open."""

from __future__ import annotations

import torch
from torch import Tensor

from soulsai.ops.shapes import assert_same_shape
from soulsgym.errors import MisuseError

CLOSED = -1e9
"""Logit and value of a closed action. Finite: times a discount or a probability of 0 it gives 0, not NaN."""

LOWEST_LOG_PROBABILITY = -80.0
"""Its probability, 2e-35, is nothing beside 1. Not lower: where `exp` underflows it takes ten times as long."""


def masked_logits(logits: Tensor, mask: Tensor) -> Tensor:
    """The logits, with those of closed actions so low that they are never chosen; no gradient flows into these."""
    assert_same_shape(logits=logits, mask=mask)
    return torch.where(mask, logits, CLOSED)


def masked_argmax(q: Tensor, mask: Tensor) -> Tensor:
    """The best open action of each row."""
    return masked_logits(q, mask).argmax(-1)


def log_prob_of(log_p: Tensor, action: Tensor) -> Tensor:
    """The entries of the chosen actions: log probabilities [..., A], actions [...]."""
    if action.shape != log_p.shape[:-1]:
        raise MisuseError(f"action has the shape {tuple(action.shape)}; give one action per row of logits, "
                          f"{tuple(log_p.shape[:-1])}")  # fmt: skip
    return log_p.gather(-1, action.unsqueeze(-1)).squeeze(-1)


def entropy_of(log_p: Tensor) -> Tensor:
    """Entropy in nats of each row of log probabilities; closed actions add nothing, even at minus infinity."""
    log_p = log_p.clamp_min(LOWEST_LOG_PROBABILITY)
    return -(log_p.exp() * log_p).sum(-1)
