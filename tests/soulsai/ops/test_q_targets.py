"""Targets of Q-learning."""

import pytest
import torch

from soulsai.ops.q_targets import bootstrap_target, clipped_target
from soulsgym.errors import MisuseError

R_T = torch.tensor([1.0, 2.0, -3.0, 0.5])
# One step with gamma 1/2; three merged steps; terminated; truncated, which bootstraps like any other step.
DISCOUNT_T = torch.tensor([0.5, 0.5**3, 0.0, 0.5])
V_T = torch.tensor([6.0, 8.0, 100.0, -2.0])


def test_bootstrapped_by_hand():
    # 1 + 6/2; 2 + 8/8; the reward alone; 0.5 - 2/2.
    assert bootstrap_target(R_T, DISCOUNT_T, V_T).tolist() == [4.0, 3.0, -3.0, -0.5]


def test_clipped():
    assert clipped_target(torch.tensor([-7.0, 1.0, 9.0]), 5.0).tolist() == [-5.0, 1.0, 5.0]
    assert clipped_target(torch.tensor([-7.0, 1.0, 9.0]), 0.0).tolist() == [-7.0, 1.0, 9.0]


@pytest.mark.parametrize("wrong", ["r_t", "discount_t", "v_t"])
def test_columns_are_refused(wrong):
    given = {"r_t": R_T, "discount_t": DISCOUNT_T, "v_t": V_T}
    given[wrong] = given[wrong].unsqueeze(1)
    with pytest.raises(MisuseError, match=rf"{wrong} has the shape \(4, 1\)"):
        bootstrap_target(**given)
