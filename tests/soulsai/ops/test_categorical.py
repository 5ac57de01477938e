"""C51."""

import math

import pytest
import torch

from soulsai.ops.categorical import categorical_loss, categorical_mean, categorical_target
from soulsgym.errors import MisuseError

SUPPORT = torch.tensor([-1.0, 0.0, 1.0])
PROBS = torch.tensor([[0.2, 0.3, 0.5]])


def target_of(reward, discount, probs=PROBS, support=SUPPORT):
    (row,) = categorical_target(torch.tensor([reward]), torch.tensor([discount]), support, probs)
    return row.tolist()


@pytest.mark.parametrize(
    ("reward", "discount", "expected"),
    [
        (0.0, 1.0, [0.2, 0.3, 0.5]),  # exactly on the atoms: nothing moves and nothing is lost
        (1.0, 1.0, [0.0, 0.2, 0.8]),  # one atom up, the highest stays at the edge
        (-1.0, 1.0, [0.5, 0.5, 0.0]),  # one atom down
        (0.5, 1.0, [0.1, 0.25, 0.65]),  # halfway: half to each side
        (0.25, 0.0, [0.0, 0.75, 0.25]),  # terminated: the reward alone
        (0.0, 0.5, [0.1, 0.65, 0.25]),  # atoms at -0.5, 0, 0.5
        (0.0, 0.5**2, [0.05, 0.825, 0.125]),  # two merged steps: atoms at -0.25, 0, 0.25
        (9.0, 1.0, [0.0, 0.0, 1.0]),  # all beyond the upper edge
        (-9.0, 1.0, [1.0, 0.0, 0.0]),  # all beyond the lower edge
        (1.0, 0.0, [0.0, 0.0, 1.0]),  # exactly on the highest atom
        (-1.0, 0.0, [1.0, 0.0, 0.0]),  # exactly on the lowest atom
    ],
)
def test_projection_by_hand(reward, discount, expected):
    assert target_of(reward, discount) == pytest.approx(expected, abs=1e-6)


def test_rows_are_apart():
    target = categorical_target(torch.tensor([0.0, 9.0]), torch.tensor([1.0, 1.0]), SUPPORT, PROBS.expand(2, -1))
    assert target.tolist() == [pytest.approx([0.2, 0.3, 0.5]), pytest.approx([0.0, 0.0, 1.0])]


def test_probability_is_kept_and_inside_the_range_the_mean_is_right():
    generator = torch.Generator().manual_seed(1)
    support = torch.linspace(-10.0, 10.0, 51)
    probs = torch.rand(64, 51, generator=generator).softmax(1)
    reward, discount = torch.rand(64, generator=generator), torch.full((64,), 0.7)
    target = categorical_target(reward, discount, support, probs)
    assert torch.allclose(target.sum(1), torch.ones(64), atol=1e-6)
    assert torch.allclose(target @ support, reward + discount * (probs @ support), atol=1e-5)


def test_every_atom_of_a_fine_support_is_met_exactly():
    # Rewards on the atoms after an end: however the position is rounded, the mean is the reward.
    support = torch.linspace(-10.0, 10.0, 51)
    target = categorical_target(support, torch.zeros(51), support, torch.full((51, 51), 1 / 51))
    assert torch.allclose(target, torch.eye(51), atol=1e-5)


def test_loss_by_hand():
    # The network says 1/8, 3/8, 4/8.
    logits = torch.tensor([[1.0, 3.0, 4.0]]).log().requires_grad_()
    loss = categorical_loss(logits, torch.tensor([[0.0, 0.5, 0.5]]))
    loss.sum().backward()
    assert loss.tolist() == pytest.approx([-0.5 * math.log(3 / 8) - 0.5 * math.log(4 / 8)])
    assert logits.grad[0].tolist() == pytest.approx([1 / 8, 3 / 8 - 0.5, 0.0], abs=1e-6)


def test_mean_by_hand():
    logits = torch.tensor([[[1.0, 3.0, 4.0], [1.0, 1.0, 1.0]]]).log()
    assert categorical_mean(logits, SUPPORT).tolist() == [pytest.approx([3 / 8, 0.0], abs=1e-6)]


def test_wrong_shapes_are_refused():
    with pytest.raises(MisuseError, match="r_t has the shape"):
        categorical_target(torch.zeros(1, 1), torch.zeros(1), SUPPORT, PROBS)
    with pytest.raises(MisuseError, match="support has the shape"):
        categorical_target(torch.zeros(1), torch.zeros(1), SUPPORT[:2], PROBS)
    with pytest.raises(MisuseError, match="probs_t has the shape"):
        categorical_target(torch.zeros(1), torch.zeros(1), SUPPORT, PROBS.unsqueeze(1))
    with pytest.raises(MisuseError, match="target_probs has the shape"):
        categorical_loss(torch.zeros(2, 3), PROBS)
    with pytest.raises(MisuseError, match="support has the shape"):
        categorical_mean(torch.zeros(2, 4), SUPPORT)
