"""Columns: what is left of many numbers when a chart has room for a few."""

import numpy as np
import pytest

from soulsai.dashboard.columns import BLOCK, Column, Growing


def filled(values, rows=None, parts=3):
    column = Column()
    values = np.asarray(values, np.float64)
    rows = np.arange(len(values)) if rows is None else np.asarray(rows)
    for some, numbers in zip(np.array_split(values, parts), np.array_split(rows, parts), strict=True):
        column.extend(some, numbers)
    return column


def test_an_array_grows_and_is_cut():
    grown = Growing(np.float64)
    for number in range(300):
        grown.extend(np.array([float(number)]))
    assert grown.values.tolist() == list(range(300))
    grown.cut(7)
    grown.extend(np.array([1.0, 2.0]))
    assert grown.values.tolist() == [0, 1, 2, 3, 4, 5, 6, 1, 2]


def test_few_entries_stay_as_they_are():
    buckets = filled([3.0, 1.0, 2.0]).buckets(0, 3, 3)
    assert buckets.mean.tolist() == [3.0, 1.0, 2.0]
    assert buckets.middle.tolist() == [0, 1, 2]
    assert buckets.low is None


def slow_buckets(values, first, end, size):
    """The same by hand."""
    found = []
    for start in range(first // size * size, end, size):
        part = values[max(start, first) : min(start + size, end)]
        finite = part[np.isfinite(part)]
        nothing = (np.nan, np.nan, np.nan)
        found.append((finite.mean(), finite.min(), finite.max()) if len(finite) else nothing)
    return np.array(found).T


@pytest.mark.parametrize(("first", "end"), [(0, 10_000), (1, 9_999), (37, 5_003), (4_000, 4_129), (9_990, 10_000)])
@pytest.mark.parametrize("most", [2, 7, 50, 800])
def test_buckets_are_what_one_gets_by_hand(first, end, most):
    generator = np.random.default_rng(3)
    values = generator.standard_normal(10_000)
    values[generator.random(10_000) < 0.3] = np.nan
    values[2_000:2_700] = np.nan
    buckets = filled(values, parts=11).buckets(first, end, most)
    assert len(buckets.mean) <= most
    if end - first <= most:
        np.testing.assert_array_equal(buckets.mean, values[first:end])
        return
    size = 2
    while len(range(first // size * size, end, size)) > most:
        size *= 2
    mean, low, high = slow_buckets(values, first, end, size)
    np.testing.assert_allclose(buckets.mean, mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(buckets.low, low)
    np.testing.assert_array_equal(buckets.high, high)
    assert first <= buckets.middle[0]
    assert buckets.middle[-1] < end
    assert (np.diff(buckets.middle) > 0).all()


def test_more_than_half_of_the_room_is_used():
    column = filled(np.arange(100_000.0))
    for end in (801, 1_500, 33_333, 65_537, 100_000):
        assert 400 <= len(column.buckets(0, end, 800).mean) <= 800


def test_old_buckets_stay_while_rows_come_in():
    values = np.random.default_rng(1).standard_normal(70_000)
    before, after = filled(values[:60_000]).buckets(0, 60_000, 800), filled(values).buckets(0, 60_100, 800)
    np.testing.assert_array_equal(before.mean[:-1], after.mean[: len(before.mean) - 1])


def test_rows_that_lack_the_metric():
    rows = np.arange(0, 3_000, 3) + 1
    column = filled(rows.astype(float), rows)
    assert column.entries(0, 2) == (0, 1)
    assert column.entries(2, 4) == (1, 1)
    assert column.entries(4, 5) == (1, 2)
    assert column.rows(np.array([0, 5])).tolist() == [1, 16]
    low, high = column.entries(300, 1_200)
    assert column.values[low:high].min() == 301
    assert column.values[low:high].max() == 1_198


def test_a_metric_that_begins_late_or_ends_early():
    late = filled([1.0, 2.0], [5, 6])
    assert late.rows(np.array([0, 1])).tolist() == [5, 6]
    early = Column()
    early.extend(np.array([1.0, 2.0]), np.array([0, 1]))
    assert early.entries(0, 100) == (0, 2)
    early.extend(np.array([3.0]), np.array([50]))
    assert early.rows(np.arange(3)).tolist() == [0, 1, 50]


@pytest.mark.parametrize("spacing", [1, 3])
def test_after_a_cut_it_is_as_if_the_rest_never_was(spacing):
    rows = np.arange(0, 1_000 * spacing, spacing)
    values = np.random.default_rng(2).standard_normal(1_000)
    column, cut = filled(values, rows), 555 * spacing
    column.cut(cut)
    assert column.size == 555
    column.extend(values[:445], rows[555:])
    expected = filled(np.concatenate([values[:555], values[:445]]), rows)
    for most in (3, 16, 1_000):
        np.testing.assert_allclose(column.buckets(0, 1_000, most).mean, expected.buckets(0, 1_000, most).mean)


def test_infinite_values_are_no_values():
    values = np.ones(4 * BLOCK)
    values[5], values[6], values[BLOCK : 2 * BLOCK] = np.inf, -np.inf, np.nan
    buckets = filled(values).buckets(0, len(values), 4)
    assert buckets.mean[0] == 1.0
    assert buckets.high[0] == 1.0
    assert np.isnan([buckets.mean[1], buckets.low[1], buckets.high[1]]).all()
