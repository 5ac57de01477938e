"""The fight is hard but fair: who wins it, who does not, and that it is the same every time."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from soulsgym.errors import MisuseError
from soulsgym.players import make_player, run_fights
from soulsgym.spec import load_fight
from soulsgym.state import Outcome

FIGHTS = 400
IUDEX = load_fight("iudex")


@cache
def results(name, variant="standard", **options):
    player = make_player(name, IUDEX, FIGHTS, 1, **options)
    return run_fights(player, load_fight("iudex", variant), FIGHTS, 2024)


# 400 fights: a true rate of 1 % shows more than 3 % once in a thousand times, one of 50 % lies within 42 and 58 %.
@pytest.mark.parametrize(
    ("name", "most"), [("idle", 0.0), ("random", 0.0), ("attack_spam", 0.03), ("roll_spam", 0.03), ("runner", 0.03)]
)
def test_no_simple_player_wins(name, most):
    assert results(name).win_rate <= most


def test_a_random_player_lives_about_as_long_as_the_recorded_ones():
    # They died after 43 and 27 s.
    assert 20.0 <= results("random").median_survival_s <= 60.0


def test_the_duellist_wins_about_half():
    assert 0.25 <= results("duellist").win_rate <= 0.75


def test_a_tenth_of_a_second_late_loses():
    assert results("duellist", delay_s=0.1).win_rate <= results("duellist").win_rate / 2


def test_perfect_timing_wins_nearly_always():
    assert results("duellist", error_s=0.0).win_rate >= 0.8


def test_the_hard_variant_is_harder_and_can_be_won():
    assert 0.02 <= results("duellist", "hard").win_rate < results("duellist").win_rate


def test_both_phases_are_fought():
    assert (results("duellist").phase == 2).mean() > 0.8


def test_every_fight_ends_in_one_way():
    found = results("random")
    assert found.fights == FIGHTS == found.wins + found.time_outs + sum(found.deaths_by_attack.values())
    assert len(found.killed_by) == FIGHTS
    assert (found.player_hp[found.outcome == Outcome.DIED] == 0.0).all()


def test_the_same_seed_gives_the_same_fights():
    one, two, other = (run_fights(make_player("random", IUDEX, 16, 5), IUDEX, 16, seed) for seed in (7, 7, 8))
    assert np.array_equal(one.survival_s, two.survival_s)
    assert one.killed_by == two.killed_by
    assert not np.array_equal(one.survival_s, other.survival_s)


def test_a_fight_does_not_depend_on_those_beside_it():
    few, many = (run_fights(make_player("attack_spam", IUDEX, n), IUDEX, n, 3) for n in (4, 12))
    assert np.array_equal(few.survival_s, many.survival_s[:4])
    assert few.killed_by == many.killed_by[:4]


def test_threads_change_nothing():
    one, two = (run_fights(make_player("attack_spam", IUDEX, 12), IUDEX, 12, 3, threads=threads) for threads in (1, 2))
    assert np.array_equal(one.survival_s, two.survival_s)


def test_the_step_limit_is_a_time_out_and_no_win():
    found = run_fights(make_player("idle", IUDEX, 4), IUDEX, 4, step_limit=10)
    assert (found.time_outs, found.wins, found.deaths_by_attack) == (4, 0, {})
    assert found.survival_s == pytest.approx(1.0)


def test_a_step_limit_of_nothing_is_refused():
    with pytest.raises(MisuseError, match="step limit 0"):
        run_fights(make_player("idle", IUDEX, 1), IUDEX, 1, step_limit=0)
