"""The bounds of a fair fight."""

from types import SimpleNamespace

import pytest


def results_of(fairness, **changed):
    wins = {
        "idle": 0.0,
        "random": 0.0,
        "attack_spam": 0.02,
        "roll_spam": 0.01,
        "runner": 0.0,
        "duellist": 0.5,
        "late": 0.2,
    }
    wins |= changed
    survives_s = wins.pop("survives_s", 30.0)
    late = wins.pop("late")
    rates = wins | {fairness.LATE: late}
    return {name: SimpleNamespace(win_rate=rate, median_survival_s=survives_s) for name, rate in rates.items()}


def test_a_fair_fight_misses_nothing(fairness):
    assert fairness.missed_bounds(results_of(fairness)) == []


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"idle": 0.001}, "idle wins 0.1%, more than 0%"),
        ({"random": 0.01}, "random wins 1.0%, more than 0%"),
        ({"attack_spam": 0.03}, "attack_spam wins 3.0%, more than 2%"),
        ({"runner": 0.021}, "runner wins 2.1%, more than 2%"),
        ({"duellist": 0.9}, "the duellist wins 90.0%, not 15% to 80%"),
        ({"duellist": 0.1, "late": 0.0}, "the duellist wins 10.0%, not 15% to 80%"),
        ({"late": 0.26}, "0.1 s late he wins 26.0%, more than half of his 50.0%"),
        ({"survives_s": 19.0}, "random survives 19.0 s, not 20 to 60 s"),
        ({"survives_s": 61.0}, "random survives 61.0 s, not 20 to 60 s"),
    ],
)
def test_every_bound_can_be_missed(fairness, changed, sentence):
    assert fairness.missed_bounds(results_of(fairness, **changed)) == [sentence]


def test_it_prints_a_table_for_each_variant(fairness, capsys):
    status = fairness.main(8)
    printed = capsys.readouterr().out
    assert "standard: 8 full fights each" in printed
    assert "hard: 8 full fights each" in printed
    assert printed.count(fairness.LATE) == 2
    assert status == (0 if "all bounds are kept" in printed else 1)
