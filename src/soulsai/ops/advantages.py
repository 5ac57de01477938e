"""How much better an action was than expected."""

from __future__ import annotations

import torch
from torch import Tensor

from soulsai.ops.shapes import assert_rank, assert_same_shape


def gae(r_t: Tensor, discount_t: Tensor, v_tm1: Tensor, v_t: Tensor, continues: Tensor, lam: float) -> Tensor:
    """Generalised advantages [T, B] (Schulman et al. 2016), without gradient.

    discount_t is gamma^steps, and 0 where the episode terminated. v_t is the value of the observation the step led to,
    for a truncated episode its final one. continues is 0 where the episode ended in any way.
    """
    assert_rank(2, r_t=r_t)
    assert_same_shape(r_t=r_t, discount_t=discount_t, v_tm1=v_tm1, v_t=v_t, continues=continues)
    with torch.no_grad():
        advantages = torch.addcmul(r_t, discount_t, v_t).sub_(v_tm1)
        decays = ((discount_t * lam) * continues).unbind()
        rows = advantages.unbind()
        for t in range(len(rows) - 2, -1, -1):
            rows[t].addcmul_(decays[t], rows[t + 1])
    return advantages
