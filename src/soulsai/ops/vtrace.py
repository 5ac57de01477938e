"""Targets for experience of an older policy (Espeholt et al. 2018)."""

from __future__ import annotations

import torch
from torch import Tensor

from soulsai.ops.shapes import assert_rank, assert_same_shape


def vtrace(
    log_ratio: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    v_tm1: Tensor,
    v_t: Tensor,
    continues: Tensor,
    *,
    rho_clip: float = 1.0,
    c_clip: float = 1.0,
) -> tuple[Tensor, Tensor]:
    """Targets of the values and advantages of the policy, both [T, B], without gradient.

    log_ratio is that of the probabilities of the actions, learned policy over acting policy. v_t is the value of the
    observation the step led to, for a truncated episode its final one. continues is 0 where the episode ended.
    """
    assert_rank(2, r_t=r_t)
    assert_same_shape(r_t=r_t, log_ratio=log_ratio, discount_t=discount_t, v_tm1=v_tm1, v_t=v_t, continues=continues)
    with torch.no_grad():
        ratio = log_ratio.exp()
        rho, c = ratio.clamp(max=rho_clip), ratio.clamp(max=c_clip)
        errors = rho * (r_t + discount_t * v_t - v_tm1)
        decays = discount_t * c * continues
        corrections = torch.empty_like(errors)  # of the values
        later = torch.zeros_like(errors[0])
        for t in range(len(errors) - 1, -1, -1):
            later = errors[t] + decays[t] * later
            corrections[t] = later
        targets = v_tm1 + corrections
        # What follows, by its own target where the episode goes on within these steps.
        following = v_t + continues * torch.cat((corrections[1:], torch.zeros_like(corrections[:1])))
        return targets, rho * (r_t + discount_t * following - v_tm1)
