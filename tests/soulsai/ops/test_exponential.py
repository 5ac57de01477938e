"""The exponential in single precision."""

import numpy as np

from soulsai.ops.exponential import exp_


def exp(numbers):
    x = np.array(numbers, np.float32)
    exp_(x, np.empty(len(x), np.int32))
    return x


def test_it_is_that_of_numpy():
    x = np.linspace(-87.0, 88.0, 200_001, dtype=np.float32)
    np.testing.assert_allclose(exp(x), np.exp(x.astype(np.float64)), rtol=3e-7)
    assert exp([0.0]) == 1.0


def test_beyond_its_range_and_without_a_number():
    found = exp([-1e9, -np.inf, 1e9, np.inf, np.nan])
    assert (found[:2] < 1e-37).all()
    assert (found[2:4] > 1e38).all()
    assert np.isnan(found[4])
