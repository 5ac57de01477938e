"""What a blow costs: the formula, the damages of the recording, and what the files may say about it."""

import pytest

from soulsgym.spec.damage import Defence, Power, damage_of, share_through

BOSS, PLAYER = "bosses/iudex.toml", "characters/knight.toml"
SWEEP, STRIKE, STAB = "move.swing.hit.sweep", "move.light_1.strike.blade", "move.throw.throw.stab"
KNIGHT = Defence(89.5, {"standard": 0.721, "strike": 0.762, "thrust": 0.734})
IUDEX = Defence(100.0, {"standard": 0.85, "strike": 0.88, "slash": 0.82, "thrust": 0.84})
LONGSWORD = 124.8


# ---------------------------------------------------------------- the formula


@pytest.mark.parametrize(
    ("ratio", "share"),
    [
        # Worked by hand, a value in the middle and at both ends of every branch.
        (0.0, 0.1),
        (0.05, 0.1),
        (0.125, 0.1),
        (0.5625, 0.175),  # 19.2 / 49 * (7/16)^2 = 0.075
        (1.0, 0.4),
        (1.75, 0.625),  # 0.4 / 3 * 0.75^2 = 0.075
        (2.5, 0.7),
        (5.25, 0.85),  # 0.8 / 121 * 2.75^2 = 0.05
        (8.0, 0.9),
        (50.0, 0.9),
    ],
)
def test_the_share_that_gets_through(ratio, share):
    assert share_through(ratio) == pytest.approx(share, abs=1e-12)


@pytest.mark.parametrize("seam", [0.125, 1.0, 2.5, 8.0])
def test_branches_meet_at_their_seams(seam):
    below, above = share_through(seam - 1e-9), share_through(seam + 1e-9)
    assert below == pytest.approx(above, abs=1e-8)


def test_a_stronger_blow_never_does_less():
    ratios = [0.01 * step for step in range(1, 1200)]
    damages = [ratio * share_through(ratio) for ratio in ratios]
    assert damages == sorted(damages)


@pytest.mark.parametrize(
    ("attack", "kind", "exact", "recorded"),
    [
        # The attack values are those of the game's parameter tables, the damages those of the recording.
        (237.0, "standard", 121.4, 121),  # 3004, sweep
        (123.0, "strike", 49.8, 50),  # 3005, bash
        (276.0, "thrust", 149.9, 150),  # 3002, leap
        (230.0, "thrust", 119.0, 119),  # 3012, thrust
        (314.0, "standard", 173.5, 174),  # the throw
    ],
)
def test_recorded_damages_come_out(attack, kind, exact, recorded):
    damage = damage_of(Power(attack, kind), KNIGHT)
    assert damage == pytest.approx(exact, abs=0.06)
    assert round(damage) == recorded


@pytest.mark.parametrize(
    ("motion_value", "kind", "exact", "shown"),
    [
        # R1 is recorded; the others follow from the game's parameter tables.
        (1.0, "standard", 52.1, 52),  # R1
        (1.12, "standard", 63.9, 64),  # R2
        (0.8, "thrust", 33.5, 33),  # roll attack: 33.45
        (2.1, "thrust", 156.0, 156),  # each of the two blows of a riposte
    ],
)
def test_damages_of_the_player(motion_value, kind, exact, shown):
    damage = damage_of(Power(LONGSWORD * motion_value, kind), IUDEX)
    assert damage == pytest.approx(exact, abs=0.06)
    assert round(damage) == shown


def test_a_partial_parry_lets_eight_tenths_through():
    # Recorded: 108, from the slam of 257.
    assert round(0.8 * damage_of(Power(257.0, "standard"), KNIGHT)) == 108


def test_plain_damage_stays_as_it_is():
    assert damage_of(Power(damage=110.0), KNIGHT) == 110.0
    assert damage_of(Power(damage=0.0), KNIGHT) == 0.0


# ---------------------------------------------------------------- in the shipped files


def test_shipped_defences_are_those_of_the_recording(spec):
    assert spec.player.defence == KNIGHT
    assert spec.boss.defence == IUDEX
    assert spec.player.attack == LONGSWORD


@pytest.mark.parametrize(
    ("move", "damages"),
    [
        # Derived from the attack values of the game's parameter tables.
        ("dash", [135]),
        ("swing", [121]),
        ("leap", [150]),
        ("punch", [54]),
        ("sweep", [121]),
        ("bash", [50]),
        ("delayed_thrust", [150]),
        ("chop", [121]),
        ("ground_stab", [69, 69]),
        ("back_swing", [113]),
        ("thrust", [119]),
        ("second_thrust", [106]),
        ("slam", [135]),
        ("transform", [59]),
        ("beast_thrust", [133]),
        ("beast_uppercut", [113]),
        ("beast_arm_sweep", [146]),
        ("beast_arm_slam", [160]),
        ("beast_leap", [154, 13]),
        ("beast_wide_sweep", [146]),
        ("beast_quake", [151]),
        ("beast_tail", [59]),
        ("beast_far_sweep", [121, 13]),
        ("beast_swat", [81]),
        ("beast_head_slam", [160, 115]),
    ],
)
def test_damages_of_the_shipped_blows(spec, move, damages):
    hits = spec.boss.moves[spec.boss.move_index(move)].hits
    # Those were worked out with rounded attack values: they are good to one point.
    assert [damage_of(hit.power, KNIGHT) for hit in hits] == pytest.approx(damages, abs=1.0)


@pytest.mark.parametrize(("move", "damages"), [("throw", [174]), ("beast_throw", [60, 35, 35, 82])])
def test_damages_of_the_shipped_throws(spec, move, damages):
    throws = spec.boss.moves[spec.boss.move_index(move)].throws
    assert [round(damage_of(throw.power, KNIGHT)) for throw in throws] == damages


# ---------------------------------------------------------------- what the files may say


def _with_damage(data, file, blow, removed):
    for key in removed:
        data.remove(file, f"{blow}.{key}")
    data.set(file, f"{blow}.damage", 77.0)
    data.set(file, f"{blow}.source", "guess")


def test_a_blow_may_have_plain_damage(data):
    _with_damage(data, BOSS, SWEEP, ("attack", "attack_type"))
    boss = data.load().boss
    [hit] = boss.moves[boss.move_index("swing")].hits
    assert hit.power == Power(damage=77.0)
    assert boss.sources[f"{SWEEP}.damage"] == "guess"


def test_a_throw_may_have_plain_damage(data):
    _with_damage(data, BOSS, STAB, ("attack", "attack_type"))
    boss = data.load().boss
    [throw] = boss.moves[boss.move_index("throw")].throws
    assert throw.power == Power(damage=77.0)


def test_a_strike_may_have_plain_damage(data):
    _with_damage(data, PLAYER, STRIKE, ("motion_value", "attack_type"))
    [strike] = next(move for move in data.load().player.moves if move.name == "light_1").strikes
    assert strike.power == Power(damage=77.0)


@pytest.mark.parametrize(
    ("file", "blow", "key", "value"),
    [
        (BOSS, SWEEP, "attack", 237.0),
        (BOSS, STAB, "attack", 314.0),
        (PLAYER, STRIKE, "motion_value", 1.0),
    ],
)
def test_attack_and_damage_together(data, file, blow, key, value):
    data.set(file, f"{blow}.damage", 77.0)
    data.set(file, f"{blow}.source", "guess")
    error = data.refusal()
    assert (error.key, error.value) == (f"{blow}.{key}", value)
    assert error.reason == "stands beside damage; give one of them"


@pytest.mark.parametrize(
    ("file", "blow", "key"), [(BOSS, SWEEP, "attack"), (BOSS, STAB, "attack"), (PLAYER, STRIKE, "motion_value")]
)
def test_neither_attack_nor_damage(data, file, blow, key):
    data.remove(file, f"{blow}.{key}")
    error = data.refusal()
    assert (error.key, error.value) == (f"{blow}.{key}", None)
    assert error.reason == f"is missing; give {key} and attack_type, or damage"


@pytest.mark.parametrize(("file", "blow"), [(BOSS, SWEEP), (BOSS, STAB), (PLAYER, STRIKE)])
def test_attack_without_a_type(data, file, blow):
    data.remove(file, f"{blow}.attack_type")
    error = data.refusal()
    assert (error.key, error.value, error.reason) == (f"{blow}.attack_type", None, "is missing; give a string")


@pytest.mark.parametrize(
    ("file", "key", "value", "reason"),
    [
        (BOSS, f"{SWEEP}.attack", 0.5, "must be at least 1"),
        (BOSS, f"{SWEEP}.attack", "hard", "must be a finite number"),
        (BOSS, f"{SWEEP}.attack_type", "strik", "is not known, did you mean 'strike'?"),
        (BOSS, f"{SWEEP}.attack_type", "fire", "is not known; known are slash, standard, strike, thrust"),
        (BOSS, f"{STAB}.attack", 0.0, "must be at least 1"),
        (BOSS, "move.grab.hit.hand.damage", -1.0, "must be at least 0"),
        (BOSS, "defence.physical", 0.0, "must be at least 1"),
        (BOSS, "defence.absorption", 0.85, "must be a table"),
        (BOSS, "defence.absorption.thrust", -0.1, "must be at least 0"),
        (BOSS, "defence.absorption.thrust", 11.0, "must be at most 10"),
        (PLAYER, "defence.physical", 0.0, "must be at least 1"),
        (PLAYER, "weapon.attack", 0.0, "must be at least 1"),
        (PLAYER, f"{STRIKE}.motion_value", 0.0, "must be at least 0.01"),
        (PLAYER, f"{STRIKE}.motion_value", 101.0, "must be at most 100"),
        (PLAYER, f"{STRIKE}.attack_type", "cut", "is not known; known are slash, standard, strike, thrust"),
    ],
)
def test_bad_value(data, file, key, value, reason):
    data.set(file, key, value)
    error = data.refusal()
    assert error.file.endswith(file)
    assert (error.key, error.value, error.reason) == (key, value, reason)


@pytest.mark.parametrize("file", [BOSS, PLAYER])
def test_absorption_of_an_unknown_type(data, file):
    data.set(file, "defence.absorption.fire", 0.5)
    error = data.refusal()
    assert error.file.endswith(file)
    assert (error.key, error.value) == ("defence.absorption.fire", "fire")
    assert error.reason == "is not a type of attack; known are standard, strike, slash, thrust"


@pytest.mark.parametrize("file", [BOSS, PLAYER])
@pytest.mark.parametrize("kind", ["standard", "thrust"])
def test_type_of_a_blow_without_absorption(data, file, kind):
    data.remove(file, f"defence.absorption.{kind}")
    error = data.refusal()
    assert error.file.endswith(file)
    assert (error.key, error.value) == (f"defence.absorption.{kind}", None)
    assert error.reason == "is missing; a blow of the fight is of this type"


def test_type_that_only_a_throw_has_needs_absorption_too(data):
    data.set(BOSS, f"{STAB}.attack_type", "slash")
    error = data.refusal()
    assert error.file.endswith(PLAYER)
    assert error.key == "defence.absorption.slash"


def test_absorption_that_no_blow_needs_may_be_left_out(data):
    data.remove(BOSS, "defence.absorption.slash")
    assert "slash" not in data.load().boss.defence.absorption


@pytest.mark.parametrize("file", [BOSS, PLAYER])
def test_defence_is_needed_and_says_where_it_comes_from(data, file):
    data.remove(file, "defence.source")
    assert data.refusal().reason == "has no source; give one of measured, derived, public, guess"
    data.remove(file, "defence")
    error = data.refusal()
    assert (error.key, error.reason) == ("defence", "is missing; give a table")


def test_weapon_is_needed(data):
    data.remove(PLAYER, "weapon")
    error = data.refusal()
    assert (error.key, error.reason) == ("weapon", "is missing; give a table")
