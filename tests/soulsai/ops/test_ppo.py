"""The losses of PPO."""

import math

import pytest
import torch

from soulsai.ops.ppo import approximate_kl, clip_fraction, clipped_surrogate, normalize, value_loss
from soulsgym.errors import MisuseError

LOG_RATIO = torch.tensor([1.0, 1.5, 1.5, 0.5, 0.5]).log()
ADVANTAGE = torch.tensor([2.0, 2.0, -2.0, 2.0, -2.0])


def test_surrogate_by_hand():
    # Ratio 1.5 counts as 1.2 when good, in full when bad; 0.5 in full when good, as 0.8 when bad.
    log_ratio = LOG_RATIO.clone().requires_grad_()
    loss = clipped_surrogate(log_ratio, ADVANTAGE, 0.2)
    loss.sum().backward()
    assert loss.tolist() == pytest.approx([-2.0, -2.4, 3.0, -1.0, 1.6])
    # The slope is -ratio * advantage where it is not clipped.
    assert log_ratio.grad.tolist() == pytest.approx([-2.0, 0.0, 3.0, -1.0, 0.0])


def test_value_loss_by_hand():
    v, v_old, returns = torch.tensor([3.0, 1.0]), torch.tensor([1.0, 1.0]), torch.tensor([3.0, 2.0])
    assert value_loss(v, v_old, returns, 0.0).tolist() == [0.0, 0.5]
    # Kept within 1 +- 0.5, the first may only be 1.5, and misses 3 by 1.5.
    assert value_loss(v, v_old, returns, 0.5).tolist() == [1.125, 0.5]


def test_normalized_by_hand():
    # Mean 3, deviation 2: those of the whole batch, of which this may be a part.
    part = normalize(torch.tensor([1.0, 5.0, 1.0]), torch.tensor(3.0), torch.tensor(2.0))
    assert part.tolist() == pytest.approx([-1.0, 1.0, -1.0])


@pytest.mark.parametrize("given", [[4.0], [4.0, 4.0]])
def test_advantages_that_do_not_differ_become_0(given):
    assert normalize(torch.tensor(given), torch.tensor(4.0), torch.tensor(0.0)).tolist() == [0.0] * len(given)


def test_kl_by_hand():
    # Ratios 2 and 1/2: 2 - 1 - log 2 and 1/2 - 1 + log 2.
    assert approximate_kl(torch.tensor([2.0, 0.5]).log()).item() == pytest.approx(0.25)
    assert approximate_kl(torch.tensor([2.0]).log()).item() == pytest.approx(1.0 - math.log(2.0))


def test_clip_fraction_by_hand():
    assert clip_fraction(torch.tensor([1.0, 1.1, 1.3, 0.7, 0.9]).log(), 0.2).item() == pytest.approx(2 / 5)


def test_columns_are_refused():
    with pytest.raises(MisuseError, match="advantage has the shape"):
        clipped_surrogate(LOG_RATIO, ADVANTAGE.unsqueeze(1), 0.2)
    with pytest.raises(MisuseError, match="v has the shape"):
        value_loss(torch.zeros(3, 1), torch.zeros(3), torch.zeros(3), 0.2)
    with pytest.raises(MisuseError, match="returns has the shape"):
        value_loss(torch.zeros(3), torch.zeros(3), torch.zeros(3, 1), 0.2)
