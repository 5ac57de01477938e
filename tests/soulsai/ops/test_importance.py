"""Importance weights."""

import pytest
import torch

from soulsai.ops.importance import importance_weights, weighted_mean
from soulsgym.errors import MisuseError

PROBABILITY = torch.tensor([1 / 4, 1 / 16, 1 / 2])


def test_by_hand():
    # Of 8 rows: 2, 1/2 and 4 times as likely as even; to the -1/2, over the largest, sqrt 2.
    assert importance_weights(PROBABILITY, 8, 0.5).tolist() == pytest.approx([0.5, 1.0, 8**-0.5])
    assert importance_weights(PROBABILITY, 8, 1.0).tolist() == pytest.approx([1 / 4, 1.0, 1 / 8])


def test_no_correction_with_beta_0_and_none_needed_for_even_sampling():
    assert importance_weights(PROBABILITY, 8, 0.0).tolist() == [1.0, 1.0, 1.0]
    assert importance_weights(torch.full((3,), 1 / 8), 8, 0.7).tolist() == [1.0, 1.0, 1.0]


def test_corrected_gradient_is_that_of_even_sampling():
    # Fully corrected, the expected loss under the priorities is the plain mean, up to the one common factor.
    probability, loss = torch.tensor([0.5, 0.25, 0.25]), torch.tensor([1.0, 2.0, 6.0])
    weights = importance_weights(probability, 3, 1.0)
    assert (probability * weights * loss).sum().item() == pytest.approx(loss.mean().item() * 3 * 0.25)


def test_weighted_mean_by_hand():
    assert weighted_mean(torch.tensor([2.0, 4.0]), torch.tensor([1.0, 0.5])).item() == 2.0


def test_a_column_of_losses_is_refused():
    weights = torch.ones(3)
    with pytest.raises(MisuseError, match=r"loss has the shape \(3, 1\)"):
        weighted_mean(torch.ones(3, 1), weights)
    with pytest.raises(MisuseError, match=r"weights has the shape \(3, 1\)"):
        weighted_mean(torch.ones(3), weights.unsqueeze(1))
    with pytest.raises(MisuseError, match=r"probability has the shape \(3, 1\)"):
        importance_weights(PROBABILITY.unsqueeze(1), 8, 0.5)
