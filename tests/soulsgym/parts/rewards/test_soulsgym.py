"""The reward of SoulsGym as its environments show it, against its formula."""

import numpy as np
import pytest

from soulsgym.parts.rewards import SOULSGYM, make_reward
from soulsgym.state import FIGHT, Outcome

CENTRE = (139.0, 596.0)
"""Of the arena of Iudex."""
ALONE = np.ones(1, np.bool_)


def fight(distance_m, *, dealt=0.0, taken=0.0, outcome=Outcome.RUNNING):
    """A record with the player east of the centre."""
    record = np.zeros(1, FIGHT)
    record["player_pose"][0] = (CENTRE[0] + distance_m, CENTRE[1], -69.0, 0.0)
    record["player_max_hp"], record["boss_max_hp"] = 454, 1037
    record["damage_dealt"], record["damage_taken"], record["outcome"] = dealt, taken, outcome
    return record


def reward_of(spec, before, after):
    reward = make_reward(SOULSGYM, 1, spec)
    reward.begin(before, ALONE)
    rewards, terms = reward.of(after)
    return float(rewards[0]), dict(zip(reward.names, terms[0].tolist(), strict=True))


def test_damage_counts_by_its_share(spec):
    reward, terms = reward_of(spec, fight(2.0), fight(2.0, dealt=52.0, taken=119.0))
    assert terms == pytest.approx({"dealt": 52 / 1037, "taken": -119 / 454, "end": 0.0, "centre": 0.0})
    assert reward == pytest.approx(52 / 1037 - 119 / 454)


@pytest.mark.parametrize(
    ("before_m", "after_m", "pull"),
    [(8.0, 7.5, 0.005), (7.5, 8.0, -0.005), (6.0, 6.0, 0.0), (4.5, 3.9, 0.0), (3.0, 5.0, -0.02)],
)
def test_the_middle_pulls_beyond_four_metres(spec, before_m, after_m, pull):
    reward, terms = reward_of(spec, fight(before_m), fight(after_m))
    assert terms["centre"] == pytest.approx(pull, abs=1e-6)
    assert reward == pytest.approx(pull, abs=1e-6)


@pytest.mark.parametrize(
    ("outcome", "end"), [(Outcome.WON, 0.1), (Outcome.DIED, -0.1), (Outcome.FELL, -0.1), (Outcome.RUNNING, 0.0)]
)
def test_the_end_counts_and_then_nothing_pulls(spec, outcome, end):
    _, terms = reward_of(spec, fight(8.0), fight(6.0, outcome=outcome))
    assert terms["end"] == end
    assert terms["centre"] == pytest.approx(0.0 if outcome else 0.02, abs=1e-6)


def test_falling_in_full_health_costs_1_1(spec):
    reward, _ = reward_of(spec, fight(20.0), fight(21.0, taken=454.0, outcome=Outcome.FELL))
    assert reward == pytest.approx(-1.1)


def test_the_distance_is_from_the_step_before(spec):
    reward = make_reward(SOULSGYM, 1, spec)
    reward.begin(fight(10.0), ALONE)
    assert reward.of(fight(9.0))[0][0] == pytest.approx(0.01, abs=1e-6)
    assert reward.of(fight(9.5))[0][0] == pytest.approx(-0.005, abs=1e-6)
    reward.begin(fight(20.0), ALONE)
    assert reward.of(fight(19.0))[0][0] == pytest.approx(0.01, abs=1e-6)


def test_winning_and_dying_are_one_term(spec):
    assert make_reward(SOULSGYM, 1, spec).names == ("dealt", "taken", "end", "centre")


def test_every_fight_has_its_own_row(spec):
    both = np.concatenate([fight(8.0), fight(9.0)])
    after = np.concatenate([fight(7.0), fight(9.0, dealt=1037.0, outcome=Outcome.WON)])
    reward = make_reward(SOULSGYM, 2, spec)
    reward.begin(both, np.ones(2, np.bool_))
    rewards, terms = reward.of(after)
    assert rewards == pytest.approx([0.01, 1.1], abs=1e-6)
    assert terms.sum(axis=1) == pytest.approx(rewards)


def test_a_beginning_is_noted_for_its_fights_only(spec):
    reward = make_reward(SOULSGYM, 2, spec)
    reward.begin(np.concatenate([fight(8.0), fight(9.0)]), np.ones(2, np.bool_))
    reward.begin(np.concatenate([fight(20.0), fight(20.0)]), np.array([False, True]))
    rewards, _ = reward.of(np.concatenate([fight(7.0), fight(18.0)]))
    assert rewards == pytest.approx([0.01, 0.02], abs=1e-6)
