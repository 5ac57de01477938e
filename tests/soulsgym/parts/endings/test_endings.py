"""Which fights are over, and which are cut off."""

import numpy as np
import pytest

from soulsgym.errors import MisuseError
from soulsgym.parts.endings import AnyOf, FightOver, NoHit, StepLimit, make_ending
from soulsgym.parts.registry import register
from soulsgym.state import FIGHT, Outcome

RUNNING, WON, DIED, FELL, BROKEN = Outcome


def fights(*rows):
    """Fights of outcome, step and damage taken so far."""
    records = np.zeros(len(rows), FIGHT)
    for record, (outcome, step, taken) in zip(records, rows, strict=True):
        record["outcome"], record["step"], record["taken_total"] = outcome, step, taken
    return records


ROWS = fights(
    (RUNNING, 99, 0.0), (RUNNING, 100, 0.0), (RUNNING, 103, 5.0), (WON, 100, 0.0), (DIED, 40, 9.0), (FELL, 40, 0.0),
    (RUNNING, 40, 5.0),
)  # fmt: skip


def letters(ending, records=ROWS):
    """A letter per fight: goes on, over, cut off."""
    terminated, truncated = ending.of(records)
    assert terminated.dtype == truncated.dtype == np.bool_
    assert not (terminated & truncated).any()
    return "".join("o" if over else "c" if cut else "-" for over, cut in zip(terminated, truncated, strict=True))


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        (FightOver(), "---ooo-"),
        (StepLimit(100), "-ccc---"),
        (NoHit(), "--o-o-o"),
        (AnyOf(FightOver(), StepLimit(100)), "-ccooo-"),
        (AnyOf(StepLimit(100), FightOver(), NoHit()), "-cooooo"),
        (make_ending(100, no_hit=False), "-ccooo-"),
        (make_ending(100, no_hit=True), "-cooooo"),
        (make_ending(104, no_hit=False), "---ooo-"),
    ],
)
def test_how_fights_end(ending, expected):
    assert letters(ending) == expected


class Slow:
    """Cuts a fight off as soon as it has taken `steps`; it lives on a user's machine."""

    def __init__(self, steps=103):
        self.steps = steps

    def of(self, fights):
        return np.zeros(len(fights), np.bool_), fights["step"] >= self.steps

    def won(self, fights):
        return np.ones(len(fights), np.bool_)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("standard", "---ooo-"),
        ({}, "---ooo-"),
        (100, "-ccooo-"),
        ({"step_limit": 100}, "-ccooo-"),
        ({"step_limit": 100, "no_hit": True}, "-cooooo"),
        ("no_hit", "--ooooo"),
        ({"name": "no_hit", "step_limit": 100}, "-cooooo"),
        (Slow(), "--cooo-"),
        (Slow, "--cooo-"),
        ({"name": Slow, "steps": 99}, "cccooo-"),
        ({"name": "slow", "steps": 99, "no_hit": True}, "ccooooo"),
        (lambda: StepLimit(99), "cccooo-"),
    ],
)
def test_an_ending_is_given_by_name_limit_table_object_or_maker(given, expected):
    """Where somebody died the fight is over, whatever a user's ending says."""
    register("ending", "slow")(Slow)
    assert letters(make_ending(given)) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("nohit", "ending 'nohit' is not known, did you mean 'no_hit'?"),
        ({"step_limt": 5}, "setting 'step_limt' of the ending is not known, did you mean 'step_limit'?"),
        ({"name": Slow, "step": 5}, "setting 'step' of the ending is not known, did you mean 'steps'?"),
        ({"step_limit": "5"}, "step limit '5' is not possible"),
        ({"step_limit": 2.5}, "step limit 2.5 is not possible"),
        (None, "ending None cannot be used"),
        (lambda: 5, "ending int has no of, won; write what is missing"),
    ],
)
def test_what_is_no_ending_is_refused(given, message):
    with pytest.raises(MisuseError) as caught:
        make_ending(given)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("limit", [0, -5])
def test_a_limit_that_cannot_be_is_refused(limit):
    with pytest.raises(MisuseError, match=f"step limit {limit} is not possible; give 1 or more"):
        make_ending(limit, no_hit=False)


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        (FightOver(), "---w--w"),
        (StepLimit(100), "wwwwwww"),
        (NoHit(), "ww-w-w-"),
        (AnyOf(FightOver(), NoHit()), "---w---"),
        (make_ending(100, no_hit=False), "---w--w"),
        (make_ending(100, no_hit=True), "---w---"),
    ],
)
def test_which_fights_are_not_lost_by_the_rule(ending, expected):
    """The last row is won with a hit taken; a win at the step limit is a win."""
    records = np.concatenate([ROWS[:6], fights((WON, 100, 5.0))])
    won = ending.won(records)
    assert won.dtype == np.bool_
    assert "".join("w" if each else "-" for each in won) == expected


def test_a_fight_that_the_game_broke_off_is_cut_off_not_over():
    fights = np.zeros(2, FIGHT)
    fights["outcome"] = BROKEN, DIED
    terminated, truncated = FightOver().of(fights)
    assert terminated.tolist() == [False, True]
    assert truncated.tolist() == [True, False]
    assert FightOver().won(fights).tolist() == [False, False]


def test_an_ending_that_builds_on_the_standard_one_counts():
    class Never(FightOver):
        def won(self, fights):
            return np.zeros(len(fights), bool)

    fights = np.zeros(1, FIGHT)
    fights["outcome"] = Outcome.WON
    assert make_ending("standard").won(fights).tolist() == [True]
    assert make_ending(Never).won(fights).tolist() == [False]
