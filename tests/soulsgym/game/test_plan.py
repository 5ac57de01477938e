"""Tests of the plans of fights in the running game."""

import shutil

import pytest

from soulsgym.errors import DataError, MisuseError
from soulsgym.game.plan import FALL_MOVE, NO_MOVE, ROLL_MOVE, known_fights, load_plan
from soulsgym.spec import load_fight
from soulsgym.spec.fight import DATA


@pytest.fixture
def own_data(tmp_path):
    """A copy of the data files, with a function that replaces text in iudex's plan."""
    data = tmp_path / "darksouls3"
    shutil.copytree(DATA, data)

    def changed(old, new):
        file = data / "fights" / "iudex.toml"
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new, 1))
        return data

    return changed


def test_the_known_fights():
    assert known_fights() == ("iudex", "vordt")


def test_an_unknown_boss_is_named_with_the_nearest_known():
    with pytest.raises(MisuseError, match=r"'vord' is not known.*did you mean 'vordt'"):
        load_plan("vord")


def test_iudex_agrees_with_the_simulator():
    plan, spec = load_plan("iudex"), load_fight("iudex")
    assert (plan.player_hp, plan.player_sp, plan.boss_hp) == (
        spec.player.hp, spec.player.sp, spec.boss.hp,
    )  # fmt: skip
    assert plan.player_sp_floor == spec.player.sp_floor
    assert plan.label_s_per_step == spec.player.label_s_per_step
    assert (plan.low_m, plan.high_m, plan.centre_m) == (
        spec.arena.low_m, spec.arena.high_m, spec.arena.centre_m,
    )  # fmt: skip
    assert plan.phases == len(spec.boss.phases)
    assert plan.boss_animations == spec.boss_animations
    flat = [(x, y, heading) for x, y, _, heading in plan.player_starts]
    assert tuple(flat) == spec.arena.player_starts
    assert plan.player_start[:2] == spec.arena.player_start[:2]


def test_the_same_name_is_another_move_in_another_phase():
    plan = load_plan("iudex")
    assert plan.move_names[plan.boss_move("Attack3000", 1)] == "dash"
    assert plan.move_names[plan.boss_move("Attack3000", 2)] == "beast_thrust"
    assert plan.move_names[plan.boss_move("ThrowAtk", 1)] == "throw"
    assert plan.move_names[plan.boss_move("SABreak", 2)] == "stagger"
    assert plan.boss_move("Attack3015", 1) == NO_MOVE


def test_moves_of_the_player_by_name():
    plan, names = load_plan("iudex"), [move.name for move in load_fight("iudex").player.moves]
    assert names[plan.player_move("AttackRightLight1")] == "light_1"
    assert plan.player_move("RollingMediumSelftra") == ROLL_MOVE
    assert plan.player_move("FallLoop") == FALL_MOVE
    assert plan.player_move("Idle") == NO_MOVE


def test_vordt_has_no_spec_but_the_same_knight():
    plan = load_plan("vordt")
    assert (plan.spec, plan.move_names, plan.boss_moves) == ("", (), ())
    assert plan.boss_move("Attack3000", 1) == NO_MOVE
    assert plan.player_moves == load_plan("iudex").player_moves
    assert plan.frost
    assert len(plan.boss_animations) == 27
    assert plan.boss_animations.index("RunBattle") == 22


@pytest.mark.parametrize(
    ("boss", "animation", "rests"),
    [
        ("iudex", "WalkLeftBattle", True), ("iudex", "IdleBattle", True), ("iudex", "", True),
        ("iudex", "Attack3000", False), ("vordt", "Attack9910", True), ("vordt", "WalkFrontBattle", False),
    ],
)  # fmt: skip
def test_when_a_boss_rests(boss, animation, rests):
    assert load_plan(boss).is_resting(animation) is rests


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("hp = 454", "hp = 0", "player.hp = 0: must be at least 1"),
        ("phases = 2", "phases = 3", "boss.phases = 3: must be at most 2"),
        ("fog_view = [0.378, 0.926, 0.0]", "fog_view = [1.0, 1.0, 0.0]", "must be a unit vector; its length is 1.414"),
        ("boss_start = [141.3, 591.9, -68.8, 0.6]", "boss_start = [1.3, 591.9, -68.8, 0.6]", "must lie between"),
        ("-68.066, -2.768]\n", "-68.066, -3.768]\n", "must have a heading from -pi to pi"),
        ("-68.066, -2.768]\n", "-68.066]\n", "must be a list of 4 numbers"),
        ("luck = 7", "luk = 7", r"player.attributes.luck = None: is missing"),
        ("bonus_range_m", "bonus_range", "bonus_range_m = None: is missing"),
        ("[lock_on]", "[lock_onn]", "lock_on = None: is missing"),
        ("unseen_s = 99.0", "unseen_s = 99.0\nunseeen_s = 1.0", "did you mean 'unseen_s'"),
    ],
)  # fmt: skip
def test_wrong_data_are_refused_with_key_and_reason(own_data, old, new, message):
    with pytest.raises(DataError, match=message):
        load_plan("iudex", own_data(old, new))
