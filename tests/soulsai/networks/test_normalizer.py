"""The normaliser."""

import pytest
import torch

from soulsai.networks.normalizer import Normalizer
from soulsgym.errors import MisuseError


def test_by_hand():
    normalizer = Normalizer(2)
    normalizer.update(torch.tensor([[1.0, 10.0], [5.0, 10.0]]))
    assert normalizer.mean.tolist() == [3.0, 10.0]
    assert normalizer.variance.tolist() == [4.0, 0.0]
    out = normalizer(torch.tensor([[7.0, 10.0]]))
    assert out.dtype == torch.float32
    assert out.tolist() == [pytest.approx([2.0, 0.0])]


def test_before_the_first_sample_it_only_limits():
    assert Normalizer(2)(torch.tensor([[3.0, -99.0]])).tolist() == [pytest.approx([3.0, -10.0])]


def test_a_constant_input_that_changes_is_limited():
    normalizer = Normalizer(1)
    normalizer.update(torch.full((8, 1), 2.0))
    assert normalizer(torch.tensor([[2.0], [3.0], [-9.0]])).tolist() == [[0.0], [10.0], [-10.0]]


def test_in_parts_or_at_once():
    samples = 1000.0 + torch.randn(300, 3, generator=torch.Generator().manual_seed(1))
    parts = Normalizer(3)
    for part in samples.split([1, 0, 99, 7, 193]):
        parts.update(part)
    assert parts.count.item() == 300
    assert torch.allclose(parts.mean, samples.double().mean(0), atol=1e-9)
    assert torch.allclose(parts.variance, samples.double().var(0, correction=0), atol=1e-9)


def test_its_numbers_travel_with_the_state_and_are_no_parameters():
    first, second = Normalizer(2), Normalizer(2)
    first.update(torch.tensor([[1.0, 2.0], [3.0, 6.0]]))
    second.load_state_dict(first.state_dict())
    x = torch.tensor([[4.0, 4.0]])
    assert torch.equal(first(x), second(x))
    assert list(first.parameters()) == []


def test_one_row_without_its_batch_is_refused():
    with pytest.raises(MisuseError, match="x has the shape"):
        Normalizer(2).update(torch.zeros(2))
