"""Losses of the mean."""

import pytest
import torch

from soulsai.ops.losses import td_loss
from soulsgym.errors import MisuseError

Q = torch.tensor([1.0, 2.0, 5.0])
TARGET = torch.tensor([1.5, 2.0, 2.0])


@pytest.mark.parametrize(
    ("kind", "losses", "slopes"),
    [
        ("huber", [0.125, 0.0, 2.5], [-0.5, 0.0, 1.0]),
        ("mse", [0.25, 0.0, 9.0], [-1.0, 0.0, 6.0]),
    ],
)
def test_by_hand(kind, losses, slopes):
    q = Q.clone().requires_grad_()
    loss = td_loss(q, TARGET, kind)
    loss.sum().backward()
    assert loss.tolist() == losses
    assert q.grad.tolist() == slopes


def test_the_target_gets_no_gradient():
    target = TARGET.clone().requires_grad_()
    q = Q.clone().requires_grad_()
    td_loss(q, target).sum().backward()
    assert target.grad is None


def test_a_column_is_refused():
    with pytest.raises(MisuseError, match="target has the shape"):
        td_loss(Q, TARGET.unsqueeze(1))
    with pytest.raises(MisuseError, match="q_a_tm1 has the shape"):
        td_loss(Q.unsqueeze(1), TARGET.unsqueeze(1))


def test_an_unknown_kind_is_refused():
    with pytest.raises(MisuseError, match="loss 'l3' is not known"):
        td_loss(Q, TARGET, "l3")
