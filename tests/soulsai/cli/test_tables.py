"""The tables of an evaluation, with numbers worked by hand."""

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from soulsai.cli.tables import print_evaluation
from soulsai.evaluation.evaluation import AttackCount, Breakdown, Evaluation, EvaluationSettings

SETTINGS = EvaluationSettings("iudex", "standard", 1, True, 0.0, False, 3000, False, 0, 4)


@pytest.fixture
def evaluation():
    """Four fights: one won in 100 s with 40 % left, two deaths, one fall; 900 damage, 600 of it by the slam."""
    blows = Breakdown(
        attack={"beast_wide_sweep": 2, "fall": 1},
        distance={"0-2 m": 0, "2-3 m": 2},
        animation={f"Animation{number}": 12 - number for number in range(12)},
        stamina={},
    )
    return Evaluation(
        settings=SETTINGS,
        last_phase=2,
        outcome=np.array([1, 2, 2, 3], np.int32),
        killed_by=("", "beast_wide_sweep", "beast_wide_sweep", "fall"),
        time_s=np.array([100.0, 20.0, 30.0, 10.0]),
        player_hp_share=np.array([0.4, 0.0, 0.0, 0.0]),
        boss_hp_share=np.array([0.0, 0.25, 0.5, 0.75]),
        damage_taken=np.array([300.0, 300.0, 300.0, 0.0]),
        steps=np.array([1000, 200, 300, 100], np.int32),
        phase=np.array([2, 2, 1, 1], np.int32),
        attacks=(AttackCount("beast_wide_sweep", 10, 3, 300.0, 1, 2), AttackCount("slam", 1200, 2, 600.0, 0, 0)),
        deaths=blows,
        hits=blows,
        places=np.zeros((40, 40), np.int64),
        hit_places=np.zeros((40, 40), np.int64),
    )


def printed(evaluation, **options):
    console = Console(file=io.StringIO(), width=80)
    print_evaluation(evaluation, console=console, **options)
    return console.file.getvalue()


def rows(text):
    return [line.split() for line in text.splitlines()]


def test_outcomes_of_the_fights(evaluation):
    from soulsgym.state import Outcome

    assert (Outcome.WON, Outcome.DIED, Outcome.FELL) == (1, 2, 3)
    text = printed(evaluation, title="mine")
    assert text.startswith("mine wins 25.0 % of 4 fights (95 % interval 4.6-69.9)\n")
    assert ["1", "4", "0", "1", "1", "0", "50.0", "%"] in rows(text)  # phase 1: all reached it, one died, one fell
    assert ["2", "2", "1", "1", "0", "0", "50.0", "%"] in rows(text)


def test_figures(evaluation):
    text = printed(evaluation)
    assert ["won:", "time", "to", "kill", "100.0", "s", "100.0", "s", "100.0", "s"] in rows(text)
    assert ["won:", "player", "health", "left", "40.0", "%", "40.0", "%", "40.0", "%"] in rows(text)
    assert ["lost:", "boss", "health", "left", "37.5", "%", "50.0", "%", "62.5", "%"] in rows(text)


def test_attacks_by_damage(evaluation):
    text = printed(evaluation)
    slam = ["Halberd", "slam", "1,200", "2", "0.0", "%", "150.0", "66.7", "%", "0"]
    sweep = ["Wide", "sweep", "10", "3", "25.0", "%", "75.0", "33.3", "%", "2"]
    assert rows(text).index(slam) < rows(text).index(sweep)


def test_deaths_side_by_side_with_the_rest_summed_up(evaluation):
    text = printed(evaluation)
    assert ["Wide", "sweep", "2", "2-3", "m", "2", "Animation", "0", "12"] in rows(text)
    assert ["Fall", "1", "Animation", "1", "11"] in rows(text)
    assert ["others", "10"] in rows(text)  # 4 + 3 + 2 + 1
    assert "0-2 m" not in text


def test_fits_80_columns(evaluation):
    text = printed(evaluation)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_nothing_won_and_nothing_lost(evaluation):
    lost = replace(evaluation, outcome=np.array([0, 2, 2, 3], np.int32))
    assert ["won:", "time", "to", "kill", "-", "-", "-"] in rows(printed(lost))
    won = replace(evaluation, outcome=np.ones(4, np.int32))
    assert "Causes of death" not in printed(won)


def test_settings(evaluation):
    assert printed(evaluation).splitlines()[1] == "iudex (standard), full fight, seed 0, at most 300 s each, greedy"
    other = replace(SETTINGS, variant="hard", phase=2, full=False, randomize=0.5, random_pose=True, no_hit=True, seed=9)
    assert "iudex (hard), phase 2 alone, randomize 0.5, random poses, no hit allowed, seed 9, at most 300 s each" in (
        printed(replace(evaluation, settings=other))
    )
