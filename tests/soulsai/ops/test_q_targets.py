"""Targets of Q-learning."""

import pytest
import torch

from soulsai.ops.q_targets import clipped_target, double_q_target, q_learning_target
from soulsgym.errors import MisuseError

R_T = torch.tensor([1.0, 2.0, -3.0, 0.5])
# One step with gamma 1/2; three merged steps; terminated; truncated, which bootstraps like any other step.
DISCOUNT_T = torch.tensor([0.5, 0.5**3, 0.0, 0.5])
Q_T = torch.tensor([[4.0, 6.0], [8.0, 16.0], [100.0, 100.0], [-2.0, 9.0]])
MASK_T = torch.tensor([[True, True], [True, False], [True, True], [True, False]])


def test_q_learning_by_hand():
    # 1 + 6/2; 2 + 8/8, the 16 is closed; the reward alone; 0.5 - 2/2.
    assert q_learning_target(R_T, DISCOUNT_T, Q_T, MASK_T).tolist() == [4.0, 3.0, -3.0, -0.5]


def test_double_q_by_hand():
    # The selector takes the other action where it may: 1 + 4/2.
    selector = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    assert double_q_target(R_T, DISCOUNT_T, Q_T, selector, MASK_T).tolist() == [3.0, 3.0, -3.0, -0.5]


def test_nothing_open_after_the_end_does_no_harm():
    closed = torch.zeros(1, 2, dtype=torch.bool)
    for target in (
        q_learning_target(R_T[2:3], DISCOUNT_T[2:3], Q_T[2:3], closed),
        double_q_target(R_T[2:3], DISCOUNT_T[2:3], Q_T[2:3], Q_T[2:3], closed),
    ):
        assert target.tolist() == [-3.0]


def test_clipped():
    assert clipped_target(torch.tensor([-7.0, 1.0, 9.0]), 5.0).tolist() == [-5.0, 1.0, 5.0]
    assert clipped_target(torch.tensor([-7.0, 1.0, 9.0]), 0.0).tolist() == [-7.0, 1.0, 9.0]


@pytest.mark.parametrize("wrong", ["r_t", "discount_t"])
def test_columns_are_refused(wrong):
    given = {"r_t": R_T, "discount_t": DISCOUNT_T}
    given[wrong] = given[wrong].unsqueeze(1)
    with pytest.raises(MisuseError, match=rf"{wrong} has the shape \(4, 1\)"):
        q_learning_target(given["r_t"], given["discount_t"], Q_T, MASK_T)
    with pytest.raises(MisuseError, match=rf"{wrong} has the shape \(4, 1\)"):
        double_q_target(given["r_t"], given["discount_t"], Q_T, Q_T, MASK_T)


def test_a_selector_with_other_actions_is_refused():
    with pytest.raises(MisuseError, match="q_t_selector has the shape"):
        double_q_target(R_T, DISCOUNT_T, Q_T, torch.zeros(4, 3), torch.ones(4, 3, dtype=torch.bool))
