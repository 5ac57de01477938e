"""What a boss file may not say. Each case changes one value of the shipped file."""

import pytest

BOSS = "movesets/iudex.toml"
SWING, SWEEP = "move.swing", "move.swing.hit.sweep"
THRUST = "phase.1.act.thrust"


def _refused(data, key, value):
    data.set(BOSS, key, value)
    error = data.refusal()
    assert error.file.endswith("iudex.toml")
    return error


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("name", "a string"),
        ("animations", "a string"),
        ("arena", "a string"),
        ("body", "a table"),
        ("body.hp", "a number"),
        ("opened.riposte_arc_deg", "a number"),
        ("randomize.hit_shift_s", "a number"),
        (f"{SWING}.animation", "a string"),
        (f"{SWING}.end_s", "a number"),
        (f"{SWING}.label_end_s", "a number"),
        (f"{SWING}.motion.step_s", "a number"),
        (f"{SWING}.track.swing.deg_per_s", "a number"),
        (f"{SWEEP}.from_s", "a number"),
        (f"{SWEEP}.shape", "a string"),
        (f"{SWEEP}.arc_deg", "a list of numbers"),
        (f"{SWEEP}.damage", "a number"),
        ("move.dash.hit.thrust.half_width_m", "a number"),
        ("phase.1.change_move", "a string"),
        ("phase.1.first_approach_s", "a list of numbers"),
        ("phase.1.strafe", "a table"),
        (f"{THRUST}.cooldown_s", "a number"),
        ("phase.1.rule.0.weights", "a table"),
    ],
)
def test_missing_key(data, key, given):
    data.remove(BOSS, key)
    error = data.refusal()
    assert error.file.endswith("iudex.toml")
    assert error.key.replace("[0]", ".0") == key
    assert error.reason == f"is missing; give {given}"


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        # Keys
        ("bodi", {}, "is not a known key, did you mean 'body'?"),
        ("body.stamina", 3.0, "is not a known key; known are contact_drag, hp, poise, "),
        (f"{SWING}.lable_end_s", 1.0, "is not a known key, did you mean 'label_end_s'?"),
        (f"{SWEEP}.reech_m", 4.0, "is not a known key, did you mean 'reach_m'?"),
        (f"{SWING}.motion.backward_m", [0.1], "is not a known key, did you mean 'forward_m'?"),
        # Kinds of value
        ("name", 3, "must be a string"),
        ("animations", ["iudex"], "must be a string"),
        ("body", 3, "must be a table"),
        ("body.hp", "1037", "must be a finite number"),
        ("body.hp", True, "must be a finite number"),
        ("body.hp", float("nan"), "must be a finite number"),
        ("body.hp", float("inf"), "must be a finite number"),
        ("move", [], "must be a table of tables"),
        (SWING, "swing", "must be a table"),
        (f"{SWEEP}.sweep", "yes", "must be true or false"),
        (f"{SWEEP}.parriable", 1, "must be true or false"),
        (f"{SWEEP}.arc_deg", 90.0, "must be a list of 2 numbers"),
        (f"{SWEEP}.arc_deg", [90.0], "must be a list of 2 numbers"),
        ("phase.1.rule", {}, "must be a list of tables"),
        # Ranges
        ("body.hp", 0, "must be at least 1"),
        ("body.hp", 1e300, "must be at most 1e+06"),
        ("body.hp", 10**400, "must be at most 1e+06"),
        ("body.turn_deg_per_s", 4000.0, "must be at most 3600"),
        ("body.turn_animation_beyond_deg", 200.0, "must be at most 180"),
        ("opened.damage_taken_factor", 0.5, "must be at least 1"),
        ("randomize.timing", 1.5, "must be at most 0.9"),
        ("randomize.dropped_inputs", -0.1, "must be at least 0"),
        ("randomize.input_delay_ticks", 31, "must be at most 30"),
        (f"{SWEEP}.reach_m", -1.0, "must be at least 0"),
        (f"{SWEEP}.damage", -1.0, "must be at least 0"),
        (f"{SWING}.end_s", 61.0, "must be at most 60"),
        (f"{SWING}.track.swing.deg_per_s", -10.0, "must be at least 0"),
        ("phase.1.changes_at_hp_share", 1.5, "must be at most 1"),
        (f"{THRUST}.strafe_odds", 1.5, "must be at most 1"),
        # Words
        (f"{SWING}.kind", "atack", "is not known, did you mean 'attack'?"),
        (f"{SWING}.animation", "Attack3099", "is not known, did you mean"),
        (f"{SWEEP}.shape", "circle", "is not known; known are disc, sector, thrust"),
        (f"{SWEEP}.reaction", "DamageMidle", "is not known, did you mean 'DamageMiddle'?"),
        (f"{SWEEP}.reaction", "parry", "is not known"),
        # Sources
        ("body.source", "rumour", "is not one of measured, derived, public, guess"),
        # Shapes
        (f"{SWEEP}.offset_m", 1.0, "means nothing for a sector; only for disc"),
        (f"{SWEEP}.half_width_m", 1.0, "means nothing for a sector; only for thrust"),
        ("move.leap.hit.landing.inner_m", 1.0, "means nothing for a disc; only for sector and thrust"),
        ("move.leap.hit.landing.arc_deg", [-10.0, 10.0], "is not a known key"),
        ("move.leap.hit.landing.sweep", True, "is not a known key"),
        ("move.chop.hit.chop.arc_deg", [65.0, -65.0], "must not begin above its end unless it sweeps"),
        # Motion
        (f"{SWING}.motion.first_s", 0.0, "must be at least 0.001"),
        (f"{SWING}.motion.step_s", 0.0, "must be at least 0.01"),
        (f"{SWING}.motion.forward_m", [], "must be a list of one or more numbers"),
        ("move.leap.motion.loop_from_s", 0.1, "does not go with chase_share; a chase ends"),
        # Decisions
        ("phase.1.change_move", "transfrom", "is not known, did you mean 'transform'?"),
        ("phase.1.change_move", "swing", "is of kind 'attack'; it must be a 'transform'"),
        ("phase.2.change_move", "transform", "never happens; give changes_at_hp_share above 0"),
        ("phase.1.first_approach_s", [6.0, 4.0], "must not begin above its end"),
        ("phase.1.strafe.near_s", [3.0, 2.0], "must not begin above its end"),
    ],
)
def test_bad_value(data, key, value, reason):
    error = _refused(data, key, value)
    assert error.key == key
    assert error.value == value or value != value
    assert reason in error.reason


@pytest.mark.parametrize(
    ("key", "value", "at", "bad", "reason"),
    [
        (f"{SWING}.link_s", 59.0, f"{SWING}.link_s", 59.0, "must be at most "),
        (f"{SWING}.label_end_s", 59.0, f"{SWING}.label_end_s", 59.0, "must be at most "),
        (f"{SWEEP}.to_s", 59.0, f"{SWEEP}.to_s", 59.0, "lies past the end of the move at "),
        (f"{SWEEP}.to_s", 0.0, f"{SWEEP}.to_s", 0.0, "must come after from_s = "),
        (f"{SWEEP}.from_s", -0.1, f"{SWEEP}.from_s", -0.1, "must be at least 0"),
        (f"{SWING}.track.swing.to_s", 59.0, f"{SWING}.track.swing.to_s", 59.0, "lies past the end of the move"),
        (f"{SWEEP}.inner_m", 50.0, f"{SWEEP}.inner_m", 50.0, "must be at most"),
        ("move.throw.throw_damage_s", 59.0, "move.throw.throw_damage_s", 59.0, "must be at most "),
        (f"{SWEEP}.arc_deg", [400.0, 0.0], f"{SWEEP}.arc_deg", 400.0, "must be at most 360"),
        ("move.leap.motion.chase_share", [0.5, 1.0], "move.leap.motion.chase_share", 1.0, "at least 0 and below 1"),
        ("move.leap.motion.chase_share", [-0.1], "move.leap.motion.chase_share", -0.1, "at least 0 and below 1"),
        ("move.chop.hit.chop.arc_deg", [-200.0, 65.0], "move.chop.hit.chop.arc_deg", -200.0, "must be at least -180"),
        (
            "phase.1.source",
            {"*": "guess", "first_m": "public"},
            "phase.1.source.first_m",
            "public",
            "names no key here",
        ),
        (
            "move.grab.grab_move",
            "thow",
            "move.grab.grab_move",
            "thow",
            "is no move of kind 'attack', did you mean 'throw'?",
        ),
        ("move.grab.grab_move", "walk", "move.grab.grab_move", "walk", "is no move of kind 'attack'"),
        ("move.idle.kind", "walk", "move.idle.kind", "walk", "must be 'idle' for this move"),
        ("move.stagger.kind", "attack", "move.stagger.kind", "attack", "must be 'open' for this move"),
        (
            "phase.1.rule.0.weights",
            {"thurst": 1.0},
            "phase.1.rule[0].weights.thurst",
            "thurst",
            "is no act of this phase, did you mean 'thrust'?",
        ),
        (
            "phase.1.rule.0.weights",
            {"beast_claw": 1.0},
            "phase.1.rule[0].weights.beast_claw",
            "beast_claw",
            "is no act of this phase",
        ),
        (
            "phase.1.rule.0.weights",
            {"turn": 0.0},
            "phase.1.rule[0].weights",
            {"turn": 0.0},
            "must hold at least one weight above 0",
        ),
        ("phase.1.rule.0.weights", {"turn": -1.0}, "phase.1.rule[0].weights.turn", -1.0, "must be at least 0"),
        ("phase.1.rule.0.beyond_deg", 190.0, "phase.1.rule[0].beyond_deg", 190.0, "must be at most 180"),
        ("phase.1.rule.1.bearing_deg", [-190.0, 0.0], "phase.1.rule[1].bearing_deg", -190.0, "must be at least -180"),
        ("phase.1.rule.1.gap_m", [3.0, 0.0], "phase.1.rule[1].gap_m", [3.0, 0.0], "must not begin above its end"),
        ("phase.1.act.leep", {}, "phase.1.act.leep", "leep", "is no move of kind 'attack', did you mean 'leap'?"),
        ("phase.1.act.transform", {}, "phase.1.act.transform", "transform", "is no move of kind 'attack'"),
        (f"{THRUST}.chains.0.weight", -1.0, f"{THRUST}.chains[0].weight", -1.0, "must be at least 0"),
        (f"{THRUST}.chains", [{"weight": 0.0}], f"{THRUST}.chains", [0.0], "must hold at least one weight above 0"),
        (
            f"{THRUST}.chains.0.links.0.within_m",
            "near",
            f"{THRUST}.chains[0].links[0].within_m",
            "near",
            "must be a finite number",
        ),
    ],
)
def test_bad_value_in_its_surroundings(data, key, value, at, bad, reason):
    error = _refused(data, key, value)
    assert (error.key, error.value) == (at, bad)
    assert reason in error.reason


def test_follow_up_that_is_not_there(data):
    error = _refused(data, f"{THRUST}.chains", [{"weight": 1.0, "links": [{"move": "swng", "within_m": 8.0}]}])
    assert (error.key, error.value) == (f"{THRUST}.chains[0].links[0].move", "swng")
    assert error.reason == "is a follow-up that is no attack, did you mean 'swing'?"


def test_follow_up_of_a_move_without_a_time_for_it(data):
    links = [{"move": "slam", "within_m": 8.0}, {"move": "swing", "within_m": 8.0}]
    error = _refused(data, f"{THRUST}.chains", [{"weight": 1.0, "links": links}])
    assert (error.key, error.value) == (f"{THRUST}.chains[0].links[1].move", "swing")
    assert error.reason == "cannot follow 'slam', which has no link_s"


def test_follow_up_after_the_time_for_it_was_taken_away(data):
    data.remove(BOSS, "move.thrust.link_s")
    assert data.refusal().reason == "cannot follow 'thrust', which has no link_s"


@pytest.mark.parametrize("move", ["idle", "walk", "strafe_left", "turn_right_around", "stagger", "parried", "executed"])
def test_move_that_every_boss_needs(data, move):
    data.remove(BOSS, f"move.{move}")
    error = data.refusal()
    assert (error.key, error.value, error.reason) == (f"move.{move}", None, "is missing; every boss needs it")


def test_motion_without_lists(data):
    data.remove(BOSS, "move.punch.motion.forward_m")
    error = data.refusal()
    assert error.key == "move.punch.motion.forward_m"
    assert error.reason == "is missing; give one or more of forward_m, right_m, chase_share"


def test_loop_over_lists_of_different_length(data):
    data.set(BOSS, "move.walk.motion.right_m", [0.0])
    error = data.refusal()
    assert (error.key, error.reason) == ("move.walk.motion.loop_from_s", "needs lists of the same length")


@pytest.mark.parametrize("loop_from_s", [0.05, 0.22, 0.3])
def test_loop_that_does_not_lie_within_the_motion(data, loop_from_s):
    motion = {"first_s": 0.1, "step_s": 0.1, "forward_m": [1.0, 1.0], "loop_from_s": loop_from_s, "source": "guess"}
    error = _refused(data, "move.walk.motion", motion)
    assert (error.key, error.value) == ("move.walk.motion.loop_from_s", loop_from_s)
    assert error.reason == "must lie from first_s = 0.1 to before the motion's end at 0.2"


@pytest.mark.parametrize(("name", "reason"), [("0", "must be phase 1"), ("first", "must be phase 1")])
def test_phases_are_numbered_from_one(data, name, reason):
    phases = data.get(BOSS, "phase")
    error = _refused(data, "phase", {name: phases["1"], "2": phases["2"]})
    assert (error.key, error.value, error.reason) == (f"phase.{name}", name, reason)


def test_phase_left_out(data):
    phases = data.get(BOSS, "phase")
    assert _refused(data, "phase", {"1": phases["1"], "3": phases["2"]}).reason == "must be phase 2"


def test_no_phase(data):
    assert _refused(data, "phase", {}).reason == "is missing; a boss needs at least phase 1"


def test_phase_without_rules(data):
    assert _refused(data, "phase.1.rule", []).reason == "is missing; give at least one"


def test_change_into_a_phase_that_is_not_there(data):
    data.remove(BOSS, "phase.2")
    error = data.refusal()
    assert (error.key, error.value) == ("phase.1.change_move", "transform")
    assert error.reason == "leads to a phase that is not there"


@pytest.mark.parametrize("key", ["body", SWING, f"{SWING}.motion", SWEEP, "phase.1", "phase.1.rule.0", THRUST])
def test_table_without_a_source(data, key):
    data.remove(BOSS, f"{key}.source")
    error = data.refusal()
    assert error.key.replace("[0]", ".0").startswith(f"{key}.")
    assert error.reason == "has no source; give one of measured, derived, public, guess"


def test_animation_of_a_phase_change_may_be_unknown(data):
    data.set(BOSS, "move.transform.animation", "SomethingElse")
    assert data.load().boss.moves[data.load().boss.move_index("transform")].animation == "SomethingElse"
