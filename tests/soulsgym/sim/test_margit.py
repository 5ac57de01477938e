"""Margit of Elden Ring: what the recordings say of him is what the simulator plays."""

import math

import numpy as np
import pytest

from soulsgym.actions import ACTION_CONTROLS, ACTION_NAMES
from soulsgym.engine import standard_starts
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import load_fight

FORWARD, ROLL_FORWARD, ROLL_BACK, LIGHT = 0, 8, 12, 16
PARRY = ACTION_NAMES.index("parry")
TICK_S = 1.0 / 60.0
FAR_HITS_M = {
    "cane_swing": 5.0, "cane_return": 2.2, "dagger_slash": 2.8, "cane_cut": 1.8, "cane_sweep": 5.3, "cane_late": 5.5,
    "cane_slam": 2.6, "cane_jab": 3.8, "jab_slam": 2.7, "dagger_pair": 3.8, "dagger_slam": 4.1, "dash_swing": 2.7,
    "held_smash": 5.0, "high_leap": 6.3, "tail_sweep": 2.9, "swing_back": 5.5, "running_leap": 1.3,
    "dagger_punish": 2.1, "pair_punish": 3.3,
}  # fmt: skip
"""The largest distances at which somebody was hit: no reach can be less."""


@pytest.fixture(scope="module")
def margit(new_duel):
    return new_duel(load_fight("margit"))


def begin(duel, **keys):
    return duel.begin(boss=(-17.0, 8.0, 0.0), **keys)


def test_he_is_of_another_title(margit):
    spec = margit.spec
    assert (spec.title.id, spec.boss.hp, spec.player.hp, spec.player.sp) == ("eldenring", 4174, 800, 110)
    assert len(spec.boss.phases) == 2


def test_the_player_runs_and_rolls_as_recorded(margit, steps_of):
    start = begin(margit, away_m=20.0).now
    running = steps_of(margit.play(*[FORWARD] * 12), start)
    assert np.hypot(*running[4:].T) == pytest.approx([0.393] * 8, abs=1e-4)
    before = begin(margit, away_m=20.0).now
    rolled = steps_of(margit.play(ROLL_BACK, rest=8), before)
    assert np.hypot(*rolled.sum(axis=0)) == pytest.approx(3.8, abs=0.1)


@pytest.mark.parametrize(
    ("move", "hit_s", "damage"),
    [
        ("cane_swing", 1.27, 167),
        ("cane_sweep", 1.49, 167),
        ("cane_jab", 0.74, 110),
        ("dagger_pair", 0.91, 41),
        ("dagger_leap_back", 0.76, 41),
        ("swing_back", 0.91, 138),
        ("held_smash", 1.36, 279),
        ("pair_punish", 0.36, 80),
    ],
)
def test_blows_come_at_their_recorded_time_with_their_damage(margit, move, hit_s, damage):
    begin(margit, away_m=1.36).force(move)
    record = margit.until(lambda record: record["damage_taken"] > 0.0, at_most=30)
    assert record["damage_taken"] == damage
    assert record["step"] * 0.1 == pytest.approx(hit_s + 0.05, abs=0.08)


@pytest.mark.parametrize("before_s", [0.03, 0.1, 0.2, 0.3, 0.4])
def test_a_roll_up_to_0_4_s_before_a_blow_avoids_it(margit, before_s):
    # The press arrives a tick late.
    begin(margit, away_m=1.36).force("cane_swing", 1.27 - before_s - 1.0 / 60.0)
    assert not (margit.play(ROLL_FORWARD, rest=4)["damage_taken"] > 0.0).any()


def test_the_raised_cane_waits_for_the_player(margit):
    begin(margit, away_m=3.0).force("cane_raised", 1.2)
    margit.place_player(3.0, 180.0)
    assert margit.boss_move(margit.play(rest=12)[-1]) == "cane_raised"
    margit.place_player(3.0, 0.0)
    assert margit.boss_move(margit.step()) == "held_smash"


def test_he_leaps_back_and_throws(margit):
    begin(margit, away_m=1.4).force("dagger_leap_back", 0.9, blows=False)
    margit.hidden["hits_landed"] = 0b011
    records = margit.play(rest=26)
    away_m = np.hypot(*(records["player_pose"] - records["boss_pose"])[:, :2].T)
    assert away_m.max() > 8.0
    struck = records[records["damage_taken"] > 0.0]
    assert struck["damage_taken"].tolist() == [68.0]
    assert margit.spec.boss.moves[struck["hit_by"][0]].name == "dagger_leap_back"


def test_blows_reach_as_far_as_somebody_was_hit(margit):
    reach = {move.name: max((hit.reach_m for hit in move.hits), default=0.0) for move in margit.spec.boss.moves}
    assert {name: reach[name] for name, far_m in FAR_HITS_M.items() if reach[name] < far_m} == {}


@pytest.mark.parametrize(("from_s", "away_m", "hit_s"), [(0.0, 6.5, 0.95), (1.0, 15.0, 2.02)])
def test_thrown_daggers_arrive_when_they_did(margit, from_s, away_m, hit_s):
    # The medians of the distances and times of the hits by the first and by the second dagger.
    begin(margit, away_m=away_m).force("dagger_throw", from_s)
    margit.hidden["hits_landed"] = int(from_s > 0.0)
    record = margit.until(lambda record: record["damage_taken"] > 0.0, at_most=20)
    assert from_s + record["step"] * 0.1 == pytest.approx(hit_s + 0.05, abs=0.15)


def test_the_second_parry_opens_him(margit):
    assert margit.spec.boss.parries == 2
    for before, (move, after) in enumerate([("cane_jab", 1), ("cane_jab", 0)]):
        begin(margit, away_m=1.5).force("cane_jab", 0.74 - 14.5 * TICK_S)
        margit.hidden["parries"] = before
        margit.place_player(1.5)
        records = margit.play(PARRY, rest=5)
        assert records["damage_taken"].sum() == 0.0
        assert margit.hidden["parries"] == after
        assert margit.boss_move(records[-1]) == (move if after else "parried")


def test_both_edges_of_one_slash_are_one_parry(margit):
    begin(margit, away_m=1.84).force("dagger_slash", 0.68 - 14.5 * TICK_S)
    margit.place_player(1.84)
    assert margit.play(PARRY, rest=4)["damage_taken"].sum() == 0.0
    assert margit.hidden["parries"] == 1


def test_slams_leaps_and_what_is_thrown_cannot_be_parried(margit):
    parried = {move.name for move in margit.spec.boss.moves for hit in move.hits if hit.parriable}
    assert {"cane_swing", "dagger_pair", "swing_back"} <= parried
    assert not parried & {"cane_slam", "high_leap", "running_leap", "tail_sweep", "dagger_throw", "hammer_leap"}


def test_the_high_leap_does_not_come_again_within_40_s():
    spec = load_fight("margit")
    n, steps = 32, 900
    engine = SimEngine(spec, n)
    engine.reset(np.ones(n, np.bool_), standard_starts(n), np.arange(n, dtype=np.uint64))
    leap = spec.boss.move_index("high_leap")
    began = [[] for _ in range(n)]
    for step in range(steps):
        engine.hidden["player_hp"] = spec.player.hp
        before = engine.fights["boss_move"].copy()
        engine.step(np.full(n, ACTION_CONTROLS[FORWARD]))
        for fight in np.flatnonzero((engine.fights["boss_move"] == leap) & (before != leap)):
            began[fight].append(step)
    gaps = [gap for steps in began for gap in np.diff(steps)]
    assert min(gaps) >= 395
    assert any(began)


def test_the_second_phase_begins_at_its_share_of_his_health(new_duel):
    duel = new_duel(load_fight("margit"), changes=True)
    begin(duel, away_m=3.0, still=False)
    duel.hidden["boss_hp"] = 0.6 * 4174
    duel.until(lambda record: record["phase"] == 2, at_most=200)


def test_what_nobody_recorded_is_called_a_guess():
    sources = load_fight("margit").boss.sources
    assert sources["move.cane_swing.hit.cane.from_s"] == "measured"
    assert sources["move.cane_swing.hit.cane.arc_deg"] == "guess"
    assert {sources[f"move.hammer_leap.{key}"] for key in ("end_s", "hit.hammer.from_s", "track.aim.to_s")} == {"guess"}
    assert sources["phase.1.rule[0].weights"] == "public"
    assert sources["move.dash_swing.end_s"] == "guess"  # a slam always followed
    assert (sources["opened.parries"], sources["opened.riposte_within_m"]) == ("public", "guess")


def test_all_his_numbers_are_finite():
    spec = load_fight("margit")
    assert all(math.isfinite(hit.reach_m) for move in spec.boss.moves for hit in move.hits)
