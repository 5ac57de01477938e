"""Weighted losses."""

import pytest
import torch

from soulsai.ops.importance import weighted_mean
from soulsgym.errors import MisuseError


def test_weighted_mean_by_hand():
    assert weighted_mean(torch.tensor([2.0, 4.0]), torch.tensor([1.0, 0.5])).item() == 2.0


def test_a_column_of_losses_is_refused():
    weights = torch.ones(3)
    with pytest.raises(MisuseError, match=r"loss has the shape \(3, 1\)"):
        weighted_mean(torch.ones(3, 1), weights)
    with pytest.raises(MisuseError, match=r"weights has the shape \(3, 1\)"):
        weighted_mean(torch.ones(3), weights.unsqueeze(1))
