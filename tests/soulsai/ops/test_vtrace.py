"""V-trace, worked by hand."""

import math

import pytest
import torch

from soulsai.ops.advantages import gae
from soulsai.ops.vtrace import vtrace
from soulsgym.errors import MisuseError


def column(*numbers):
    return torch.tensor(numbers).unsqueeze(1)


def found(ratios, r_t, discount_t, v_tm1, v_t, continues, **clips):
    log_ratio = column(*(math.log(ratio) for ratio in ratios))
    others = [column(*numbers) for numbers in (r_t, discount_t, v_tm1, v_t, continues)]
    targets, advantages = vtrace(log_ratio, *others, **clips)
    return targets[:, 0].tolist(), advantages[:, 0].tolist()


def test_weights_below_one_shrink_and_those_above_are_cut():
    # gamma 1/2. Errors with rho (1/2, 1): (1 + 4/2 - 2)/2 = 1/2 and 0 + 6/2 - 4 = -1.
    # Corrections: -1; 1/2 + 1/2 * c 1/2 * -1 = 1/4. What follows the first is 4 - 1 = 3, the last has no later target.
    targets, advantages = found((0.5, 4.0), (1.0, 0.0), (0.5, 0.5), (2.0, 4.0), (4.0, 6.0), (1.0, 1.0))
    assert targets == pytest.approx([2.25, 3.0])
    assert advantages == pytest.approx([0.5 * (1.0 + 0.5 * 3.0 - 2.0), -1.0])


def test_the_two_clips_are_apart():
    # rho 2 and c 1: errors 2 and -1; corrections -1 and 2 - 1/2 = 3/2.
    targets, _ = found((2.0, 1.0), (1.0, 0.0), (0.5, 0.5), (2.0, 4.0), (4.0, 6.0), (1.0, 1.0), rho_clip=2.0)
    assert targets == pytest.approx([3.5, 3.0])


def test_nothing_of_the_next_episode_comes_back():
    # The first step ends its episode (discount 0), the second is cut off: its own last value, 6, follows.
    targets, advantages = found((1.0, 1.0, 1.0), (1.0, 2.0, 9.0), (0.0, 0.5, 0.5), (2.0, 3.0, 8.0), (99.0, 6.0, 2.0),
                                (0.0, 0.0, 1.0))  # fmt: skip
    assert targets == pytest.approx([1.0, 5.0, 10.0])
    assert advantages == pytest.approx([-1.0, 2.0, 2.0])


def test_of_its_own_policy_the_targets_are_those_of_gae_with_lambda_1():
    generator = torch.Generator().manual_seed(0)
    r_t, v_tm1, v_t = (torch.randn(6, 3, generator=generator) for _ in range(3))
    continues = (torch.rand(6, 3, generator=generator) < 0.7).float()
    v_t[:-1] = torch.where(continues[:-1] > 0.0, v_tm1[1:], v_t[:-1])
    discount_t = torch.full((6, 3), 0.9)
    targets, _ = vtrace(torch.zeros(6, 3), r_t, discount_t, v_tm1, v_t, continues)
    torch.testing.assert_close(targets, v_tm1 + gae(r_t, discount_t, v_tm1, v_t, continues, 1.0))


def test_columns_of_other_shapes_are_refused():
    with pytest.raises(MisuseError):
        vtrace(torch.zeros(2, 1), *(torch.zeros(3, 1) for _ in range(5)))
