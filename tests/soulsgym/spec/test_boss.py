"""What a boss file may not say. Each case changes one value of the shipped file."""

import pytest

BOSS = "bosses/iudex.toml"
SWING, SWEEP, DASH = "move.swing", "move.swing.hit.sweep", "move.dash"
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
        ("opened.riposte_facing_deg", "a number"),
        ("defence.physical", "a number"),
        ("randomize.hit_shift_s", "a number"),
        (f"{SWING}.animation", "a string"),
        (f"{SWING}.end_s", "a number"),
        (f"{SWING}.label_end_s", "a number"),
        (f"{SWING}.motion.step_s", "a number"),
        (f"{SWING}.track.swing.deg_per_s", "a number"),
        (f"{SWEEP}.from_s", "a number"),
        (f"{SWEEP}.shape", "a string"),
        (f"{SWEEP}.arc_deg", "a list of numbers"),
        (f"{DASH}.stretch.run.arrive_m", "a number"),
        (f"{DASH}.stretch.run.range_m", "a list of numbers"),
        (f"{DASH}.stretch.run.reference_m", "a number"),
        ("move.throw.throw.stab.at_s", "a number"),
        ("move.dash.hit.thrust.half_width_m", "a number"),
        ("phase.1.change_move", "a string"),
        ("phase.1.first_approach_s", "a list of numbers"),
        ("phase.1.after", "a table"),
        ("phase.1.after.near_s", "a list of numbers"),
        ("phase.2.after.retreats.0.chance", "a number"),
        ("phase.2.after.retreats.0.gap_m", "a list of numbers"),
        ("phase.2.after.retreats.0.lasts_s", "a list of numbers"),
        (f"{THRUST}.cooldown_s", "a number"),
        (f"{THRUST}.after_odds", "a number"),
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
        (
            "body.stamina",
            3.0,
            "is not a known key; known are bulk_m, contact_drag, contact_push, hp, least_distance_m, poise, ",
        ),
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
        (f"{SWEEP}.push_m", -1.0, "must be at least 0"),
        (f"{SWING}.end_s", 61.0, "must be at most 60"),
        (f"{SWING}.track.swing.deg_per_s", -10.0, "must be at least 0"),
        ("phase.1.changes_at_hp_share", 1.5, "must be at most 1"),
        (f"{THRUST}.after_odds", 1.5, "must be at most 1"),
        (f"{THRUST}.approach_m", -1.0, "must be at least 0"),
        ("opened.riposte_facing_deg", 190.0, "must be at most 180"),
        (f"{DASH}.stretch.run.arrive_m", -0.1, "must be at least 0"),
        (f"{DASH}.stretch.run.reference_m", 0.0, "must be at least 0.1"),
        (f"{DASH}.stretch.run.range_m", [8.9, 5.0], "must not begin above its end"),
        (f"{DASH}.stretch.run.range_m", [5.0], "must be a list of 2 numbers"),
        ("move.throw.throw.stab.at_s", -0.1, "must be at least 0"),
        ("phase.2.after.front_deg", 181.0, "must be at most 180"),
        ("phase.2.after.within_gap_m", -1.0, "must be at least 0"),
        ("phase.2.after.back_off_m", -1.0, "must be at least 0"),
        ("phase.2.after.back_off_s", -1.0, "must be at least 0"),
        ("phase.2.after.retreats", {}, "must be a list of tables"),
        # Keys of earlier versions
        ("opened.riposte_arc_deg", 60.0, "is not a known key"),
        (f"{THRUST}.strafe_odds", 0.5, "is not a known key"),
        ("move.throw.throw_damage", 174.0, "is not a known key"),
        # Words
        (f"{SWING}.kind", "atack", "is not known, did you mean 'attack'?"),
        (f"{SWING}.animation", "Attack3099", "is not known, did you mean"),
        (f"{SWEEP}.shape", "circle", "is not known; known are disc, sector, shot, thrust"),
        (f"{SWEEP}.reaction", "DamageMidle", "is not known, did you mean 'DamageMiddle'?"),
        (f"{SWEEP}.reaction", "parry", "is not known"),
        # Sources
        ("body.source", "rumour", "is not one of measured, derived, public, guess"),
        # Shapes
        (f"{SWEEP}.offset_m", 1.0, "means nothing for a sector; only for disc"),
        (f"{SWEEP}.half_width_m", 1.0, "means nothing for a sector; only for thrust"),
        ("move.leap.hit.landing.inner_m", 1.0, "means nothing for a disc; only for sector and thrust"),
        ("move.leap.hit.landing.arc_deg", [-10.0, 10.0], "means nothing for a disc; only for sector"),
        ("move.leap.hit.landing.sweep", True, "means nothing for a disc; only for sector"),
        ("move.chop.hit.chop.blade_deg", 10.0, "means nothing for a blow that does not sweep"),
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
        ("phase.1.after.near_s", [3.0, 2.0], "must not begin above its end"),
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
        ("move.throw.throw.stab.at_s", 59.0, "move.throw.throw.stab.at_s", 59.0, "must be at most "),
        (f"{DASH}.stretch.run.to_s", 59.0, f"{DASH}.stretch.run.to_s", 59.0, "lies past the end of the move at 3.3"),
        (f"{DASH}.stretch.run.to_s", 0.0, f"{DASH}.stretch.run.to_s", 0.0, "must come after from_s = 0"),
        (
            f"{DASH}.stretch.run.to_s",
            1.0,
            f"{DASH}.stretch",
            0.902,
            "must not begin before the one before it ends at 1",
        ),
        (
            "phase.2.after.retreats.0.chance",
            1.5,
            "phase.2.after.retreats[0].chance",
            1.5,
            "must be at most 1",
        ),
        (
            "phase.2.after.retreats.0.gap_m",
            [2.0, 0.0],
            "phase.2.after.retreats[0].gap_m",
            [2.0, 0.0],
            "must not begin above its end",
        ),
        (
            f"{THRUST}.chains.0.links.0.bearing_deg",
            [-190.0, 0.0],
            f"{THRUST}.chains[0].links[0].bearing_deg",
            -190.0,
            "must be at least -180",
        ),
        ("move.walk_back.kind", "walk", "move.walk_back.kind", "walk", "must be 'retreat' for this move"),
        ("phase.1.rule.0.every_s", 0.0, "phase.1.rule[0].every_s", 0.0, "must be at least 0.1"),
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
            "is not a move of kind 'attack', did you mean 'throw'?",
        ),
        ("move.grab.grab_move", "walk", "move.grab.grab_move", "walk", "is not a move of kind 'attack'"),
        ("move.idle.kind", "walk", "move.idle.kind", "walk", "must be 'idle' for this move"),
        ("move.stagger.kind", "attack", "move.stagger.kind", "attack", "must be 'open' for this move"),
        (
            "phase.1.rule.0.weights",
            {"thurst": 1.0},
            "phase.1.rule[0].weights.thurst",
            "thurst",
            "is not an act of this phase, did you mean 'thrust'?",
        ),
        (
            "phase.1.rule.0.weights",
            {"beast_thrust": 1.0},
            "phase.1.rule[0].weights.beast_thrust",
            "beast_thrust",
            "is not an act of this phase",
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
        (
            "phase.1.act.leep",
            {},
            "phase.1.act.leep",
            "leep",
            "is not a move of kind 'attack' or 'hop' or 'walk' or 'strafe', did you mean 'leap'?",
        ),
        ("phase.1.act.transform", {}, "phase.1.act.transform", "transform", "is not a move of kind 'attack' or 'hop'"),
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
    assert error.reason == "is a follow-up but not an attack, did you mean 'swing'?"


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


@pytest.mark.parametrize(
    "key",
    [
        "body",
        "defence",
        SWING,
        f"{SWING}.motion",
        SWEEP,
        f"{DASH}.stretch.run",
        "move.throw.throw.stab",
        "phase.1",
        "phase.2.after",
        "phase.1.rule.0",
        THRUST,
    ],
)
def test_table_without_a_source(data, key):
    data.remove(BOSS, f"{key}.source")
    error = data.refusal()
    assert error.key.replace("[0]", ".0").startswith(f"{key}.")
    assert error.reason == "has no source; give one of measured, derived, public, guess"


def test_animation_of_a_phase_change_may_be_unknown(data):
    data.set(BOSS, "move.transform.animation", "SomethingElse")
    assert data.load().boss.moves[data.load().boss.move_index("transform")].animation == "SomethingElse"


# ---------------------------------------------------------------- stretches


def test_stretch_without_a_motion(data):
    data.remove(BOSS, f"{DASH}.motion")
    error = data.refusal()
    assert (error.key, error.value) == (f"{DASH}.stretch", 2)
    assert error.reason == "has no forward_m to scale; give the move a motion"


def test_stretch_of_a_motion_that_only_goes_sideways(data):
    data.remove(BOSS, f"{DASH}.motion.forward_m")
    assert data.refusal().reason == "has no forward_m to scale; give the move a motion"


# ---------------------------------------------------------------- after an attack


def test_retreats_need_a_walk_back(data):
    data.remove(BOSS, "move.walk_back")
    data.remove(BOSS, "phase.2.after.back_off_m")
    data.remove(BOSS, "phase.2.after.back_off_s")
    error = data.refusal()
    assert (error.key, error.value) == ("phase.2.after.retreats", 2)
    assert error.reason == "needs a move called 'walk_back' of kind 'retreat'"


def test_backing_off_needs_a_walk_back(data):
    data.remove(BOSS, "move.walk_back")
    error = data.refusal()
    assert (error.key, error.value) == ("phase.2.after.back_off_s", 2.0)
    assert error.reason == "needs a move called 'walk_back' of kind 'retreat'"


def test_a_boss_who_never_backs_off_needs_no_walk_back(data):
    data.remove(BOSS, "move.walk_back")
    for key in ("back_off_m", "back_off_s", "retreats"):
        data.remove(BOSS, f"phase.2.after.{key}")
    after = data.load().boss.phases[1].after
    assert (after.back_off_m, after.back_off_s, after.retreats) == (0.0, 0.0, ())


@pytest.mark.parametrize(
    ("gone", "left", "value"), [("back_off_s", "back_off_m", 1.5), ("back_off_m", "back_off_s", 2.0)]
)
def test_backing_off_needs_both_of_its_limits(data, gone, left, value):
    data.remove(BOSS, f"phase.2.after.{gone}")
    error = data.refusal()
    assert (error.key, error.value) == (f"phase.2.after.{left}", value)
    assert error.reason == f"has no effect alone; give {gone} above 0 too"


def test_what_an_after_leaves_out_sets_no_limit(data):
    after = data.load().boss.phases[0].after
    assert (after.front_deg, after.within_gap_m) == (180.0, 1e6)


def test_an_act_without_an_approach_begins_at_once(spec):
    acts = {act.name: act for act in spec.boss.phases[1].acts}
    assert (acts["beast_swat"].approach_m, acts["beast_swat"].approach_s) == (1e6, 0.0)


# ---------------------------------------------------------------- runs, hops, interrupts

RUN = {"from_m": 8.0, "chance": 0.5, "always_from_m": 11.0, "approach_m": 7.0}
HOP = {
    "animation": "FallingDefault",
    "kind": "hop",
    "label_end_s": 0.6,
    "end_s": 0.6,
    "source": "guess",
    "motion": {"first_s": 0.1, "step_s": 0.1, "forward_m": [-1.0, -1.0, -1.0], "source": "guess"},
}
HOP_ACT = {
    "cooldown_s": 5.0,
    "after_odds": 0.0,
    "room_m": 3.0,
    "then": {"thrust": 1.0},
    "then_within_deg": 120.0,
    "source": "guess",
}
INTERRUPT = {
    "moves": ["sweep", "chop"],
    "at_s": 0.5,
    "bearing_deg": [-30.0, 30.0],
    "gap_m": [3.0, 9.0],
    "act": "thrust",
    "source": "guess",
}


@pytest.fixture
def rich(data):
    """The shipped boss, who also runs, hops and drops an attack for another."""
    boss = data.content(BOSS)
    boss["move"]["run"] = boss["move"]["walk"] | {"animation": "LandDefault"}
    boss["move"]["hop_back"] = HOP
    first = boss["phase"]["1"]
    first["act"]["thrust"]["run"] = RUN
    first["act"]["hop_back"] = HOP_ACT
    first["interrupt"] = [INTERRUPT]
    data.write(BOSS, boss)
    return data


def test_runs_hops_and_interrupts_are_read(rich):
    boss = rich.load().boss
    phase = boss.phases[0]
    acts = {act.name: act for act in phase.acts}
    run, hop = acts["thrust"].run, acts["hop_back"]
    assert (run.from_m, run.chance, run.always_from_m, run.approach_m) == (8.0, 0.5, 11.0, 7.0)
    assert (hop.room_m, hop.then, hop.then_within_deg) == (3.0, {"thrust": 1.0}, 120.0)
    assert acts["sweep"].run is None
    [interrupt] = phase.interrupts
    assert (interrupt.moves, interrupt.at_s, interrupt.act) == (("sweep", "chop"), 0.5, "thrust")
    assert (interrupt.bearing_deg, interrupt.gap_m) == ((-30.0, 30.0), (3.0, 9.0))
    assert boss.sources["phase.1.interrupt[0].at_s"] == "guess"
    assert boss.sources["phase.1.act.thrust.run"] == "public"
    assert boss.sources["phase.1.act.hop_back.then"] == "guess"


@pytest.mark.parametrize(
    ("removed", "unset"),
    [
        ("phase.1.act.thrust.run.always_from_m", lambda phase: phase.acts[-2].run.always_from_m == 1e6),
        ("phase.1.act.hop_back.room_m", lambda phase: phase.acts[-1].room_m == 0.0),
        ("phase.1.act.hop_back.then", lambda phase: phase.acts[-1].then == {}),
        ("phase.1.act.hop_back.then_within_deg", lambda phase: phase.acts[-1].then_within_deg == 180.0),
        ("phase.1.interrupt.0.bearing_deg", lambda phase: phase.interrupts[0].bearing_deg == (-180.0, 180.0)),
        ("phase.1.interrupt.0.gap_m", lambda phase: phase.interrupts[0].gap_m == (0.0, 1e6)),
    ],
)
def test_what_may_be_left_out_sets_no_limit(rich, removed, unset):
    rich.remove(BOSS, removed)
    assert unset(rich.load().boss.phases[0])


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("phase.1.act.thrust.run.from_m", "a number"),
        ("phase.1.act.thrust.run.chance", "a number"),
        ("phase.1.act.thrust.run.approach_m", "a number"),
        ("phase.1.interrupt.0.moves", "a list of strings"),
        ("phase.1.interrupt.0.at_s", "a number"),
        ("phase.1.interrupt.0.act", "a string"),
    ],
)
def test_missing_key_of_a_run_or_an_interrupt(rich, key, given):
    rich.remove(BOSS, key)
    error = rich.refusal()
    assert (error.key.replace("[0]", ".0"), error.reason) == (key, f"is missing; give {given}")


@pytest.mark.parametrize(
    ("key", "value", "at", "bad", "reason"),
    [
        ("run.chance", 1.5, "act.thrust.run.chance", 1.5, "must be at most 1"),
        ("run.from_m", -1.0, "act.thrust.run.from_m", -1.0, "must be at least 0"),
        ("run.always_from_m", 7.0, "act.thrust.run.always_from_m", 7.0, "must be at least 8"),
        ("run.speed_m", 7.0, "act.thrust.run.speed_m", 7.0, "is not a known key"),
        ("run", 7.0, "act.thrust.run", 7.0, "must be a table"),
        ("room_m", 3.0, "act.thrust.room_m", 3.0, "is for hops; 'thrust' is of kind 'attack'"),
        ("then", {"sweep": 1.0}, "act.thrust.then", ["sweep"], "is for hops; 'thrust' is of kind 'attack'"),
        ("then_within_deg", 190.0, "act.thrust.then_within_deg", 190.0, "must be at most 180"),
    ],
)
def test_bad_value_of_an_act(rich, key, value, at, bad, reason):
    rich.set(BOSS, f"phase.1.act.thrust.{key}", value)
    rich.refuses(f"phase.1.{at}", bad, reason)


@pytest.mark.parametrize(
    ("key", "value", "at", "bad", "reason"),
    [
        ("then", {"thrsut": 1.0}, "then.thrsut", "thrsut", "is not an act of this phase, did you mean 'thrust'?"),
        ("then", {"turn": 1.0}, "then.turn", "turn", "is not an act of this phase"),
        ("then", {"thrust": 0.0}, "then", {"thrust": 0.0}, "must hold at least one weight above 0"),
        ("room_m", -1.0, "room_m", -1.0, "must be at least 0"),
    ],
)
def test_bad_value_of_a_hop(rich, key, value, at, bad, reason):
    rich.set(BOSS, f"phase.1.act.hop_back.{key}", value)
    rich.refuses(f"phase.1.act.hop_back.{at}", bad, reason)


def test_running_needs_a_move_for_it(rich):
    rich.remove(BOSS, "move.run")
    error = rich.refusal()
    assert (error.key, error.value) == ("phase.1.act.thrust.run", 7.0)
    assert error.reason == "needs a move called 'run' of kind 'walk'"


def test_running_is_a_kind_of_walking(rich):
    rich.set(BOSS, "move.run.kind", "strafe")
    error = rich.refusal()
    assert (error.key, error.value, error.reason) == ("move.run.kind", "strafe", "must be 'walk' for this move")


def test_hop_with_a_blow(rich):
    rich.set(BOSS, "move.hop_back.hit", rich.get(BOSS, "move.bash.hit") | {})
    rich.set(BOSS, "move.hop_back.end_s", 2.0)
    error = rich.refusal()
    assert (error.key, error.value) == ("move.hop_back.kind", "hop")
    assert error.reason == "is for moves with a motion and without blows; make it an 'attack'"


def test_hop_that_goes_nowhere(rich):
    rich.remove(BOSS, "move.hop_back.motion")
    assert rich.refusal().reason == "is for moves with a motion and without blows; make it an 'attack'"


def test_a_chain_does_not_lead_into_a_hop(rich):
    links = [{"move": "hop_back", "within_m": 8.0}]
    rich.set(BOSS, f"{THRUST}.chains", [{"weight": 1.0, "links": links}])
    rich.refuses(f"{THRUST}.chains[0].links[0].move", "hop_back", "is a follow-up but not an attack")


@pytest.mark.parametrize(
    ("key", "value", "bad", "reason"),
    [
        ("moves", [], [], "must be a list of one or more strings"),
        ("moves", ["sweeep"], "sweeep", "is not known, did you mean 'sweep'?"),
        ("moves", ["hop_back"], "hop_back", "is not known"),
        ("at_s", -0.1, -0.1, "must be at least 0"),
        ("at_s", 3.58, 3.58, "lies past the end of 'sweep' at 3.545"),
        ("bearing_deg", [30.0, -30.0], [30.0, -30.0], "must not begin above its end"),
        ("gap_m", [9.0, 3.0], [9.0, 3.0], "must not begin above its end"),
        ("act", "trust", "trust", "is not known, did you mean 'thrust'?"),
        ("every_s", 3.0, 3.0, "is not a known key"),
        ("to_s", 0.4, 0.4, "must come after at_s = 0.5"),
        ("to_s", 3.58, 3.58, "lies past the end of 'sweep' at 3.545"),
        ("chance", 1.5, 1.5, "must be at most 1"),
        ("move", "slam", "slam", "stands beside act; give one of them"),
        ("act", "strafe_left", "strafe_left", "is not known"),
    ],
)
def test_bad_value_of_an_interrupt(rich, key, value, bad, reason):
    rich.set(BOSS, f"phase.1.interrupt.0.{key}", value)
    rich.refuses(f"phase.1.interrupt[0].{key}", bad, reason)


@pytest.mark.parametrize(
    ("key", "value", "bad", "reason"),
    [
        ("move", "slamm", "slamm", "is not known, did you mean 'slam'?"),
        ("cooled", True, True, "is for an act; a move has no cooldown"),
    ],
)
def test_bad_value_of_a_window_that_leads_to_a_move(rich, key, value, bad, reason):
    rich.remove(BOSS, "phase.1.interrupt.0.act")
    rich.set(BOSS, "phase.1.interrupt.0.move", "slam")
    rich.set(BOSS, f"phase.1.interrupt.0.{key}", value)
    rich.refuses(f"phase.1.interrupt[0].{key}", bad, reason)


def test_a_window_that_lasts_has_no_chance(rich):
    rich.set(BOSS, "phase.1.interrupt.0.to_s", 1.0)
    rich.set(BOSS, "phase.1.interrupt.0.chance", 0.5)
    rich.refuses("phase.1.interrupt[0].chance", 0.5, "one that lasts until to_s is always taken")


@pytest.mark.parametrize(
    ("key", "value", "bad", "reason"),
    [
        ("after", ["chopp"], "chopp", "is not known, did you mean 'chop'?"),
        ("count_over", -1.0, -1.0, "must be at least 0"),
        ("ready", "chopp", "chopp", "is not known, did you mean 'chop'?"),
    ],
)
def test_bad_value_of_a_rule_that_looks_back(rich, key, value, bad, reason):
    rich.set(BOSS, f"phase.1.rule.0.{key}", value)
    rich.refuses(f"phase.1.rule[0].{key}", bad, reason)


@pytest.mark.parametrize(
    ("act", "keys", "at", "reason"),
    [
        ("strafe_left", {}, "strafe_left.lasts_s", "is missing; give two numbers to draw from"),
        ("strafe_left", {"lasts_s": [3.0, 1.0]}, "strafe_left.lasts_s", "must not begin above its end"),
        (
            "chop",
            {"lasts_s": [1.0, 1.0]},
            "chop.lasts_s",
            "is for acts that walk or circle; 'chop' is of kind 'attack'",
        ),
        ("chop", {"until_m": 1.0}, "chop.until_m", "is for acts that walk or circle"),
        ("chop", {"cooling_weight": -1.0}, "chop.cooling_weight", "must be at least 0"),
        ("chop", {"gives_up": 1}, "chop.gives_up", "must be true or false"),
        ("turn_left", {}, "turn_left", "is not a move of kind 'attack' or 'hop' or 'walk' or 'strafe'"),
    ],
)
def test_bad_value_of_an_act_that_lasts(rich, act, keys, at, reason):
    rich.set(BOSS, f"phase.1.act.{act}", {"cooldown_s": 1.0, "after_odds": 0.0, "source": "guess", **keys})
    error = rich.refusal()
    assert error.key == f"phase.1.act.{at}"
    assert reason in error.reason


SHOT = {
    "from_s": 0.5, "to_s": 0.6, "shape": "shot", "reach_m": 20.0, "speed_m_per_s": 30.0, "radius_m": 0.2,
    "homing_deg": 20.0, "damage": 40.0, "guard_stamina": 5.0, "reaction": "DamageSmall", "source": "guess",
}  # fmt: skip


@pytest.mark.parametrize(
    ("key", "value", "bad", "reason"),
    [
        ("speed_m_per_s", None, None, "is missing; give a number"),
        ("radius_m", None, None, "is missing; give a number"),
        ("speed_m_per_s", 0.0, 0.0, "must be at least 0.1"),
        ("homing_deg", 190.0, 190.0, "must be at most 180"),
        ("arc_deg", [-5.0, 5.0], [-5.0, 5.0], "means nothing for a shot; only for sector"),
        ("parriable", True, True, "has no effect on a projectile, which cannot be parried"),
    ],
)
def test_bad_value_of_a_shot(rich, key, value, bad, reason):
    given = {name: one for name, one in (SHOT | {key: value}).items() if one is not None}
    rich.set(BOSS, "move.chop.hit", {"thrown": given})
    rich.refuses(f"move.chop.hit.thrown.{key}", bad, reason)


def test_a_shot_is_no_key_of_other_blows(rich):
    rich.set(BOSS, "move.swing.hit.sweep.speed_m_per_s", 3.0)
    assert "means nothing for a sector; only for shot" in rich.refusal().reason


def test_a_hop_may_not_begin_after_the_end(rich):
    rich.set(BOSS, "move.chop.hop_s", 9.0)
    assert rich.refusal().key == "move.chop.hop_s"


def test_interrupt_without_a_source(rich):
    rich.remove(BOSS, "phase.1.interrupt.0.source")
    assert rich.refusal().reason == "has no source; give one of measured, derived, public, guess"
