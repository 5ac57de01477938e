"""Generalised advantages."""

import pytest
import torch

from soulsai.ops.advantages import gae
from soulsgym.errors import MisuseError


def column(*numbers):
    return torch.tensor(numbers).unsqueeze(1)


def advantages_of(r_t, discount_t, v_tm1, v_t, continues, lam=0.5):
    return gae(column(*r_t), column(*discount_t), column(*v_tm1), column(*v_t), column(*continues), lam)[:, 0].tolist()


def test_an_episode_that_goes_on():
    # gamma 1/2. deltas: 1 + 4/2 - 2 = 1; 0 + 6/2 - 4 = -1; 2 + 8/2 - 6 = 0. Decay 1/4.
    expected = [1.0 - 0.25, -1.0, 0.0]
    assert advantages_of((1.0, 0.0, 2.0), (0.5,) * 3, (2.0, 4.0, 6.0), (4.0, 6.0, 8.0), (1.0,) * 3) == expected


def test_a_terminated_step_takes_neither_value_nor_advantage_of_the_next_episode():
    # deltas: 1 - 2 = -1 at the end; 2 + 8/2 - 3 = 3; 1 + 2/2 - 8 = -6, of which 1/4 goes back one step.
    result = advantages_of((1.0, 2.0, 1.0), (0.0, 0.5, 0.5), (2.0, 3.0, 8.0), (99.0, 8.0, 2.0), (0.0, 1.0, 1.0))
    assert result == [-1.0, 3.0 - 1.5, -6.0]


def test_a_truncated_step_takes_the_value_of_its_final_observation_and_no_advantage():
    # delta: 1 + 6/2 - 2 = 2, with 6 the value where it was cut off, not the 3 of the next beginning.
    assert advantages_of((1.0, 2.0), (0.5, 0.5), (2.0, 3.0), (6.0, 8.0), (0.0, 1.0)) == [2.0, 3.0]


def test_merged_steps_are_discounted_as_many_times():
    # Three steps in one with gamma 1/2: delta 1 + 8/8 - 1 = 1; the next, -2 + 0 - 8 = -10, comes back with 1/8 * 1/2.
    assert advantages_of((1.0, -2.0), (0.125, 0.5), (1.0, 8.0), (8.0, 0.0), (1.0, 1.0)) == [1.0 - 10 / 16, -10.0]


def test_lambda_0_is_the_delta_and_lambda_1_the_return_less_the_value():
    r_t, discount_t, v_tm1, v_t, ones = (1.0, 2.0, 4.0), (0.5,) * 3, (3.0, 5.0, 7.0), (5.0, 7.0, 8.0), (1.0,) * 3
    assert advantages_of(r_t, discount_t, v_tm1, v_t, ones, lam=0.0) == [0.5, 0.5, 1.0]
    # Returns: 1 + 2/2 + 4/4 + 8/8 = 4; 2 + 4/2 + 8/4 = 6; 4 + 8/2 = 8.
    assert advantages_of(r_t, discount_t, v_tm1, v_t, ones, lam=1.0) == [1.0, 1.0, 1.0]


def test_columns_are_apart_and_flags_may_be_bool():
    generator = torch.Generator().manual_seed(2)
    r_t, discount_t, v_tm1, v_t = torch.rand(4, 6, 3, generator=generator).unbind()
    continues = torch.rand(6, 3, generator=generator) > 0.3
    together = gae(r_t, discount_t, v_tm1, v_t, continues, 0.9)
    for i in range(3):
        one = slice(i, i + 1)
        alone = gae(r_t[:, one], discount_t[:, one], v_tm1[:, one], v_t[:, one], continues[:, one].float(), 0.9)
        assert torch.equal(together[:, one], alone)


def test_what_comes_in_is_not_changed_and_no_gradient_leaves():
    given = [torch.ones(3, 2, requires_grad=True) for _ in range(4)]
    advantages = gae(*given, torch.ones(3, 2), 0.9)
    assert not advantages.requires_grad
    assert all(torch.equal(tensor, torch.ones(3, 2)) for tensor in given)


def test_wrong_shapes_are_refused():
    ones = torch.ones(3, 2)
    with pytest.raises(MisuseError, match="v_t has the shape"):
        gae(ones, ones, ones, torch.ones(4, 2), ones, 0.9)
    with pytest.raises(MisuseError, match="r_t has the shape"):
        gae(*[torch.ones(3)] * 5, 0.9)
