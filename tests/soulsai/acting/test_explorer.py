"""Random actions: how many, and which."""

import numpy as np
import pytest

from soulsai.acting.explorer import epsilons, explored

SCHEDULE = {"start": 1.0, "end": 0.2, "steps": 100, "spread": 0.0}


@pytest.mark.parametrize(("step", "share"), [(0, 1.0), (25, 0.8), (100, 0.2), (5000, 0.2)])
def test_the_share_falls_in_a_line(step, share):
    assert epsilons(step, 3, **SCHEDULE).tolist() == pytest.approx([share] * 3)


def test_all_random_within_the_warm_up():
    assert epsilons(99, 2, warmup=100, **SCHEDULE | {"start": 0.3}).tolist() == [1.0, 1.0]
    assert epsilons(100, 2, warmup=100, **SCHEDULE | {"start": 0.3}).tolist() == pytest.approx([0.2, 0.2])


def test_spread_over_the_actors():
    # 0.5^1, 0.5^(1 + 7/2), 0.5^8
    found = epsilons(0, 3, **SCHEDULE | {"start": 0.5, "spread": 7.0})
    assert found.tolist() == pytest.approx([0.5, 0.5**4.5, 0.5**8])


def test_never_random_and_always_random():
    generator = np.random.default_rng(0)
    greedy, masks = np.full(1000, 3), np.ones((1000, 4), np.bool_)
    assert np.array_equal(explored(greedy, masks, np.zeros(1000), generator), greedy)
    masks[:, 3] = False
    assert not (explored(greedy, masks, np.ones(1000), generator) == 3).any()


def test_only_open_actions_and_all_alike():
    generator, n = np.random.default_rng(1), 30_000
    masks = np.tile(np.array([True, False, True, True, False]), (n, 1))
    chosen = explored(np.full(n, 1), masks, np.ones(n), generator)
    counts = np.bincount(chosen, minlength=5)
    assert counts[[1, 4]].tolist() == [0, 0]
    # Chi-square with 2 degrees of freedom: beyond 13.8 once in a thousand.
    assert ((counts[[0, 2, 3]] - n / 3) ** 2 / (n / 3)).sum() < 13.8


def test_each_actor_has_its_own_share():
    generator, n = np.random.default_rng(2), 20_000
    masks = np.tile(np.array([True, False, False]), (n, 1))
    shares = np.tile([0.1, 0.6], n // 2)
    random = explored(np.full(n, 2), masks, shares, generator) == 0
    # Deviation of a share of 10,000: 0.005 at most.
    assert random[0::2].mean() == pytest.approx(0.1, abs=0.015)
    assert random[1::2].mean() == pytest.approx(0.6, abs=0.02)
