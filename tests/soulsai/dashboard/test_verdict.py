"""How a run is going, in words."""

import pytest

from soulsai.dashboard.verdict import verdict_of


def points(*values, every=100_000):
    return [(float(every * number), value) for number, value in enumerate(values, 1)]


def rated(*rates, half=0.03):
    lows, highs = points(*(rate - half for rate in rates)), points(*(rate + half for rate in rates))
    return {
        "win_rate/evaluation": points(*rates),
        "win_rate/evaluation_low": lows,
        "win_rate/evaluation_high": highs,
    }


@pytest.mark.parametrize(
    ("series", "words"),
    [
        ({}, ""),
        (rated(0.22), "first evaluation: wins 22 %"),
        (rated(0.2, 0.3), "learning: 20 % to 30 % since step 100 k"),
        (rated(0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8), "learning: 40 % to 70 % since step 500 k"),
        (rated(0.9, 0.9, 0.9, 0.4, 0.4, 0.4), "getting worse: 90 % to 40 % since step 200 k"),
        (rated(0.4, 0.42, 0.4, 0.41, 0.4, 0.42), "no change: wins about 41 % since step 200 k"),
        (rated(0.97, 0.98, 0.99, 0.98), "solved: wins about 98 % since step 200 k"),
        (rated(0.4, 0.5, half=0.2), "no change: wins about 50 % since step 100 k"),  # within what chance does
        (rated(0.0, 0.0), "no win yet"),
        (
            rated(0.0, 0.0) | {"boss_health_left/all": points(0.9, 0.6)},
            "learning, no win yet: boss health left 90 % to 60 % since step 100 k",
        ),
        (
            rated(0.0, 0.0) | {"boss_health_left/all": points(0.9, 0.9)},
            "no win yet; boss health left about 90 % since step 100 k",
        ),
        ({"return/evaluation": points(20.0, 195.0)}, "learning: return 20 to 195 since step 100 k"),
        ({"return/evaluation": points(-50.0)}, "first evaluation: return -50"),
    ],
)
def test_verdicts(series, words):
    assert verdict_of(series) == words


def test_the_step_is_short():
    assert verdict_of(rated(0.2, 0.8) | {"win_rate/evaluation": points(0.2, 0.8, every=2_000_000)}).endswith("step 2 M")
