"""What builds up in the player, as Vordt's frost does: when it breaks out, what it does, and when it is over."""

import pytest

from soulsgym.spec import load_fight

HALL = (27.5, 19.5, 0.0)
ROLL_FORWARD, PARRY = 8, 18


@pytest.fixture(scope="module")
def vordt():
    return load_fight("vordt")


@pytest.fixture(scope="module")
def first_phase(new_duel, vordt):
    return new_duel(vordt)


@pytest.fixture
def frosty(first_phase):
    return first_phase.begin(boss=HALL, away_m=4.5)


def struck(duel, move="slam"):
    """Let the boss's move hit a player who stands before him; the damage."""
    hp = float(duel.hidden["player_hp"])
    move_s = duel.spec.boss.moves[duel.spec.boss.move_index(move)].hits[0].from_s
    duel.place_player(4.5)
    duel.force(move, move_s - 0.02)
    duel.until(lambda record: record["hit_by"] >= 0, at_most=5)
    duel.still = True
    return hp - float(duel.hidden["player_hp"])


def test_blows_build_it_up_and_the_third_breaks_out(frosty):
    frosty.engine.hidden["player_hp"] = 483.0
    assert struck(frosty) == 156.0
    assert frosty.hidden["status_points"][0] == pytest.approx(90.0, abs=0.5)
    frosty.engine.hidden["player_hp"] = 483.0
    assert struck(frosty) == 156.0
    assert frosty.hidden["status_left_s"][0] == 0.0
    frosty.engine.hidden["player_hp"] = 483.0
    assert struck(frosty) == 156.0 + 48.0  # a tenth of 483
    assert frosty.hidden["status_points"][0] == 0.0
    assert frosty.hidden["status_left_s"][0] > 13.4


def test_who_has_it_takes_more_and_nothing_builds_up(frosty):
    frosty.hidden["status_left_s"][0] = 5.0
    assert struck(frosty) == round(156.2 * 1.07)
    assert frosty.hidden["status_points"][0] == 0.0


def test_it_takes_from_the_recovery_of_stamina(frosty):
    gained = []
    for left_s in (0.0, 5.0):
        frosty.begin(boss=HALL, away_m=20.0, player_sp=10.0)
        frosty.hidden["status_left_s"][0] = left_s
        gained.append(float(frosty.play(rest=10)[-1]["player_sp"][0]) - 10.0)
    assert gained == [pytest.approx(45.0, abs=1.5), pytest.approx(30.0, abs=1.5)]


def test_it_passes_and_what_was_built_up_goes_down(frosty):
    frosty.begin(boss=HALL, away_m=20.0)
    frosty.hidden["status_left_s"][0], frosty.hidden["status_points"][0] = 0.5, 10.0
    frosty.play(rest=10)
    assert frosty.hidden["status_left_s"][0] == 0.0
    assert frosty.hidden["status_points"][0] == pytest.approx(8.0, abs=0.1)


def test_near_a_boss_with_an_aura_it_builds_up(frosty):
    for phase, away_m, points in ((2, 4.0, 6.0), (2, 8.0, 0.0), (1, 4.0, 0.0)):
        frosty.begin(boss=HALL, away_m=away_m, phase=phase)
        frosty.play(rest=10)
        assert frosty.hidden["status_points"][0] == pytest.approx(points, abs=0.2)


def test_a_new_fight_begins_without_it(frosty):
    frosty.hidden["status_left_s"][0], frosty.hidden["status_points"][0] = 5.0, 100.0
    frosty.begin(boss=HALL)
    assert frosty.hidden["status_left_s"][0] == frosty.hidden["status_points"][0] == 0.0


def test_nobody_else_has_any(new_duel, spec):
    duel = new_duel(spec).begin()
    assert duel.engine.tables[0]["constants"]["status_count"] == 0


def test_the_player_s_blows_reach_a_bulky_boss_from_farther_away(vordt, spec, first_phase, duel):
    reach = {
        name: float(one.engine.tables[0]["strikes"]["reach_m"][0]) for name, one in (("v", first_phase), ("i", duel))
    }
    assert reach == {"v": pytest.approx(3.5), "i": pytest.approx(2.3)}


def test_the_charges_wait_together(vordt):
    """Both rules of the charges have one timer: after one of them neither fits for 47 s of the game."""
    timers = [rule.timer for rule in vordt.boss.phases[1].rules]
    assert timers[:3] == ["charges", "charges", ""]


def test_an_act_may_begin_with_a_move_of_another_name(first_phase, vordt):
    acts = first_phase.engine.tables[0]["acts"]
    row = first_phase.act_row("uppercut_after_hop")
    assert vordt.boss.moves[acts[row]["move"]].name == "uppercut"
    assert acts[row]["run_approach_m"] == 15.2
