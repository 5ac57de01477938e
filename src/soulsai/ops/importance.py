"""Losses of prioritised samples, weighted so that the gradient stays that of even sampling (Schaul et al. 2016)."""

from __future__ import annotations

from torch import Tensor

from soulsai.ops.shapes import assert_rank, assert_same_shape


def weighted_mean(loss: Tensor, weights: Tensor) -> Tensor:
    """Mean of losses [B] times weights [B]; a loss (B, 1) would meet every weight, not only its own, and is refused."""
    assert_rank(1, loss=loss)
    assert_same_shape(loss=loss, weights=weights)
    return (loss * weights).mean()
