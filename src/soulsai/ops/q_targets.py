"""What Q-learning takes for the true value: the reward, and the discounted value of the best next action."""

from __future__ import annotations

import torch
from torch import Tensor

from soulsai.ops.masked import masked_argmax, masked_max
from soulsai.ops.shapes import assert_one_each, assert_rank, assert_same_shape


def q_learning_target(r_t: Tensor, discount_t: Tensor, q_t: Tensor, mask_t: Tensor) -> Tensor:
    """r + discount * max q over open actions [B]; the discount is gamma^steps, and 0 where the episode terminated."""
    assert_rank(2, q_t=q_t)
    assert_one_each(q_t, r_t=r_t, discount_t=discount_t)
    return torch.addcmul(r_t, discount_t, masked_max(q_t, mask_t))


def double_q_target(r_t: Tensor, discount_t: Tensor, q_t_value: Tensor, q_t_selector: Tensor, mask_t: Tensor) -> Tensor:
    """Like `q_learning_target`, but the selector chooses the next action and the other network values it."""
    assert_rank(2, q_t_value=q_t_value)
    assert_one_each(q_t_value, r_t=r_t, discount_t=discount_t)
    assert_same_shape(q_t_value=q_t_value, q_t_selector=q_t_selector)
    action_t = masked_argmax(q_t_selector, mask_t).unsqueeze(1)
    return torch.addcmul(r_t, discount_t, q_t_value.gather(1, action_t).squeeze(1))


def bootstrapped(r_t: Tensor, discount_t: Tensor, v_t: Tensor) -> Tensor:
    """r + discount * v [B], where the value of what follows is known."""
    assert_rank(1, v_t=v_t)
    assert_one_each(v_t, r_t=r_t, discount_t=discount_t)
    return torch.addcmul(r_t, discount_t, v_t)


def clipped_target(target: Tensor, limit: float) -> Tensor:
    """Targets kept within plus and minus `limit`; 0 for no limit."""
    return target.clamp(-limit, limit) if limit > 0.0 else target
