"""What Q-learning takes for the true value: the reward, and the discounted value of the best next action."""

from __future__ import annotations

import torch
from torch import Tensor

from soulsai.ops.shapes import assert_one_each, assert_rank


def bootstrap_target(r_t: Tensor, discount_t: Tensor, v_t: Tensor) -> Tensor:
    """r + discount * v [B], v being the value of the next action; the discount is gamma^steps, 0 after the end."""
    assert_rank(1, v_t=v_t)
    assert_one_each(v_t, r_t=r_t, discount_t=discount_t)
    return torch.addcmul(r_t, discount_t, v_t)


def clipped_target(target: Tensor, limit: float) -> Tensor:
    """Targets kept within plus and minus `limit`; 0 for no limit."""
    return target.clamp(-limit, limit) if limit > 0.0 else target
