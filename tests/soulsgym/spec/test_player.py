"""What the player's file and the animation table may not say."""

import pytest

PLAYER, LABELS = "characters/knight.toml", "animations.toml"
LIGHT, BLADE, RIPOSTE = "move.light_1", "move.light_1.strike.blade", "move.riposte.strike.first"


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("name", "a string"),
        ("clock.label_s_per_step", "a number"),
        ("body.sp_per_s", "a number"),
        ("walk.full_m", "a list of numbers"),
        ("camera.view_z", "a number"),
        ("roll.left_m", "a list of numbers"),
        ("roll.animations", "a list of strings"),
        ("roll.on_heavy", "a string"),
        (f"{LIGHT}.kind", "a string"),
        (f"{LIGHT}.end_s", "a number"),
        (f"{LIGHT}.strike.blade.arc_deg", "a number"),
        (f"{LIGHT}.strike.blade.reach_m", "a number"),
        ("weapon.attack", "a number"),
        ("flinch", "a table"),
        ("fall.loop_from_s", "a number"),
    ],
)
def test_missing_key(data, key, given):
    data.remove(PLAYER, key)
    error = data.refusal()
    assert error.file.endswith("knight.toml")
    assert (error.key, error.value, error.reason) == (key, None, f"is missing; give {given}")


@pytest.mark.parametrize(
    ("key", "value", "at", "bad", "reason"),
    [
        ("body.stamina", 9.0, "body.stamina", 9.0, "is not a known key"),
        (f"{LIGHT}.spcost", 9.0, f"{LIGHT}.spcost", 9.0, "is not a known key, did you mean 'sp_cost'?"),
        (f"{LIGHT}.motion.chase_share", [0.1], f"{LIGHT}.motion.chase_share", [0.1], "is not a known key"),
        (f"{LIGHT}.motion.loop_from_s", 0.1, f"{LIGHT}.motion.loop_from_s", 0.1, "is not a known key"),
        ("clock.label_s_per_step", 0.0, "clock.label_s_per_step", 0.0, "must be at least 0.01"),
        ("body.hp", -454, "body.hp", -454, "must be at least 1"),
        ("body.sp_floor", 1.0, "body.sp_floor", 1.0, "must be at most 0"),
        ("body.input_delay_ticks", 6, "body.input_delay_ticks", 6, "must be at most 5"),
        ("walk.full_m", [0.4, 0.4, 0.4], "walk.full_m", [0.4, 0.4, 0.4], "must be a list of 4 numbers"),
        ("walk.full_m", [0.4, 0.4, -0.4, 0.4], "walk.full_m", -0.4, "must be at least 0"),
        ("walk.first_share", 1.5, "walk.first_share", 1.5, "must be at most 1"),
        ("walk.turn_rad_per_s", 100.0, "walk.turn_rad_per_s", 100.0, "must be at most 60"),
        ("camera.view_z", -2.0, "camera.view_z", -2.0, "must be at least -1"),
        ("roll.animations", ["RollingMedium"], "roll.animations", ["RollingMedium"], "must be a list of 2 strings"),
        (
            "roll.animations",
            ["Rolling", "RollingMedium"],
            "roll.animations",
            "Rolling",
            "is not known, did you mean 'RollingMedium'?",
        ),
        ("roll.invulnerable_s", [0.4, 0.2], "roll.invulnerable_s", [0.4, 0.2], "must not begin above its end"),
        ("roll.forward_m", [0.5], "roll.forward_m", [0.5], "must be as long as the other directions of the roll"),
        ("roll.on_light", "light", "roll.on_light", "light", "is a follow-up but not a move, did you mean 'light_"),
        ("roll.on_light", "", "roll.on_light", "", "is a follow-up but not a move"),
        (f"{LIGHT}.kind", "atack", f"{LIGHT}.kind", "atack", "is not known, did you mean 'attack'?"),
        (f"{LIGHT}.kind", "roll", f"{LIGHT}.kind", "roll", "must be 'attack' for this move"),
        (f"{LIGHT}.animation", "AttackLight", f"{LIGHT}.animation", "AttackLight", "is not known, did you mean"),
        (
            f"{LIGHT}.on_light",
            "light_9",
            f"{LIGHT}.on_light",
            "light_9",
            "is a follow-up but not a move, did you mean 'light_",
        ),
        (f"{LIGHT}.on_end", 3, f"{LIGHT}.on_end", 3, "must be a string"),
        (f"{LIGHT}.end_s", 61.0, f"{LIGHT}.end_s", 61.0, "must be at most 60"),
        (f"{LIGHT}.turn_s", [0.1, 9.0], f"{LIGHT}.turn_s", [0.1, 9.0], "lies past the end of the move at "),
        (f"{LIGHT}.sp_s", 9.0, f"{LIGHT}.sp_s", 9.0, "must be at most "),
        (f"{LIGHT}.knocked_down", 1, f"{LIGHT}.knocked_down", 1, "must be true or false"),
        (f"{LIGHT}.sp_s", [0.1, 9.0], f"{LIGHT}.sp_s", 9.0, "must be at most 1.2"),
        (f"{LIGHT}.sp_s", [], f"{LIGHT}.sp_s", [], "must be a list of one or more numbers"),
        (f"{LIGHT}.sp_s", [0.4, 0.2], f"{LIGHT}.sp_s", [0.4, 0.2], "must be at most 2 times in order"),
        (f"{LIGHT}.sp_s", [0.1, 0.2, 0.3], f"{LIGHT}.sp_s", [0.1, 0.2, 0.3], "must be at most 2 times in order"),
        (f"{BLADE}.to_s", 9.0, f"{BLADE}.to_s", 9.0, "and not past the move's end at "),
        (f"{BLADE}.to_s", 0.0, f"{BLADE}.to_s", 0.0, "must come after from_s = "),
        (f"{BLADE}.reach_m", -2.0, f"{BLADE}.reach_m", -2.0, "must be at least 0"),
        (f"{BLADE}.arc_deg", 190.0, f"{BLADE}.arc_deg", 190.0, "must be at most 180"),
        (f"{BLADE}.poise", -1.0, f"{BLADE}.poise", -1.0, "must be at least 0"),
        (f"{BLADE}.attack", 99.0, f"{BLADE}.attack", 99.0, "is not a known key, did you mean 'attack_type'?"),
        (f"{BLADE}.push_m", 1.0, f"{BLADE}.push_m", 1.0, "is not a known key"),
        (f"{RIPOSTE}.reach_m", 2.0, f"{RIPOSTE}.reach_m", 2.0, "means nothing for a riposte"),
        (f"{RIPOSTE}.arc_deg", 60.0, f"{RIPOSTE}.arc_deg", 60.0, "means nothing for a riposte"),
        ("move.riposte.riposte_damage", 210.0, "move.riposte.riposte_damage", 210.0, "is not a known key"),
        (f"{LIGHT}.source", "told", f"{LIGHT}.source", "told", "is not one of measured, derived, public, guess"),
        ("flinch.animations", ["Idle"], "flinch.animations", ["Idle"], "must be a list of 4 strings"),
        ("flinch.after_animation", "Idel", "flinch.after_animation", "Idel", "is not known, did you mean 'Idle'?"),
        ("fall.animations", ["FallStart"], "fall.animations", ["FallStart"], "must be a list of 2 strings"),
    ],
)
def test_bad_value(data, key, value, at, bad, reason):
    data.set(PLAYER, key, value)
    error = data.refusal()
    assert error.file.endswith("knight.toml")
    assert (error.key, error.value) == (at, bad)
    assert reason in error.reason


@pytest.mark.parametrize(
    "move", ["light_1", "heavy", "parry", "riposte", "backstep", "get_up_roll", "ThrowDef", "GuardBreakWall"]
)
def test_move_that_the_fight_needs(data, move):
    data.remove(PLAYER, f"move.{move}")
    error = data.refusal()
    assert (error.key, error.reason) == (f"move.{move}", "is missing; the rules of the fight start it")


def test_reaction_that_only_a_boss_names(data):
    data.remove(PLAYER, "move.DamagePush")
    error = data.refusal()
    assert error.file.endswith("iudex.toml")
    assert error.value == "DamagePush"


def test_blow_of_the_earlier_kind(data):
    data.set(PLAYER, f"{LIGHT}.strike", {"from_s": 0.4, "to_s": 0.5, "source": "guess"})
    error = data.refusal()
    assert (error.key, error.value, error.reason) == (f"{LIGHT}.strike.from_s", 0.4, "must be a table")


def test_stamina_is_due_at_one_time_or_at_several(spec):
    moves = {move.name: move for move in spec.player.moves}
    assert moves["light_1"].sp_s == (0.453,)
    assert moves["riposte"].sp_s == (0.808, 2.651)
    assert moves["DamageSmall"].sp_s == (0.0,)


def test_motion_without_lists(data):
    data.remove(PLAYER, f"{LIGHT}.motion.forward_m")
    assert data.refusal().reason == "is missing; give one or more of forward_m, right_m, backward_m"


@pytest.mark.parametrize(
    "key", ["clock", "body", "weapon", "defence", "walk", "camera", "roll", LIGHT, BLADE, "flinch", "fall"]
)
def test_table_without_a_source(data, key):
    data.remove(PLAYER, f"{key}.source")
    error = data.refusal()
    assert error.key.startswith(f"{key}.")
    assert "has no source" in error.reason


@pytest.mark.parametrize(
    ("key", "value", "at", "bad", "reason"),
    [
        ("bos", {}, "bos", {}, "is not a known key, did you mean 'boss'?"),
        ("source", "told", "source", "told", "is not one of measured, derived, public, guess"),
        ("player.labels", [], "player.labels", [], "is not a known key"),
        ("player.animations", 3, "player.animations", 3, "must be a list of tables"),
        ("player.animations.0.roll_s", -1, "player.animations[0].roll_s", -1, "must be at least 0"),
        ("player.animations.0.name", 7, "player.animations[0].name", 7, "must be a string"),
        (
            "player.animations.0.name",
            "Idle",
            "player.animations",
            "Idle",
            "is there twice; the position of a label is its id",
        ),
        (
            "player.animations.17.name",
            "Standing",
            "player.animations",
            None,
            "lacks 'Idle', which the rules of walking show",
        ),
        ("boss.iudex.animations", [], "boss.iudex.animations", [], "must be a list of one or more strings"),
        (
            "boss.iudex.animations.1",
            "Attack3000",
            "boss.iudex.animations",
            "Attack3000",
            "is there twice; the position of a label is its id",
        ),
        ("boss.iudex.labels", [], "boss.iudex.labels", [], "is not a known key"),
        ("player.animations.0.group", 3, "player.animations[0].group", 3, "must be"),
    ],
)
def test_bad_label_table(data, key, value, at, bad, reason):
    data.set(LABELS, key, value)
    error = data.refusal()
    assert error.file.endswith("animations.toml")
    assert (error.key, error.value) == (at, bad)
    assert reason in error.reason


def test_a_label_without_a_group_is_one_of_its_own(data):
    data.remove(LABELS, "player.animations.1.group")
    labels = data.load().player_animations
    assert [label.group for label in labels[:3]] == ["AddDamage", "", "AddDamage"]


def test_labels_of_stopping_in_another_order(data):
    rows = data.get(LABELS, "player.animations")
    names = [row["name"] for row in rows]
    back, left = names.index("RunStopBack"), names.index("RunStopLeft")
    rows[back], rows[left] = rows[left], rows[back]
    data.set(LABELS, "player.animations", rows)
    assert data.refusal().reason == "must be RunStopFront, RunStopBack, RunStopLeft, RunStopRight in a row"


def test_label_table_without_a_source(data):
    data.remove(LABELS, "source")
    assert "has no source" in data.refusal().reason


def test_boss_without_a_group_of_labels(data):
    data.set("bosses/iudex.toml", "animations", "iudx")
    error = data.refusal()
    assert error.file.endswith("iudex.toml")
    assert (error.key, error.value, error.reason) == ("animations", "iudx", "is not known, did you mean 'iudex'?")
