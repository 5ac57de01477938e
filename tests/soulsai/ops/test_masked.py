"""Choices among open actions."""

import math

import pytest
import torch
from torch.nn import functional

from soulsai.ops.masked import (
    entropy_of,
    log_prob_of,
    masked_argmax,
    masked_logits,
)
from soulsgym.errors import MisuseError

Q = torch.tensor([[1.0, 5.0, 3.0], [-4.0, -2.0, -3.0], [7.0, 8.0, 9.0]])
MASK = torch.tensor([[True, False, True], [True, False, False], [True, True, True]])


def test_the_best_open_action():
    assert masked_argmax(Q, MASK).tolist() == [2, 0, 2]


def test_logits_of_closed_actions_vanish_and_others_stay():
    assert masked_logits(Q, MASK).tolist() == [[1.0, -1e9, 3.0], [-4.0, -1e9, -1e9], [7.0, 8.0, 9.0]]


def test_no_gradient_flows_into_closed_actions():
    logits = Q.clone().requires_grad_()
    log_prob_of(functional.log_softmax(masked_logits(logits, MASK), 1), torch.tensor([0, 0, 0])).sum().backward()
    assert logits.grad[0, 1] == 0.0
    assert logits.grad[1].tolist() == [0.0, 0.0, 0.0]
    assert logits.grad[0, 0] > 0.0


def test_a_mask_of_another_shape_is_refused():
    with pytest.raises(MisuseError, match="mask has the shape"):
        masked_logits(Q, MASK[0])


def test_log_prob_by_hand():
    # Odds 1 : 3 : 4 and, in the second row, only the last open.
    logits = masked_logits(
        torch.tensor([[1.0, 3.0, 4.0], [1.0, 3.0, 4.0]]).log(), torch.tensor([[True, True, True], [False, False, True]])
    )
    chosen = log_prob_of(functional.log_softmax(logits, -1), torch.tensor([1, 2]))
    assert chosen.tolist() == pytest.approx([math.log(3 / 8), 0.0])


def test_log_prob_with_time_in_front():
    logits = torch.zeros(5, 4, 2)
    assert torch.allclose(
        log_prob_of(functional.log_softmax(logits, -1), torch.ones(5, 4, dtype=torch.int64)), torch.tensor(0.5).log()
    )


def test_log_prob_wants_one_action_per_row():
    with pytest.raises(MisuseError, match=r"action has the shape \(3, 1\)"):
        log_prob_of(Q, torch.zeros(3, 1, dtype=torch.int64))


def test_entropy_by_hand():
    logits = torch.tensor([[0.0, 0.0, 0.0, 0.0], [math.log(3.0), 0.0, -1e9, -1e9], [5.0, -1e9, -1e9, -1e9]])
    quarter = -0.75 * math.log(0.75) - 0.25 * math.log(0.25)
    assert entropy_of(logits.log_softmax(-1)).tolist() == pytest.approx([math.log(4.0), quarter, 0.0], abs=1e-6)


@pytest.mark.parametrize("closed", [-1e9, -math.inf])
def test_entropy_with_closed_actions_has_a_finite_gradient(closed):
    logits = torch.tensor([[math.log(3.0), 0.0, closed], [2.0, closed, closed]], requires_grad=True)
    entropy = entropy_of(logits.log_softmax(-1))
    entropy.sum().backward()
    assert torch.isfinite(entropy).all()
    # dH/dlogit_i = -p_i (log p_i + H); with p = 3/4, 1/4 that is -+ 3/16 log 3.
    slope = 3 / 16 * math.log(3.0)
    assert logits.grad[0].tolist() == pytest.approx([-slope, slope, 0.0], abs=1e-6)
    assert logits.grad[1].tolist() == [0.0, 0.0, 0.0]
