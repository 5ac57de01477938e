"""Shapes at the access."""

import pytest
import torch

from soulsai.ops.shapes import assert_one_each, assert_rank, assert_same_shape
from soulsgym.errors import MisuseError


def test_right_shapes_pass():
    assert_rank(2, a=torch.zeros(3, 4), b=torch.zeros(1, 1))
    assert_same_shape(a=torch.zeros(3, 4), b=torch.ones(3, 4), c=torch.ones(3, 4, dtype=torch.bool))
    assert_one_each(torch.zeros(3, 4), a=torch.zeros(3), b=torch.zeros(3))


def test_a_wrong_rank_is_named_with_its_shape():
    with pytest.raises(MisuseError, match=r"^q_t has the shape \(3,\); give a tensor with 2 axes$"):
        assert_rank(2, a=torch.zeros(3, 4), q_t=torch.zeros(3))


@pytest.mark.parametrize("shape", [(3, 1), (1,), (4,)])
def test_shapes_that_would_be_stretched_are_refused(shape):
    with pytest.raises(MisuseError, match=r"weights has the shape .* give the shape of loss"):
        assert_same_shape(loss=torch.zeros(3), weights=torch.zeros(shape))


@pytest.mark.parametrize("shape", [(3, 1), (1,), (4,), ()])
def test_one_number_for_each_row(shape):
    with pytest.raises(MisuseError, match=r"r_t has the shape .*; give one number per row, \(3,\)"):
        assert_one_each(torch.zeros(3, 4), r_t=torch.zeros(shape))
