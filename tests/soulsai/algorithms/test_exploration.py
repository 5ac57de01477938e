"""The share of random actions over a run."""

import pytest
from msgspec.structs import replace

from soulsai.algorithms.q.config import QConfig
from soulsai.algorithms.q.exploration import epsilons

SCHEDULE = QConfig(epsilon=1.0, final_epsilon=0.2, epsilon_steps=100, warmup_steps=100)


@pytest.mark.parametrize(("step", "share"), [(0, 1.0), (25, 0.8), (100, 0.2), (5000, 0.2)])
def test_the_share_falls_in_a_line(step, share):
    assert epsilons(SCHEDULE, step, 3).tolist() == pytest.approx([share] * 3)


def test_all_random_within_the_warm_up_if_asked_for():
    low = replace(SCHEDULE, epsilon=0.3, random_warmup=True)
    assert epsilons(low, 99, 2).tolist() == [1.0, 1.0]
    assert epsilons(low, 100, 2).tolist() == pytest.approx([0.2, 0.2])
    assert epsilons(replace(low, random_warmup=False), 50, 2).tolist() == pytest.approx([0.25, 0.25])


def test_spread_over_the_actors():
    # 0.5^1, 0.5^(1 + 7/2), 0.5^8
    found = epsilons(replace(SCHEDULE, epsilon=0.5, spread=7.0), 0, 3)
    assert found.tolist() == pytest.approx([0.5, 0.5**4.5, 0.5**8])
