"""Against published examples and values worked by hand."""

import numpy as np
import pytest

from soulsai.evaluation.statistics import (
    difference,
    fights_needed,
    mcnemar,
    paired_difference,
    two_proportions,
    wilson,
)
from soulsgym.errors import MisuseError


def _pairs(both, only_a, only_b, neither):
    a = [True] * both + [True] * only_a + [False] * only_b + [False] * neither
    b = [True] * both + [False] * only_a + [True] * only_b + [False] * neither
    return np.array(a), np.array(b)


def test_wilson_of_newcombe_1998():
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)


def test_wilson_at_the_ends_by_hand():
    # All n won: the lower end is n / (n + z^2), with z^2 = 3.8415.
    assert wilson(100, 100) == (pytest.approx(100 / 103.8415, abs=1e-5), 1.0)
    assert wilson(0, 100) == (0.0, pytest.approx(3.8415 / 103.8415, abs=1e-5))


def test_wider_with_more_confidence():
    low, high = wilson(90, 100, 0.99)
    assert low < wilson(90, 100)[0]
    assert high > wilson(90, 100)[1]


def test_fisher_of_the_lady_tasting_tea():
    # (16 + 1) / 70 on either side.
    assert two_proportions(3, 4, 1, 4) == pytest.approx(34 / 70)


def test_fisher_of_equal_and_of_opposite_rates():
    assert two_proportions(50, 100, 50, 100) == pytest.approx(1.0)
    # The two most extreme of C(10, 5) = 252 tables.
    assert two_proportions(5, 5, 0, 5) == pytest.approx(2 / 252)


def test_fisher_of_thousands_of_fights():
    assert two_proportions(9_900, 10_000, 9_700, 10_000) < 1e-20


def test_mcnemar_by_hand():
    # One against nine of ten different fights: 2 * (1 + 10) / 1024.
    assert mcnemar(*_pairs(5, 9, 1, 3)) == pytest.approx(22 / 1024)
    assert mcnemar(*_pairs(5, 0, 0, 5)) == 1.0
    assert mcnemar(*_pairs(0, 4, 4, 0)) == 1.0


def test_mcnemar_of_thousands_of_different_fights():
    assert 0.0 < mcnemar(*_pairs(0, 2600, 2400, 0)) < 0.01


def test_mcnemar_wants_pairs():
    with pytest.raises(MisuseError, match="3 and 2 fights cannot be paired"):
        mcnemar(np.ones(3, bool), np.ones(2, bool))


def test_difference_of_newcombe_1998():
    assert difference(56, 70, 48, 80) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_paired_difference_of_newcombe_1998():
    assert paired_difference(*_pairs(36, 12, 2, 0)) == pytest.approx((0.0569, 0.3404), abs=5e-5)


def test_pairs_that_agree_make_the_interval_narrower():
    low, high = paired_difference(*_pairs(50, 6, 4, 40))
    wide_low, wide_high = difference(56, 100, 54, 100)
    assert high - low < 0.6 * (wide_high - wide_low)


def test_fights_needed_by_hand():
    # (1.96 + 0.8416)^2 * (0.25 + 0.24) / 0.01 = 384.6
    assert fights_needed(0.5, 0.6) == 385
    assert fights_needed(0.9, 0.9) is None


@pytest.mark.parametrize(("wins", "n"), [(1, 0), (3, 2), (-1, 5)])
def test_impossible_counts(wins, n):
    with pytest.raises(MisuseError, match=f"{wins} wins of {n} fights"):
        wilson(wins, n)


def test_impossible_confidence():
    with pytest.raises(MisuseError, match=r"confidence 95"):
        wilson(1, 2, 95)
