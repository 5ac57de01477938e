"""Schedules."""

import pytest

from soulsai.ops.schedules import linear, spread_epsilons


@pytest.mark.parametrize(("fraction", "value"), [(-1.0, 1.0), (0.0, 1.0), (0.25, 0.8), (1.0, 0.2), (3.0, 0.2)])
def test_linear(fraction, value):
    assert linear(1.0, 0.2, fraction) == pytest.approx(value)


def test_epsilons_spread():
    assert spread_epsilons(0.5, 3, 2.0).tolist() == pytest.approx([0.5, 0.25, 0.125])


def test_one_actor_or_no_spread():
    assert spread_epsilons(0.5, 1, 7.0).tolist() == [0.5]
    assert spread_epsilons(0.5, 3, 0.0).tolist() == [0.5, 0.5, 0.5]
    assert spread_epsilons(0.0, 2, 7.0).tolist() == [0.0, 0.0]
