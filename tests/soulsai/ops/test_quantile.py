"""Quantile regression."""

import pytest
import torch

from soulsai.ops.quantile import quantile_huber_loss, quantile_midpoints, quantile_target
from soulsgym.errors import MisuseError


def test_midpoints():
    assert quantile_midpoints(4).tolist() == [0.125, 0.375, 0.625, 0.875]


def test_target_by_hand():
    # Two merged steps with gamma 1/2, and an end.
    target = quantile_target(
        torch.tensor([1.0, 2.0]), torch.tensor([0.5**2, 0.0]), torch.tensor([[4.0, 8.0], [4.0, 8.0]])
    )
    assert target.tolist() == [[2.0, 3.0], [2.0, 2.0]]


def test_loss_by_hand():
    # tau is 1/4 and 3/4. Prediction 0: target 1 above (1/4 * 1/2), target -2 below (3/4 * 3/2): mean 5/8.
    # Prediction 2: target 1 below (1/4 * 1/2), target -2 below (1/4 * 7/2): mean 1/2.
    predictions = torch.tensor([[0.0, 2.0]], requires_grad=True)
    loss = quantile_huber_loss(predictions, torch.tensor([[1.0, -2.0]]))
    loss.sum().backward()
    assert loss.tolist() == [pytest.approx(5 / 8 + 1 / 2)]
    # Slopes: (-1/4 + 3/4) / 2 and (1/4 + 1/4) / 2.
    assert predictions.grad.tolist() == [pytest.approx([0.25, 0.25])]


def test_a_prediction_on_its_target_costs_nothing():
    predictions = torch.tensor([[3.0]], requires_grad=True)
    loss = quantile_huber_loss(predictions, torch.tensor([[3.0]]))
    loss.sum().backward()
    assert loss.tolist() == [0.0]
    assert predictions.grad.tolist() == [[0.0]]


def test_a_small_kappa_comes_near_the_plain_quantile_loss():
    # tau is 1/2: half the distance to targets 2 below and 1 above.
    loss = quantile_huber_loss(torch.tensor([[0.0]]), torch.tensor([[-2.0, 1.0]]), kappa=1e-4)
    assert loss.tolist() == [pytest.approx(0.5 * (2.0 + 1.0) / 2, abs=1e-3)]


def test_as_many_targets_as_one_likes():
    assert quantile_huber_loss(torch.zeros(5, 3), torch.zeros(5, 7)).shape == (5,)


def test_quantiles_of_a_random_reward_spread():
    # Reward even over 0 .. 10, then the end. With tau along the axis of the targets all quantiles meet in the middle.
    generator = torch.Generator().manual_seed(5)
    n = 8
    quantiles = torch.zeros(n, requires_grad=True)
    optimizer = torch.optim.Adam([quantiles], lr=0.2)
    average = torch.zeros(n)
    for step in range(400):
        reward = 10.0 * torch.rand(256, generator=generator)
        target = quantile_target(reward, torch.zeros(256), torch.zeros(256, n))
        optimizer.zero_grad()
        quantile_huber_loss(quantiles.expand(256, -1), target, kappa=0.1).mean().backward()
        optimizer.step()
        average += quantiles.detach() / 200 if step >= 200 else 0.0
    assert average.tolist() == pytest.approx((10.0 * quantile_midpoints(n)).tolist(), abs=0.35)


def test_the_target_gets_no_gradient():
    target = torch.zeros(1, 2, requires_grad=True)
    quantile_huber_loss(torch.ones(1, 2, requires_grad=True), target).sum().backward()
    assert target.grad is None


def test_wrong_shapes_are_refused():
    with pytest.raises(MisuseError, match="discount_t has the shape"):
        quantile_target(torch.zeros(2), torch.zeros(2, 1), torch.zeros(2, 3))
    with pytest.raises(MisuseError, match="target has the shape"):
        quantile_huber_loss(torch.zeros(2, 3), torch.zeros(2))
    with pytest.raises(MisuseError, match="target has 1 rows"):
        quantile_huber_loss(torch.zeros(2, 3), torch.zeros(1, 3))
