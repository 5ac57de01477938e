"""Every term, against values worked by hand."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from soulsgym.parts.rewards import TERMS, make_reward, terms
from soulsgym.state import FIGHT, Outcome

CENTRE = (139.0, 596.0)
"""Of the arena of Iudex; 21 and 22 are the animations of a roll."""
ALONE = np.ones(1, np.bool_)
IDLE = 17


def fight(
    step=0, *, away_m=2.0, from_centre_m=0.0, dealt=0.0, taken=0.0, landed=-1, outcome=0, animation=IDLE, before=0.0
):
    """A record with the player east of the centre and the boss north of the player."""
    record = np.zeros(1, FIGHT)
    record["player_pose"][0, :2] = CENTRE[0] + from_centre_m, CENTRE[1]
    record["boss_pose"][0, :2] = CENTRE[0] + from_centre_m, CENTRE[1] + away_m
    record["player_max_hp"], record["boss_max_hp"] = 400, 1000
    record["damage_dealt"], record["damage_taken"], record["landed"] = dealt, taken, landed
    record["taken_total"] = before + taken
    record["step"], record["outcome"], record["player_animation"] = step, outcome, animation
    return record


def reward_of(spec, n=1, **weights):
    return make_reward({"weights": weights}, n, spec)


def values_of(spec, name, *records):
    """The values of one term at weight 1 over the records, of which the first is the beginning."""
    reward = reward_of(spec, **{name: 1.0})
    reward.begin(records[0], ALONE)
    return [float(reward.of(record)[0][0]) for record in records[1:]]


@pytest.mark.parametrize(
    ("name", "record", "value"),
    [
        ("dealt", fight(1, dealt=50.0), 0.05),
        ("dealt", fight(4, dealt=150.0), 0.15),
        ("taken", fight(1, taken=100.0), -0.25),
        ("win", fight(1, outcome=Outcome.WON), 1.0),
        ("win", fight(1, outcome=Outcome.DIED), 0.0),
        ("win", fight(1), 0.0),
        ("death", fight(1, outcome=Outcome.DIED), -1.0),
        ("death", fight(1, outcome=Outcome.FELL), -1.0),
        ("death", fight(1, outcome=Outcome.WON), 0.0),
        ("end", fight(1, outcome=Outcome.WON), 1.0),
        ("end", fight(1, outcome=Outcome.FELL), -1.0),
        ("end", fight(1), 0.0),
        ("roll", fight(1, animation=21), -1.0),
        ("roll", fight(6, animation=22), -1.0),
        ("roll", fight(1, animation=20), 0.0),
        ("roll", fight(1, animation=-1), 0.0),
        ("step", fight(1), -1.0),
        ("step", fight(7), -7.0),
        ("far", fight(1, away_m=4.0), 0.0),
        ("far", fight(1, away_m=7.0), -0.5),
        ("far", fight(5, away_m=7.0), -2.5),
        ("far", fight(1, away_m=10.0), -1.0),
        ("far", fight(1, away_m=25.0), -1.0),
    ],
)
def test_value_of_one_step(spec, name, record, value):
    assert values_of(spec, name, fight(), record) == pytest.approx([value])


@pytest.mark.parametrize(
    ("metres", "values"),
    [
        ((10.0, 8.5, 9.0), [1.5, -0.5]),
        ((10.0, 5.0, 2.0, 3.0), [5.0, 1.0, 0.0]),
        ((2.0, 6.0, 2.0), [-2.0, 2.0]),
    ],
)
def test_closing_counts_beyond_four_metres_and_adds_up_to_nothing_on_a_round_trip(spec, metres, values):
    assert values_of(spec, "closing", *(fight(away_m=away_m) for away_m in metres)) == pytest.approx(values)


def test_centre_pulls_while_the_fight_runs(spec):
    start, nearer = fight(from_centre_m=8.0), fight(from_centre_m=7.5)
    won = fight(from_centre_m=7.0, outcome=Outcome.WON)
    assert values_of(spec, "centre", start, nearer, won) == pytest.approx([0.5, 0.0])
    assert values_of(spec, "centre", fight(from_centre_m=5.0), fight(from_centre_m=3.9)) == [0.0]


def test_a_row_of_hits_grows_to_one_and_a_hit_taken_ends_it(spec):
    hit, none = fight(landed=3, dealt=50.0), fight()
    assert values_of(spec, "combo", none, *[hit] * 12) == pytest.approx([0.1 * k for k in range(1, 11)] + [1.0, 1.0])
    assert values_of(spec, "combo", none, hit, none, hit) == pytest.approx([0.1, 0.0, 0.2])
    assert values_of(spec, "combo", none, hit, hit, fight(taken=10.0), hit) == pytest.approx([0.1, 0.2, 0.0, 0.1])
    assert values_of(spec, "combo", none, hit, fight(landed=3, taken=10.0), hit) == pytest.approx([0.1, 0.0, 0.1])


def test_only_the_first_hit_of_a_fight_costs(spec):
    assert values_of(spec, "first_hit", fight(), fight(), fight(taken=9.0), fight(taken=9.0)) == [0.0, -1.0, 0.0]
    assert values_of(spec, "first_hit", fight(before=9.0), fight(taken=9.0, before=9.0)) == [0.0]


def test_a_new_beginning_forgets_the_fights_of_its_mask_only(spec):
    reward = reward_of(spec, 2, step=1.0, combo=1.0, first_hit=1.0)
    reward.begin(np.concatenate([fight(), fight()]), np.ones(2, np.bool_))
    reward.of(np.concatenate([fight(5, taken=1.0), fight(5, taken=1.0)]))
    reward.of(np.concatenate([fight(6, landed=1), fight(6, landed=1)]))
    reward.begin(np.concatenate([fight(), fight()]), np.array([False, True]))
    hit = reward.of(np.concatenate([fight(8, landed=1), fight(2, landed=1)]))[1]
    assert hit == pytest.approx(np.array([[-2.0, 0.2, 0.0], [-2.0, 0.1, 0.0]]))
    taken = reward.of(np.concatenate([fight(9, taken=1.0), fight(3, taken=1.0)]))[1]
    assert taken == pytest.approx(np.array([[-1.0, 0.0, 0.0], [-1.0, 0.0, -1.0]]))


def test_every_term_has_its_own_column(spec):
    reward = reward_of(spec, **dict.fromkeys(TERMS, 1.0))
    reward.begin(fight(away_m=11.0, from_centre_m=9.0), ALONE)
    record = fight(
        3, away_m=10.0, from_centre_m=8.0, dealt=50.0, taken=100.0, landed=2, animation=21, outcome=Outcome.RUNNING
    )
    rewards, terms = reward.of(record)
    assert reward.names == tuple(TERMS)
    assert dict(zip(reward.names, terms[0].tolist(), strict=True)) == pytest.approx(
        {
            "dealt": 0.05, "taken": -0.25, "win": 0.0, "death": 0.0, "end": 0.0, "closing": 1.0, "far": -3.0,
            "centre": 1.0, "roll": -1.0, "step": -3.0, "combo": 0.0, "first_hit": -1.0,
        }
    )  # fmt: skip
    assert rewards[0] == pytest.approx(terms.sum())


def test_rolls_are_the_animations_that_the_players_file_names(spec):
    roll = replace(spec.player.roll, animations=("Idle", "Move"))
    other = replace(spec, player=replace(spec.player, roll=roll))
    assert values_of(other, "roll", fight(), fight(animation=IDLE)) == [-1.0]
    assert values_of(other, "roll", fight(), fight(animation=21)) == [0.0]


def test_the_middle_is_that_of_the_arena(spec):
    other = replace(spec, arena=replace(spec.arena, centre_m=(CENTRE[0], CENTRE[1] + 30.0)))
    pulled = values_of(other, "centre", fight(from_centre_m=40.0), fight())
    assert pulled == pytest.approx([20.0])


def test_every_term_is_a_file_of_its_own():
    folder = Path(terms.__file__).parent
    assert {file.stem for file in folder.glob("*.py")} == {*TERMS, "__init__"}
