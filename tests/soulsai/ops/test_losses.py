"""Losses of the mean."""

import numpy as np
import pytest
import torch

from soulsai.ops.losses import margin_loss, td_loss
from soulsai.ops.q_compiled import add_margin
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


def test_margin_by_hand():
    """In the first row the shown action leads by more than the margin, in the second by less; in the third it trails
    one that was closed, and is behind another by 0.5."""
    q = torch.tensor([[2.0, 1.0, 0.0], [2.0, 1.75, 0.0], [1.0, 9.0, 1.5]], requires_grad=True)
    mask = torch.tensor([[True, True, True], [True, True, True], [True, False, True]])
    actions = torch.tensor([0, 0, 0])
    loss = margin_loss(q, actions, mask, 0.5)
    loss.sum().backward()
    assert loss.tolist() == [0.0, 0.25, 1.0]
    assert q.grad.tolist() == [[0.0, 0.0, 0.0], [-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]]


def test_the_compiled_margin_is_the_same():
    generator = torch.Generator().manual_seed(3)
    q = torch.randn(64, 6, generator=generator).requires_grad_()
    mask, actions = torch.rand(40, 6, generator=generator) > 0.4, torch.randint(6, (64,), generator=generator)
    lost = 0.25 * margin_loss(q[:40], actions[:40], mask, 0.3).sum()
    lost.backward()
    slopes = np.zeros((64, 6), np.float32)
    found = add_margin(q.detach().numpy(), actions.numpy(), mask.numpy(), 0.3, 0.25, slopes)
    assert found == pytest.approx(lost.item(), rel=1e-5)
    np.testing.assert_allclose(slopes, q.grad.numpy(), atol=1e-6)
    assert add_margin(q.detach().numpy(), actions.numpy(), np.zeros((0, 0), np.bool_), 0.3, 0.25, slopes) == 0.0
