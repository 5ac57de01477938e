"""Whether differences are real."""

import pytest

from soulsai.evaluation import compare
from soulsgym.errors import MisuseError
from soulsgym.state import Outcome

WON, DIED, RUNNING = int(Outcome.WON), int(Outcome.DIED), int(Outcome.RUNNING)


def test_a_real_difference_on_the_same_fights(with_outcomes):
    a = with_outcomes([WON] * 18 + [DIED] * 2)
    b = with_outcomes([WON] * 8 + [DIED] * 12)
    found = compare(a, b, names=("new", "old"))
    # Ten fights that only the first won: 2 / 2^10.
    assert found.is_paired
    assert found.p == pytest.approx(2 / 1024)
    assert found.is_real
    assert found.difference == pytest.approx(0.5)
    assert 0.0 < found.low < 0.5 < found.high
    assert found.sentence.startswith("new wins 90.0 % of 20 fights, old 40.0 % of 20: the difference of +50.0 points")
    assert "is real at the 5 % level" in found.sentence


def test_other_seeds_are_not_paired(with_outcomes):
    found = compare(with_outcomes([WON] * 3 + [DIED], seed=1), with_outcomes([WON] + [DIED] * 3, seed=2))
    assert not found.is_paired
    assert found.p == pytest.approx(34 / 70)
    assert "may be chance" in found.sentence
    assert found.fights_needed == 12
    assert "about 12 fights of each" in found.sentence


def test_the_shorter_evaluation_decides_which_fights_are_compared(with_outcomes):
    found = compare(with_outcomes([WON, DIED, WON, WON]), with_outcomes([DIED, DIED]))
    assert (found.fights_a, found.fights_b, found.rate_a) == (2, 2, 0.5)


def test_time_outs_do_not_win(with_outcomes):
    found = compare(with_outcomes([WON, RUNNING]), with_outcomes([WON, DIED]))
    assert found.difference == 0.0
    assert found.p == 1.0
    assert found.fights_needed is None
    assert "equally often" in found.sentence


def test_different_settings_are_named(with_outcomes):
    with pytest.raises(MisuseError, match=r"variant 'standard' and 'hard', randomize 0.0 and 0.5; evaluate both"):
        compare(with_outcomes([WON]), with_outcomes([WON], variant="hard", randomize=0.5))
