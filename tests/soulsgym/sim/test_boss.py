"""The boss: decisions, chains, walking and turning, the change of phase."""

import itertools
import math

import numpy as np
import pytest

from soulsgym.actions import ACTION_CONTROLS, NOTHING
from soulsgym.engine import standard_starts
from soulsgym.sim.boss import APPROACH, BACKING, NO_STRAFE, STRAFING
from soulsgym.sim.engine import SimEngine

IDLE, WALK, LEFT, RIGHT, BACK = 23, 19, 20, 21, 22
TURN_RIGHT, TURN_RIGHT_AROUND, TURN_LEFT, TURN_LEFT_AROUND = 24, 25, 26, 27
UNKNOWN = -1


def distance_of(record):
    return float(np.hypot(*(record["player_pose"][:2] - record["boss_pose"][:2])))


def bearing_of(record):
    """Degrees from the boss's heading, positive to its right."""
    dx, dy = record["player_pose"][:2] - record["boss_pose"][:2]
    a = record["boss_pose"][3]
    return math.degrees(math.atan2(math.sin(a) * dy - math.cos(a) * dx, -math.sin(a) * dx - math.cos(a) * dy))


# ---------------------------------------------------------------- chains


@pytest.mark.parametrize(
    ("move", "act", "chain", "from_s", "away_m", "follows"),
    [
        ("sweep", "sweep", 0, 2.13, 4.2, "bash"),
        ("sweep", "sweep", 0, 2.13, 4.9, "sweep"),
        ("thrust", "thrust", 0, 1.0, 8.3, "swing"),
        ("thrust", "thrust", 0, 1.0, 9.2, "thrust"),
        ("thrust", "thrust", 3, 1.0, 6.5, "slam"),
        ("thrust", "thrust", 3, 1.0, 7.9, "thrust"),
        ("chop", "chop", 0, 2.48, 6.5, "ground_stab"),
        ("chop", "chop", 0, 2.48, 7.5, "chop"),
    ],
)
def test_a_chain_goes_on_only_near_enough(duel, move, act, chain, from_s, away_m, follows):
    duel.begin(away_m=10.0).force(move, from_s, blows=False, links=(act, chain))
    duel.place_player(away_m)
    assert duel.boss_move(duel.play(rest=2)[-1]) == follows


def test_a_chain_runs_through_all_its_links(duel):
    duel.begin(away_m=3.0).force("thrust", blows=False, links=("thrust", 2))
    seen = ["thrust"]
    for _ in range(40):
        record = duel.step()
        duel.hidden["hits_landed"] = -1
        if duel.boss_move(record) != seen[-1]:
            seen.append(duel.boss_move(record))
    assert seen[:3] == ["thrust", "second_thrust", "slam"]


def test_a_link_follows_at_its_measured_time(duel):
    duel.begin(away_m=3.0).force("sweep", 1.5, blows=False, links=("sweep", 0))
    record = duel.until(lambda record: duel.boss_move(record) == "bash", at_most=15)
    before_s = 1.5 + 0.097 * record["step"] - record["boss_move_s"]
    assert before_s == pytest.approx(2.21, abs=0.03)


def links_of(phase):
    """Every pair of moves that some chain of a phase has in a row."""
    pairs = set()
    for act in phase.acts:
        for chain in act.chains:
            names = [act.name, *(link.move for link in chain.links)]
            pairs |= set(itertools.pairwise(names))
    return pairs


@pytest.fixture(scope="module")
def watched(spec):
    """What 128 bosses of each phase do in a minute, with players who run about: [phase][step][fight]."""
    played = {}
    for phase in (1, 2):
        engine = SimEngine(spec, 128, phase=phase)
        starts = standard_starts(128)
        starts["random_pose"] = 1
        engine.reset(np.ones(128, np.bool_), starts, np.arange(128, dtype=np.uint64))
        generator = np.random.default_rng(8)
        records = []
        for _ in range(600):
            engine.hidden["player_hp"] = 454.0
            engine.step(ACTION_CONTROLS[generator.choice([0, 1, 7, 2, 8, 10, 12, NOTHING], 128)])
            records.append(engine.fights.copy())
        played[phase] = np.array(records)
    return played


@pytest.mark.parametrize("phase", [1, 2])
def test_an_attack_is_cut_short_only_by_a_link_of_its_chain(spec, watched, phase):
    """Anything else waits for the end of the animation."""
    moves = spec.boss.moves
    allowed = links_of(spec.boss.phases[phase - 1])
    wrong = set()
    records = watched[phase]
    for before, after in itertools.pairwise(records):
        changed = (before["boss_move"] != after["boss_move"]) & (after["outcome"] == 0)
        for fight in np.flatnonzero(changed):
            old, new = moves[before["boss_move"][fight]], moves[after["boss_move"][fight]]
            early = before["boss_move_s"][fight] + 0.097 < old.end_s
            excused = old.grab_move == new.name or new.name in ("stagger", "parried", "executed")
            if old.kind == "attack" and early and not excused and (old.name, new.name) not in allowed:
                wrong.add((old.name, new.name))
    assert not wrong


@pytest.mark.parametrize("phase", [1, 2])
def test_a_phase_uses_all_its_moves_and_only_those(spec, watched, phase):
    part = spec.boss.phases[phase - 1]
    own = {act.name for act in part.acts} | {name for pair in links_of(part) for name in pair}
    shared = {
        move.name for move in spec.boss.moves if move.kind in ("idle", "walk", "retreat", "strafe", "turn", "executed")
    }
    shared |= {move.grab_move for move in spec.boss.moves} | {"stagger", "parried"}
    seen = {spec.boss.moves[index].name for index in np.unique(watched[phase]["boss_move"])}
    assert seen <= own | shared
    assert own <= seen
    assert set(watched[phase]["phase"].ravel().tolist()) == {phase}


# ---------------------------------------------------------------- labels


def test_the_label_of_the_next_attack_leads_its_start(spec, watched):
    """Chosen while the last attack still recovers, it is shown at once and its duration runs on at the real start."""
    moves = spec.boss.moves
    names = spec.boss_animations
    leads = []
    records = watched[1]
    for before, after in itertools.pairwise(records):
        for fight in np.flatnonzero((before["boss_move"] != after["boss_move"]) & (after["outcome"] == 0)):
            old, new = moves[before["boss_move"][fight]], moves[after["boss_move"][fight]]
            label = names[before["boss_animation"][fight]]
            if old.kind == new.kind == "attack" and old.animation != label and label != "IdleBattle":
                assert label == new.animation
                leads.append(after["boss_animation_duration"][fight, 0] - after["boss_move_s"][fight])
    assert len(leads) > 20
    # Measured for three pairs: 0.69, 0.79 and 0.90 s.
    assert min(leads) > 0.2
    assert max(leads) < 1.3


def test_a_recovering_boss_shows_idle_or_the_next_attack(spec, watched):
    names = spec.boss_animations
    for step in watched[1][::7]:
        for fight in step[step["outcome"] == 0]:
            move = spec.boss.moves[fight["boss_move"]]
            shown = names[fight["boss_animation"]]
            if move.kind == "attack" and shown != move.animation:
                assert fight["boss_move_s"] >= move.label_end_s - 0.001
                assert shown == "IdleBattle" or shown.startswith("Attack")


# ---------------------------------------------------------------- walking and turning


def walking(duel, *, away_m, act=None, seconds=3.0, move="walk"):
    duel.begin(away_m=away_m).force(move, blows=False)
    duel.hidden["goal"], duel.hidden["goal_left_s"] = APPROACH, seconds
    duel.hidden["act"] = -1 if act is None else duel.act_row(act)
    return duel


def test_the_boss_walks_as_fast_as_measured(duel):
    records = walking(duel, away_m=15.0, seconds=9.0).play(rest=37)
    metres = np.linalg.norm(np.diff(records["boss_pose"][:, :2].astype(float), axis=0), axis=1)
    # Four strides of 0.87 s after the first half second.
    assert metres[5:].mean() == pytest.approx(0.1735, abs=0.005)
    assert metres[5:].min() == pytest.approx(0.131, abs=0.02)
    assert metres[5:].max() == pytest.approx(0.222, abs=0.02)
    assert set(records["boss_animation"].tolist()) == {WALK}


@pytest.mark.parametrize(
    ("move", "label", "metres", "side"),
    [("strafe_left", LEFT, 0.136, -1), ("strafe_right", RIGHT, 0.151, 1)],
)
def test_the_boss_circles_as_fast_as_measured(duel, move, label, metres, side):
    records = walking(duel, away_m=8.0, seconds=9.0, move=move).play(rest=24)
    steps = np.linalg.norm(np.diff(records["boss_pose"][:, :2].astype(float), axis=0), axis=1)
    assert steps[7:].mean() == pytest.approx(metres, abs=0.012)
    assert set(records["boss_animation"].tolist()) == {label}
    # He looks along -y, so his right is -x.
    assert np.sign(140.0 - records["boss_pose"][-1, 0]) == side


def test_a_walking_boss_turns_by_seventy_degrees_a_second(duel):
    walking(duel, away_m=8.0, seconds=9.0).place_player(8.0, 50.0)
    records = duel.play(rest=5)
    turned = np.degrees(np.diff(records["boss_pose"][:, 3]))
    assert turned == pytest.approx(7.0, abs=0.05)  # measured: 6.96


@pytest.mark.parametrize(("act", "within_m"), [("thrust", 6.3), ("chop", 7.0), ("grab", 5.0)])
def test_an_attack_begins_when_the_player_is_within_its_approach(duel, act, within_m):
    walking(duel, away_m=within_m + 0.9, act=act)
    before = duel.now
    for _ in range(12):
        record = duel.step()
        if duel.boss_move(record) == act:
            break
        before = record
    assert duel.boss_move(record) == act
    assert within_m < distance_of(before) < within_m + 0.23


def test_an_approach_gives_up_walking_in_time(duel):
    walking(duel, away_m=14.0, act="thrust", seconds=1.0)
    record = duel.until(lambda record: duel.boss_move(record) == "thrust", at_most=12)
    assert record["step"] * 0.097 == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize(
    ("bearing_deg", "label"),
    [
        # Measured: no turning at 42.5 degrees, turning at 67.7 and 115.4.
        (42.0, WALK),
        (-42.0, WALK),
        (68.0, TURN_RIGHT),
        (-68.0, TURN_LEFT),
        (115.0, TURN_RIGHT),
        (170.0, TURN_RIGHT_AROUND),
        (-170.0, TURN_LEFT_AROUND),
    ],
)
def test_the_boss_turns_to_a_player_beside_or_behind(duel, bearing_deg, label):
    duel.begin(away_m=10.0, still=False)
    duel.place_player(10.0, bearing_deg)
    assert duel.step()["boss_animation"] == label


@pytest.mark.parametrize(("bearing_deg", "yaw_deg"), [(67.7, (52.0, 68.0)), (115.4, (60.0, 90.0))])
def test_a_turn_is_as_long_and_as_wide_as_measured(duel, bearing_deg, yaw_deg):
    """59 and 81 degrees in 0.83 s."""
    duel.begin(away_m=6.0, still=False)
    duel.place_player(6.0, bearing_deg)
    records = duel.play(rest=9)
    turning = records[records["boss_animation"] == TURN_RIGHT]
    assert len(turning) == pytest.approx(8.5, abs=0.6)
    assert yaw_deg[0] < math.degrees(turning["boss_pose"][-1, 3]) < yaw_deg[1]


def test_after_a_turn_the_player_is_in_front(duel):
    duel.begin(away_m=6.0, still=False)
    duel.place_player(6.0, 170.0)
    record = duel.until(lambda record: record["boss_animation"] == WALK, at_most=40)
    assert abs(bearing_of(record)) < 55.0


def test_the_boss_begins_by_walking_up(duel):
    duel.begin(away_m=12.0, still=False)
    records = duel.play(rest=39)
    assert set(records["boss_animation"].tolist()) == {WALK}


# ---------------------------------------------------------------- choices


def chose(spec, *, away_m, bearing_deg=0.0, cooling=(), phase=1, n=4000, down=False, boss_y=592.0):
    """An engine of n bosses who have just decided at a place."""
    engine = SimEngine(spec, n, phase=phase)
    starts = standard_starts(n)
    starts["boss_pose"] = (140.0, boss_y, 0.0)
    bearing = math.radians(bearing_deg)
    starts["player_pose"] = (140.0 - away_m * math.sin(bearing), boss_y - away_m * math.cos(bearing), 0.0)
    engine.reset(np.ones(n, np.bool_), starts, np.arange(n, dtype=np.uint64))
    engine.hidden["is_first_approach"] = 0
    acts = [act.name for act in spec.boss.phases[phase - 1].acts]
    for name in cooling:
        engine.hidden["act_ready_s"][:, acts.index(name)] = 1e9
    if down:
        engine.hidden["player_move"] = [move.name for move in spec.player.moves].index("DamageExLarge")
    engine.step(np.full(n, ACTION_CONTROLS[NOTHING]))
    return engine


def chosen(spec, *, phase=1, n=4000, **place):
    """How often each act is chosen at a place, as shares; "" is none yet."""
    engine = chose(spec, phase=phase, n=n, **place)
    acts = [act.name for act in spec.boss.phases[phase - 1].acts]
    first = engine.tables[0]["phases"][phase - 1]["first_act"]
    rows, counts = np.unique(engine.hidden["act"], return_counts=True)
    return {acts[row - first] if row >= 0 else "": count / n for row, count in zip(rows, counts, strict=True)}


@pytest.mark.parametrize(
    ("away_m", "shares"),
    [
        # The gap is the distance less the boss's radius; the weights are those of the game's own script.
        (14.0, {"dash": 75, "leap": 25}),
        (10.0, {"leap": 55, "dash": 30, "thrust": 15}),
        (6.0, {"thrust": 75, "sweep": 10, "chop": 10}),
        (3.2, {"thrust": 35, "sweep": 10, "chop": 10, "back_swing": 10, "grab": 7}),
        (1.6, {"thrust": 25, "punch": 20, "sweep": 10, "chop": 10, "back_swing": 10, "grab": 5}),
    ],
)
def test_the_distance_decides_what_he_does(spec, away_m, shares):
    total = sum(shares.values())
    seen = chosen(spec, away_m=away_m)
    assert set(seen) == set(shares)
    for name, weight in shares.items():
        assert seen[name] == pytest.approx(weight / total, abs=0.035)  # 4.4 standard errors of 4,000 draws


def test_what_cools_down_is_hardly_chosen_again(spec):
    seen = chosen(spec, away_m=6.0, cooling=("thrust",))
    # Weight 1 beside 10 and 10.
    assert seen["thrust"] == pytest.approx(1 / 21, abs=0.02)
    assert seen["sweep"] == pytest.approx(10 / 21, abs=0.04)


def test_what_cools_down_weighs_no_more_than_before(boss_with):
    def change(content):
        content["phase"]["1"]["rule"] = [{"weights": {"thrust": 0.25, "sweep": 0.75}, "source": "guess"}]

    seen = chosen(boss_with(change), away_m=6.0, cooling=("thrust",))
    assert seen["thrust"] == pytest.approx(0.25, abs=0.03)


def test_taking_an_act_starts_its_cooldown(duel):
    duel.begin(away_m=5.0, still=False)
    duel.hidden["is_first_approach"] = 0
    duel.step()
    phase = duel.spec.boss.phases[0]
    row = int(duel.hidden["act"]) - duel.act_row(phase.acts[0].name)
    assert duel.hidden["act_ready_s"][row] == pytest.approx(phase.acts[row].cooldown_s, abs=0.02)
    assert (np.delete(duel.hidden["act_ready_s"], row) == 0.0).all()


def test_who_lies_on_the_ground_is_mostly_waited_for(spec):
    seen = chosen(spec, away_m=6.0, down=True)
    assert seen[""] == pytest.approx(300 / 395, abs=0.035)


def test_beside_him_other_acts_are_chosen(spec):
    seen = chosen(spec, away_m=3.0, bearing_deg=90.0)
    assert set(seen) == {"sweep", "chop"}
    assert seen["sweep"] == pytest.approx(0.55, abs=0.035)
    assert set(chosen(spec, away_m=3.0, bearing_deg=-90.0)) == {"sweep", "chop", "back_swing"}


def test_behind_him_he_only_turns(spec):
    assert set(chosen(spec, away_m=3.0, bearing_deg=150.0, n=200)) == {""}


# ---------------------------------------------------------------- the leap


@pytest.mark.parametrize("away_m", [6.0, 10.0, 14.0, 16.8])
def test_the_leap_reaches_the_player(duel, away_m):
    duel.begin(away_m=away_m, player=(140.0, 606.0 - away_m, math.pi), boss=(140.0, 606.0, 0.0)).force("leap")
    record = duel.until(lambda record: record["hit_by"] >= 0, at_most=30)
    assert record["damage_taken"] == 150.0
    assert record["boss_move_s"] == pytest.approx(2.09, abs=0.06)


def test_the_leap_lands_at_the_players_feet(duel):
    duel.begin(away_m=12.0, player=(140.0, 594.0, math.pi), boss=(140.0, 606.0, 0.0)).force("leap", blows=False)
    record = duel.play(rest=21)[-1]
    assert distance_of(record) < 1.45  # measured: 1.26 to 1.36


# ---------------------------------------------------------------- the change of phase


def test_at_55_percent_the_phase_changes(full_duel):
    full_duel.begin(away_m=12.0, still=False, boss_hp=570.0)  # 0.55 * 1037 = 570.35
    records = full_duel.play(rest=60)
    changing = records[records["boss_animation"] == UNKNOWN]
    assert changing["step"].tolist() == list(range(1, 1 + len(changing)))
    boss = full_duel.spec.boss
    assert len(changing) * 0.097 == pytest.approx(boss.moves[boss.move_index("transform")].end_s, abs=0.11)
    assert set(changing["phase"].tolist()) == {1}
    after = records[len(changing) :]
    assert set(after["phase"].tolist()) == {2}
    assert UNKNOWN not in after["boss_animation"]


def test_above_55_percent_it_does_not(full_duel):
    full_duel.begin(away_m=12.0, still=False, boss_hp=571.0)
    records = full_duel.play(rest=60)
    assert set(records["phase"].tolist()) == {1}
    assert UNKNOWN not in records["boss_animation"]


def test_the_change_waits_for_the_end_of_an_attack(full_duel):
    full_duel.begin(away_m=12.0, still=False, boss_hp=400.0).force("back_swing", blows=False)
    record = full_duel.until(lambda record: record["boss_animation"] == UNKNOWN, at_most=40)
    # The animation takes 2.8 s.
    assert record["step"] * 0.097 == pytest.approx(2.85, abs=0.11)


def test_one_phase_alone_never_changes(duel):
    duel.begin(away_m=12.0, still=False, boss_hp=100.0)
    records = []
    for _ in range(300):
        duel.hidden["player_hp"] = 454.0
        records.append(duel.step())
    assert {int(record["phase"]) for record in records} == {1}
    assert UNKNOWN not in {int(record["boss_animation"]) for record in records}


def test_the_second_phase_has_no_third(full_duel):
    full_duel.begin(away_m=12.0, still=False, boss_hp=10.0, phase=2)
    records = full_duel.play(rest=60)
    assert set(records["phase"].tolist()) == {2}


def test_the_burst_of_the_change_makes_the_player_reel(full_duel):
    full_duel.begin(away_m=3.0, still=False, boss_hp=300.0)
    record = full_duel.until(lambda record: record["hit_by"] >= 0, at_most=40)
    assert full_duel.boss_move(record) == "transform"
    assert record["damage_taken"] == 59.0
    assert record["player_animation"] == 6  # DamageSmall


# ---------------------------------------------------------------- the dash: how far he runs


@pytest.fixture(scope="module")
def dashing(new_duel, boss_with):
    """A boss who dashes straight ahead: without the sideways part of the motion, and without turning."""

    def change(content):
        del content["move"]["dash"]["motion"]["right_m"]
        del content["move"]["dash"]["track"]

    return new_duel(boss_with(change))


def dash(duel, away_m):
    """Begin a dash at a player who stands so far away."""
    duel.begin(boss=(140.0, 606.0, 0.0), player=(140.0, 606.0 - away_m, math.pi))
    return duel.force("dash", blows=False)


def way_of(duel, steps):
    """How far ahead the boss has come after so many steps."""
    return 606.0 - float(duel.play(rest=steps)[-1]["boss_pose"][1])


@pytest.mark.parametrize(
    ("away_m", "run_m", "all_m"),
    [
        # The file's motion is 6.684 m after nine steps (0.873 s) and 6.858 m at 0.889 s, where the tick begins that
        # enters the thrust; from there it is 5.582 m to the end of step sixteen (1.552 s). Factors: of the run
        # (r - 5.75) within 5 to 8.9 by 8.9, of the thrust (r' - 2.75) within 3 to 6 by 6; r' is what the run has left.
        (9.0, 0.5618 * 6.684, 0.5618 * 6.858 + 0.5 * 5.582),  # r' = 5.15 counts as 3 m to go: the shortest dash
        (10.0, 0.5618 * 6.684, 0.5618 * 6.858 + 0.5662 * 5.582),  # r' = 6.15: 3.9 m and 3.2 m
        (14.0, 0.9270 * 6.684, 0.9270 * 6.858 + 0.8155 * 5.582),  # r' = 7.64
        (20.0, 6.684, 6.858 + 5.582),  # the longest
        (28.0, 6.684, 6.858 + 5.582),
    ],
)
def test_the_dash_is_as_long_as_the_distance_makes_it(dashing, away_m, run_m, all_m):
    assert way_of(dash(dashing, away_m), 9) == pytest.approx(run_m, abs=0.01)
    assert way_of(dash(dashing, away_m), 16) == pytest.approx(all_m, abs=0.01)


def test_the_dash_ends_between_six_and_a_half_and_twelve_and_a_half_metres(dashing):
    # At the blow, 1.516 s: 6.6 m at least and 12.3 m at most fit the recording, whose own motion is a little shorter.
    ways = []
    for away_m in (9.0, 28.0):
        before, after = way_of(dash(dashing, away_m), 15), way_of(dash(dashing, away_m), 16)
        ways.append(before + (after - before) * (1.516 - 1.455) / 0.097)
    assert ways == pytest.approx([6.6, 12.3], abs=0.15)


@pytest.mark.parametrize("moved_at", [1, 4, 8])
def test_the_length_of_the_run_is_fixed_when_it_begins(dashing, moved_at):
    dash(dashing, 14.0).play(rest=moved_at)
    dashing.hidden["player_y"] -= 10.0
    assert way_of(dashing, 9 - moved_at) == pytest.approx(0.9270 * 6.684, abs=0.01)


def test_the_length_of_the_thrust_is_fixed_when_the_thrust_begins(dashing):
    # After nine steps of 14 m he has run 6.196 m; 20 m more to go than before make the thrust a full one.
    dash(dashing, 14.0).play(rest=9)
    dashing.hidden["player_y"] -= 20.0
    assert way_of(dashing, 7) == pytest.approx(0.9270 * 6.858 + 5.582, abs=0.01)
    # Once it has begun it is too late.
    dash(dashing, 14.0).play(rest=10)
    dashing.hidden["player_y"] -= 20.0
    assert way_of(dashing, 6) == pytest.approx(0.9270 * 6.858 + 0.8155 * 5.582, abs=0.01)


def test_every_dash_is_measured_anew(new_duel, boss_with):
    def change(content):
        dash = content["move"]["dash"]
        del dash["motion"]["right_m"], dash["track"], dash["stretch"]["thrust"]
        links = [{"move": "dash", "within_m": 99.0}]
        content["phase"]["1"]["act"]["dash"]["chains"] = [{"weight": 1.0, "links": links}]
        dash["blend_s"] = 0.0

    duel = new_duel(boss_with(change)).begin(boss=(140.0, 610.0, 0.0), player=(140.0, 586.0, math.pi))
    duel.force("dash", blows=False, links=("dash", 0))
    duel.play(rest=18)  # to 1.746 s; at 1.775 s the second one begins, in step 19
    first = duel.now
    record = duel.step()
    assert record["boss_move_s"] < first["boss_move_s"]
    duel.hidden["hits_landed"] = -1
    # After 6.94 + 5.74 m of the first he is 11.3 m away: 5.57 of 8.9 m to go, where it was all of them.
    before_s, before_y = float(record["boss_move_s"]), float(record["boss_pose"][1])
    after = duel.play(rest=8)[-1]
    moved = np.interp([before_s, float(after["boss_move_s"])], *run_of_the_file(duel))
    assert before_y - after["boss_pose"][1] == pytest.approx((moved[1] - moved[0]) * 5.57 / 8.9, abs=0.05)


def run_of_the_file(duel):
    """Times and metres of the dash as the file has them."""
    motion = duel.spec.boss.moves[duel.spec.boss.move_index("dash")].motion
    times_s = motion.first_s + motion.step_s * np.arange(len(motion.forward_m))
    return times_s, np.cumsum(motion.forward_m)


def test_a_move_without_stretches_keeps_its_length(duel):
    ways = []
    for away_m in (6.0, 16.0):
        duel.begin(away_m=away_m).force("delayed_thrust", blows=False)
        ways.append(594.0 - float(duel.play(rest=17)[-1]["boss_pose"][1]))
    assert ways[0] == pytest.approx(ways[1], abs=1e-4)


# ---------------------------------------------------------------- after an attack, second phase


def after_attacks(spec, act, *, away_m, bearing_deg=0.0, n=4000):
    """What n bosses of the second phase do at the end of an attack: goal, kind of backing off, how long."""
    engine = SimEngine(spec, n, phase=2)
    starts = standard_starts(n)
    starts["boss_pose"] = (140.0, 606.0, 0.0)
    bearing = math.radians(bearing_deg)
    starts["player_pose"] = (140.0 - away_m * math.sin(bearing), 606.0 - away_m * math.cos(bearing), 0.0)
    engine.reset(np.ones(n, np.bool_), starts, np.arange(n, dtype=np.uint64))
    hidden, tables, boss = engine.hidden, engine.tables[0], spec.boss
    acts = [one.name for one in boss.phases[1].acts]
    move = boss.moves[boss.move_index(act)]
    hidden["is_first_approach"] = 0
    hidden["boss_move"], hidden["boss_move_s"] = boss.move_index(act), move.label_end_s
    row = tables["boss_moves"][boss.move_index(act)]
    hidden["boss_forward_m"] = tables["boss_curves"][row["first_row"] + row["rows"] - 1, 0]
    hidden["hits_landed"] = -1
    hidden["act"] = tables["phases"][1]["first_act"] + acts.index(act)
    engine.step(np.full(n, ACTION_CONTROLS[NOTHING]))
    assert (hidden["decided"] == 1).all()
    return hidden["goal"].copy(), hidden["strafe_move"].copy(), hidden["goal_left_s"].copy()


@pytest.mark.parametrize(
    ("away_m", "chance"),
    # Gaps are 0.8 m less: half below 2 m, a quarter up to 5 m, none beyond.
    [(1.5, 0.5), (2.7, 0.5), (2.9, 0.25), (5.7, 0.25), (5.9, 0.0), (15.0, 0.0)],
)
def test_near_the_player_he_may_only_back_off(spec, away_m, chance):
    goal, pending, lasts_s = after_attacks(spec, "beast_quake", away_m=away_m)
    assert (goal == BACKING).all()  # the odds of this act are 1
    only = pending == NO_STRAFE
    assert only.mean() == pytest.approx(chance, abs=0.035)
    assert (lasts_s[~only] == 2.0).all()
    if chance:
        assert 2.0 <= lasts_s[only].min() < 2.02
        assert 2.98 < lasts_s[only].max() <= 3.0


@pytest.mark.parametrize(("act", "odds"), [("beast_swat", 0.8), ("beast_grab", 0.5), ("beast_tail", 0.0)])
def test_the_odds_of_what_follows_are_those_of_the_act(spec, act, odds):
    goal, _, _ = after_attacks(spec, act, away_m=8.0)
    assert (goal == BACKING).mean() == pytest.approx(odds, abs=0.035)


@pytest.mark.parametrize(
    ("away_m", "bearing_deg", "acts"),
    [
        (8.0, 88.0, True),
        (8.0, -88.0, True),
        (8.0, 92.0, False),
        (8.0, 180.0, False),
        (25.7, 0.0, True),
        (25.9, 0.0, False),
    ],
)
def test_he_backs_off_only_from_who_is_in_front_and_not_too_far(spec, away_m, bearing_deg, acts):
    goal, _, _ = after_attacks(spec, "beast_quake", away_m=away_m, bearing_deg=bearing_deg, n=200)
    assert ((goal == BACKING) == acts).all()


def backing(duel, *, away_m=8.0, pending=0, lasts_s=2.0, seed=1):
    """A boss of the second phase who backs off."""
    duel.begin(away_m=away_m, phase=2, seed=seed).force("walk_back")
    duel.hidden["goal"], duel.hidden["strafe_move"], duel.hidden["goal_left_s"] = BACKING, pending, lasts_s
    return duel


def test_he_backs_off_a_metre_and_a_half_and_then_goes_sideways(duel):
    backing(duel)
    last, record = duel.now, duel.step()
    while duel.boss_move(record) == "walk_back":
        assert record["boss_animation"] == BACK
        last, record = record, duel.step()
    assert 594.0 < last["boss_pose"][1] < 594.0 + 1.5
    assert duel.boss_move(record) in ("strafe_left", "strafe_right")
    assert record["boss_pose"][1] - 594.0 == pytest.approx(1.5, abs=0.05)
    # 0.27 m in the first four stretches of 0.097 s, then 0.13 m in each: 13.5 of them.
    assert record["step"] in (14, 15)


def test_he_backs_off_for_two_seconds_at_most(new_duel, boss_with):
    def change(content):
        motion = content["move"]["walk_back"]["motion"]
        motion["forward_m"] = [0.5 * metres for metres in motion["forward_m"]]

    duel = backing(new_duel(boss_with(change)))
    record = duel.until(lambda record: duel.boss_move(record) != "walk_back", at_most=40)
    assert record["step"] * 0.097 == pytest.approx(2.0, abs=0.1)
    assert record["boss_pose"][1] - 594.0 < 1.3


def test_a_plain_retreat_has_no_end_in_metres(duel):
    # 2.6 s are 26.8 stretches: 0.27 m in the first four, 0.13 m in each of the rest.
    backing(duel, pending=NO_STRAFE, lasts_s=2.6)
    record = duel.until(lambda record: duel.boss_move(record) != "walk_back", at_most=40)
    assert record["step"] * 0.097 == pytest.approx(2.6, abs=0.1)
    assert record["boss_pose"][1] - 594.0 == pytest.approx(0.27 + 22.8 * 0.13, abs=0.15)
    assert duel.boss_move(record) not in ("strafe_left", "strafe_right")


def test_going_sideways_lasts_three_seconds_and_a_half_at_most(new_duel, spec):
    duel = new_duel(spec, phase=2)
    lasted_s = []
    for seed in range(40):
        backing(duel, seed=seed)
        duel.until(lambda record: duel.boss_move(record).startswith("strafe"), at_most=30)
        begun = duel.now["step"]
        duel.until(lambda record: not duel.boss_move(record).startswith("strafe"), at_most=60)
        lasted_s.append((duel.now["step"] - begun) * 0.097)
    assert 2.4 <= min(lasted_s) < 2.75
    assert 3.25 < max(lasted_s) <= 3.6


def test_a_boss_who_backs_off_faces_the_player(duel):
    backing(duel, pending=NO_STRAFE, lasts_s=3.0)
    duel.place_player(8.0, 40.0)
    records = duel.play(rest=8)
    turned = np.degrees(np.diff(records["boss_pose"][:3, 3]))
    assert turned == pytest.approx(7.0, abs=0.05)  # as when walking
    assert abs(bearing_of(records[-1])) < 1.0


def test_the_change_of_phase_ends_a_retreat(full_duel):
    backing(full_duel, pending=0)
    full_duel.hidden["phase"], full_duel.hidden["boss_hp"] = 1, 300.0
    record = full_duel.until(lambda record: full_duel.boss_move(record) != "walk_back", at_most=30)
    assert full_duel.boss_move(record) == "transform"


def test_in_the_first_phase_he_goes_sideways_at_once(new_duel, spec):
    duel = new_duel(spec)
    goals = set()
    for seed in range(40):
        duel.begin(away_m=8.0, seed=seed).force("chop", 2.98, blows=False, links=("chop", 0))
        duel.hidden["links_left"] = 0
        duel.step()
        goals.add(int(duel.hidden["goal"]))
    assert STRAFING in goals
    assert BACKING not in goals


# ---------------------------------------------------------------- what Iudex does not do, but a boss may

HOP_LABEL, RUN_LABEL = 28, 29
HOP_WEIGHTS = {"thrust": 3.0, "sweep": 1.0}


def add_hop(content):
    """Adds a hop of 3 m back within 0.6 s, and leaves the first phase one rule: to hop or to chop."""
    content["move"]["hop_back"] = {
        "animation": "FallingDefault", "kind": "hop", "label_end_s": 0.6, "end_s": 0.6, "source": "guess",
        "motion": {"first_s": 0.1, "step_s": 0.1, "forward_m": [-0.5] * 6, "source": "guess"},
    }  # fmt: skip
    first = content["phase"]["1"]
    first["act"]["hop_back"] = {
        "cooldown_s": 5.0, "after_odds": 0.0, "room_m": 3.0, "then": dict(HOP_WEIGHTS), "then_within_deg": 120.0,
        "source": "guess",
    }  # fmt: skip
    first["rule"] = [{"weights": {"hop_back": 70.0, "chop": 30.0}, "source": "guess"}]


@pytest.fixture(scope="module")
def hopping(boss_with):
    return boss_with(add_hop)


def hop(duel, at_s=0.0, *, away_m=8.0, seed=1):
    """Let the boss be `at_s` into a hop, as the act of that name leads to it."""
    return duel.begin(away_m=away_m, seed=seed).force("hop_back", at_s, links=("hop_back", 0))


def test_with_room_behind_him_a_hop_is_an_act_like_others(hopping):
    seen = chosen(hopping, away_m=6.0)
    assert seen == {"hop_back": pytest.approx(0.7, abs=0.035), "chop": pytest.approx(0.3, abs=0.035)}


def test_a_hop_begins_where_he_stands(new_duel, hopping):
    duel = new_duel(hopping)
    for seed in range(20):
        duel.begin(away_m=9.0, seed=seed).force("idle")
        record = duel.step()
        if duel.hidden["act"] == duel.act_row("hop_back"):
            assert duel.boss_move(record) == "hop_back"
            assert record["boss_animation"] == HOP_LABEL
            return
    raise AssertionError("he never hops")


def test_a_hop_moves_him_as_its_motion_says(new_duel, hopping):
    duel = hop(new_duel(hopping))
    records = duel.play(rest=6)
    assert records["boss_pose"][5, 1] - 594.0 == pytest.approx(3.0 * 0.582 / 0.6, abs=0.02)
    assert set(records["boss_animation"].tolist()) == {HOP_LABEL}


@pytest.mark.parametrize(
    ("boss_y", "room"),
    # At x = 140 the northern wall stands at y = 613.2. He needs 3 m and his radius of 0.8 m.
    [(609.2, True), (609.6, False), (612.0, False)],
)
def test_without_room_behind_him_he_does_not_hop(hopping, boss_y, room):
    seen = chosen(hopping, away_m=6.0, boss_y=boss_y, n=400)
    assert ("hop_back" in seen) == room
    if not room:
        assert seen == {"chop": 1.0}


def test_room_is_needed_where_the_hop_leads_only(hopping):
    # With the wall before him and the arena behind.
    seen = chosen(hopping, away_m=1.3, boss_y=574.0, n=400)
    assert seen["hop_back"] == pytest.approx(0.7, abs=0.1)


def test_who_could_only_hop_and_has_no_room_turns(boss_with):
    def change(content):
        add_hop(content)
        content["phase"]["1"]["rule"] = [{"weights": {"hop_back": 1.0}, "source": "guess"}]

    assert set(chosen(boss_with(change), away_m=6.0, boss_y=612.0, n=50)) == {""}


def test_a_hop_without_a_need_for_room_happens_anywhere(boss_with):
    def change(content):
        add_hop(content)
        del content["phase"]["1"]["act"]["hop_back"]["room_m"]

    assert chosen(boss_with(change), away_m=6.0, boss_y=612.0)["hop_back"] == pytest.approx(0.7, abs=0.035)


def test_after_a_hop_one_of_its_acts_follows_by_weight(new_duel, hopping):
    duel = new_duel(hopping)
    acts = [act.name for act in hopping.boss.phases[0].acts]
    counts = dict.fromkeys(acts, 0)
    for seed in range(1000):
        hop(duel, 0.58, seed=seed).step()
        counts[acts[duel.hidden["act"] - duel.act_row(acts[0])]] += 1
    assert {name for name, count in counts.items() if count} == {"thrust", "sweep"}
    assert counts["thrust"] / 1000 == pytest.approx(0.75, abs=0.06)  # 4.4 standard errors


@pytest.mark.parametrize(
    ("bearing_deg", "follows"), [(0.0, True), (115.0, True), (-115.0, True), (125.0, False), (-125.0, False)]
)
def test_after_a_hop_only_who_is_not_behind_him_is_attacked(new_duel, hopping, bearing_deg, follows):
    """Behind him he decides again, by the one rule: hop or chop."""
    duel = new_duel(hopping)
    acts = [act.name for act in hopping.boss.phases[0].acts]
    seen = set()
    for seed in range(30):
        hop(duel, 0.58, seed=seed)
        duel.place_player(8.0, bearing_deg)
        duel.step()
        seen.add(acts[duel.hidden["act"] - duel.act_row(acts[0])])
    assert seen == ({"thrust", "sweep"} if follows else {"hop_back", "chop"})


def test_without_anything_to_follow_he_decides_anew_after_a_hop(new_duel, boss_with):
    def change(content):
        add_hop(content)
        del content["phase"]["1"]["act"]["hop_back"]["then"]

    duel = hop(new_duel(boss_with(change)), 0.58)
    duel.step()
    assert duel.hidden["act"] in (duel.act_row("hop_back"), duel.act_row("chop"))


def test_what_follows_a_hop_is_walked_up_to(new_duel, hopping):
    duel = hop(new_duel(hopping), away_m=10.0)
    record = duel.until(lambda record: duel.boss_move(record) != "hop_back", at_most=10)
    assert duel.boss_move(record) == "walk"  # 13 m are too far for both acts


def test_a_hop_out_of_a_hop_shows_its_label_from_the_beginning(new_duel, boss_with):
    def change(content):
        add_hop(content)
        content["phase"]["1"]["act"]["hop_back"]["then"] = {"hop_back": 1.0}

    duel = hop(new_duel(boss_with(change)))
    records = duel.play(rest=12)
    shown_s = records["boss_animation_duration"][:, 0]
    assert set(records["boss_animation"].tolist()) == {HOP_LABEL}
    assert shown_s.max() < 0.61
    assert (np.diff(shown_s) < 0).sum() == 1


RUN = {"from_m": 8.0, "chance": 0.25, "always_from_m": 11.0, "approach_m": 7.5}


@pytest.fixture(scope="module")
def running(boss_with):
    """A boss who runs up to his thrusts, twice as fast as he walks, and thrusts sooner then."""

    def change(content):
        walk = content["move"]["walk"]
        forward_m = [2.0 * metres for metres in walk["motion"]["forward_m"]]
        content["move"]["run"] = walk | {
            "animation": "LandDefault",
            "motion": walk["motion"] | {"forward_m": forward_m},
        }
        first = content["phase"]["1"]
        first["act"]["thrust"]["run"] = RUN
        first["rule"] = [{"weights": {"thrust": 1.0}, "source": "guess"}]

    return boss_with(change)


@pytest.mark.parametrize(
    ("away_m", "share"),
    [(7.0, 0.0), (7.95, 0.0), (8.05, 0.25), (10.95, 0.25), (11.05, 1.0), (18.0, 1.0)],
)
def test_far_away_he_may_run_and_farther_he_does(running, away_m, share):
    engine = chose(running, away_m=away_m)
    assert engine.hidden["running"].mean() == pytest.approx(share, abs=0.03 if 0.0 < share < 1.0 else 0.0)
    runs = engine.hidden["boss_move"] == running.boss.move_index("run")
    assert (runs == (engine.hidden["running"] == 1)).all()
    walks = engine.hidden["boss_move"] == running.boss.move_index("walk")
    assert (walks | runs).all()


def test_running_shows_its_own_label_and_is_faster(new_duel, running):
    duel = new_duel(running).begin(away_m=16.0).force("idle")
    records = duel.play(rest=12)
    assert set(records["boss_animation"].tolist()) == {RUN_LABEL}
    metres = np.linalg.norm(np.diff(records["boss_pose"][:, :2].astype(float), axis=0), axis=1)
    assert metres[6:].mean() == pytest.approx(2.0 * 0.1735, abs=0.06)


@pytest.mark.parametrize(("move", "within_m", "step_m"), [("run", 7.5, 0.46), ("walk", 6.3, 0.23)])
def test_running_he_begins_from_farther_away(new_duel, running, move, within_m, step_m):
    duel = new_duel(running).begin(away_m=within_m + 1.3).force(move)
    duel.hidden["goal"], duel.hidden["goal_left_s"], duel.hidden["act"] = APPROACH, 3.0, duel.act_row("thrust")
    duel.hidden["running"] = move == "run"
    before, record = duel.now, duel.step()
    while duel.boss_move(record) == move:
        before, record = record, duel.step()
    assert duel.boss_move(record) == "thrust"
    assert within_m - step_m / 6 < distance_of(before) < within_m + step_m  # he looks at the beginning of a tick


def test_running_takes_no_longer_than_the_approach_may(new_duel, running):
    duel = new_duel(running).begin(away_m=18.0).force("idle")
    duel.step()
    duel.hidden["goal_left_s"] = 0.5
    record = duel.until(lambda record: duel.boss_move(record) == "thrust", at_most=10)
    assert record["step"] * 0.097 == pytest.approx(0.6, abs=0.11)
    assert distance_of(record) > 12.0


def test_who_walks_up_before_he_decides_never_runs(new_duel, running):
    duel = new_duel(running).begin(away_m=18.0, still=False)
    assert set(duel.play(rest=20)["boss_animation"].tolist()) == {WALK}


# ---------------------------------------------------------------- rules that wait


def waiting(*every_s):
    """Changes the first phase: rules that wait, one for each act of ("leap", "grab"), then the thrust."""

    def change(content):
        rules = [
            {"weights": {act: 1.0}, "every_s": wait_s, "source": "guess"}
            for act, wait_s in zip(("leap", "grab"), every_s, strict=False)
        ]
        content["phase"]["1"]["rule"] = [*rules, {"weights": {"thrust": 1.0}, "source": "guess"}]

    return change


def decision(duel):
    """Let the boss decide now; the act."""
    duel.force("idle")
    duel.step()
    return duel.spec.boss.phases[0].acts[duel.hidden["act"] - duel.engine.tables[0]["phases"][0]["first_act"]].name


def test_a_rule_that_waits_fits_at_once_and_then_after_its_time(new_duel, boss_with):
    duel = new_duel(boss_with(waiting(10.0))).begin(away_m=12.0)
    assert decision(duel) == "leap"
    decided_s = float(duel.hidden["rule_ready_s"][0]) - 10.0
    assert decided_s < 0.1
    assert [decision(duel) for _ in range(3)] == ["thrust"] * 3
    duel.hidden["clock_s"] = decided_s + 9.9
    assert decision(duel) == "thrust"
    duel.hidden["clock_s"] = decided_s + 10.05
    assert decision(duel) == "leap"
    assert decision(duel) == "thrust"


def test_rules_wait_each_for_itself(new_duel, boss_with):
    duel = new_duel(boss_with(waiting(10.0, 4.0))).begin(away_m=12.0)
    assert [decision(duel) for _ in range(3)] == ["leap", "grab", "thrust"]
    duel.hidden["clock_s"] = 5.0
    assert [decision(duel) for _ in range(2)] == ["grab", "thrust"]
    duel.hidden["clock_s"] = 11.0
    assert [decision(duel) for _ in range(3)] == ["leap", "grab", "thrust"]


def test_a_rule_that_does_not_fit_keeps_waiting(new_duel, boss_with):
    def change(content):
        waiting(10.0)(content)
        content["phase"]["1"]["rule"][0]["gap_m"] = [0.0, 5.0]

    duel = new_duel(boss_with(change)).begin(away_m=12.0)
    assert decision(duel) == "thrust"
    duel.place_player(5.0)
    assert decision(duel) == "leap"


def test_every_fight_and_phase_begins_with_its_waiting_rules(new_duel, boss_with):
    def change(content):
        waiting(10.0)(content)
        # A second phase with a rule that waits, whose clock must not be that of the first.
        content["phase"]["2"]["rule"].insert(0, {"weights": {"beast_tail": 1.0}, "every_s": 99.0, "source": "guess"})

    duel = new_duel(boss_with(change), changes=True).begin(away_m=12.0)
    assert decision(duel) == "leap"
    assert duel.hidden["rule_ready_s"][0] > 9.0
    duel.begin(away_m=12.0)
    assert decision(duel) == "leap"
    duel.force("transform", 4.58)
    duel.step()
    assert duel.now["phase"] == 2
    assert (duel.hidden["rule_ready_s"] == 0.0).all()


# ---------------------------------------------------------------- interrupts and links


def interrupting(content):
    """Adds that at 0.5 s of a sweep or a chop the boss may drop it for a thrust, which a slam follows."""
    first = content["phase"]["1"]
    first["interrupt"] = [
        {
            "moves": ["sweep", "chop"], "at_s": 0.5, "bearing_deg": [-30.0, 30.0], "gap_m": [3.0, 9.0],
            "act": "thrust", "source": "guess",
        }
    ]  # fmt: skip
    first["act"]["thrust"]["chains"] = [{"weight": 1.0, "links": [{"move": "slam", "within_m": 30.0}]}]


@pytest.fixture(scope="module")
def interrupted(new_duel, boss_with):
    return new_duel(boss_with(interrupting))


def in_the_middle_of(duel, move, at_s, *, away_m, bearing_deg=0.0):
    duel.begin(away_m=away_m).force(move, at_s, blows=False, links=(move, 0))
    duel.place_player(away_m, bearing_deg)
    return duel


@pytest.mark.parametrize("move", ["sweep", "chop"])
def test_an_interrupt_comes_at_its_time(interrupted, move):
    in_the_middle_of(interrupted, move, 0.0, away_m=6.0)
    record = interrupted.until(lambda record: interrupted.boss_move(record) != move, at_most=10)
    assert interrupted.boss_move(record) == "thrust"
    assert record["boss_animation"] == 12
    # He was 0.5 s into the move when he dropped it.
    assert record["step"] * 0.097 - record["boss_move_s"] == pytest.approx(0.5, abs=0.02)
    assert record["boss_animation_duration"][0] == pytest.approx(record["boss_move_s"], abs=1e-5)


@pytest.mark.parametrize(
    ("away_m", "bearing_deg", "drops"),
    [
        # The gap is 0.8 m less.
        (3.9, 0.0, True),
        (3.6, 0.0, False),
        (9.7, 0.0, True),
        (9.9, 0.0, False),
        (6.0, 28.0, True),
        (6.0, -28.0, True),
        (6.0, 40.0, False),
        (6.0, -40.0, False),
        (6.0, 180.0, False),
    ],
)
def test_an_interrupt_needs_the_player_in_its_region(interrupted, away_m, bearing_deg, drops):
    in_the_middle_of(interrupted, "sweep", 0.49, away_m=away_m, bearing_deg=bearing_deg)
    record = interrupted.step()
    assert interrupted.boss_move(record) == ("thrust" if drops else "sweep")


def test_an_interrupt_is_looked_at_only_once(interrupted):
    in_the_middle_of(interrupted, "sweep", 0.49, away_m=12.0)
    interrupted.play(rest=2)
    interrupted.place_player(6.0)
    assert interrupted.boss_move(interrupted.play(rest=6)[-1]) == "sweep"


def test_every_move_has_its_own_interrupt(new_duel, boss_with):
    def change(content):
        interrupting(content)
        content["phase"]["1"]["interrupt"][0] |= {"moves": ["chop", "ground_stab"], "at_s": 0.2}

    duel = new_duel(boss_with(change)).begin(away_m=10.0).force("chop", 2.48, blows=False, links=("chop", 0))
    duel.hidden["interrupts_checked"] = 0b11  # both were looked at in the chop
    duel.place_player(5.0)
    seen = [duel.boss_move(record) for record in duel.play(rest=5)]
    assert "ground_stab" in seen
    assert seen[-1] == "thrust"


def test_an_interrupt_leads_to_the_chain_of_its_act(interrupted):
    in_the_middle_of(interrupted, "sweep", 0.45, away_m=6.0)
    interrupted.step()
    assert interrupted.hidden["act"] == interrupted.act_row("thrust")
    assert interrupted.hidden["act_ready_s"][interrupted.act_row("thrust")] > 7.0  # it cools down
    seen = ["thrust"]
    for _ in range(20):
        interrupted.hidden["hits_landed"] = -1
        move = interrupted.boss_move(interrupted.step())
        if move != seen[-1]:
            seen.append(move)
    assert seen[:2] == ["thrust", "slam"]


def test_other_moves_are_not_interrupted(interrupted):
    in_the_middle_of(interrupted, "back_swing", 0.45, away_m=6.0)
    assert interrupted.boss_move(interrupted.play(rest=3)[-1]) == "back_swing"


def test_interrupts_belong_to_their_phase(interrupted):
    in_the_middle_of(interrupted, "sweep", 0.45, away_m=6.0).hidden["phase"] = 2
    assert interrupted.boss_move(interrupted.play(rest=3)[-1]) == "sweep"


@pytest.mark.parametrize(
    ("bearing_deg", "follows"),
    [(0.0, "slam"), (-40.0, "slam"), (85.0, "slam"), (-50.0, "thrust"), (95.0, "thrust"), (180.0, "thrust")],
)
def test_a_link_may_ask_for_a_bearing(new_duel, boss_with, bearing_deg, follows):
    def change(content):
        link = {"move": "slam", "within_m": 9.0, "bearing_deg": [-45.0, 90.0]}
        content["phase"]["1"]["act"]["thrust"]["chains"] = [{"weight": 1.0, "links": [link]}]
        del content["move"]["thrust"]["track"]

    duel = new_duel(boss_with(change)).begin(away_m=10.0).force("thrust", 1.0, blows=False, links=("thrust", 0))
    duel.place_player(6.0, bearing_deg)
    assert duel.boss_move(duel.play(rest=2)[-1]) == follows


@pytest.mark.parametrize("bearing_deg", [0.0, 90.0, 180.0, -180.0])
def test_a_link_without_a_bearing_follows_all_round(duel, bearing_deg):
    duel.begin(away_m=10.0).force("thrust", 1.04, blows=False, links=("thrust", 3))
    duel.place_player(6.0, bearing_deg)
    assert duel.boss_move(duel.play(rest=2)[-1]) == "slam"


# ---------------------------------------------------------------- windows: moments that last, chances, moves, cooldowns


def with_interrupt(**keys):
    """Adds one interrupt of a sweep, which leads to a slam unless it says otherwise."""

    def change(content):
        row = {"moves": ["sweep"], "at_s": 0.5, "source": "guess"} | keys
        if "act" not in keys:
            row |= {"move": "slam"}
        content["phase"]["1"]["interrupt"] = [row]

    return change


def test_an_interrupt_may_lead_to_a_move(new_duel, boss_with):
    duel = in_the_middle_of(new_duel(boss_with(with_interrupt())), "sweep", 0.45, away_m=6.0)
    assert duel.boss_move(duel.step()) == "slam"


def test_a_moment_that_lasts_waits_for_the_player(new_duel, boss_with):
    duel = new_duel(boss_with(with_interrupt(to_s=1.2, gap_m=[0.0, 5.0])))
    in_the_middle_of(duel, "sweep", 0.4, away_m=9.0)
    assert duel.boss_move(duel.play(rest=3)[-1]) == "sweep"
    duel.place_player(4.0)
    assert duel.boss_move(duel.step()) == "slam"


def test_a_moment_that_lasts_ends(new_duel, boss_with):
    duel = new_duel(boss_with(with_interrupt(to_s=0.7, gap_m=[0.0, 5.0])))
    in_the_middle_of(duel, "sweep", 0.4, away_m=9.0)
    duel.play(rest=5)
    duel.place_player(4.0)
    assert duel.boss_move(duel.step()) == "sweep"


@pytest.mark.parametrize("chance", [0.0, 0.3, 1.0])
def test_an_interrupt_has_its_chance(boss_with, chance):
    spec = boss_with(with_interrupt(chance=chance))
    n = 3000
    engine = SimEngine(spec, n)
    engine.reset(np.ones(n, np.bool_), standard_starts(n), np.arange(n, dtype=np.uint64))
    engine.hidden["boss_move"], engine.hidden["boss_move_s"] = spec.boss.move_index("sweep"), 0.45
    engine.step(np.full(n, ACTION_CONTROLS[NOTHING]))
    share = (engine.fights["boss_move"] == spec.boss.move_index("slam")).mean()
    assert share == pytest.approx(chance, abs=0.03)


@pytest.mark.parametrize(("down", "drops"), [(True, False), (False, True)])
def test_an_interrupt_may_wait_for_a_player_on_the_ground(new_duel, boss_with, down, drops):
    duel = in_the_middle_of(new_duel(boss_with(with_interrupt(standing=True))), "sweep", 0.45, away_m=6.0)
    if down:
        duel.hidden["player_move"] = duel.player_moves.index("DamageExLarge")
    assert duel.boss_move(duel.step()) == ("slam" if drops else "sweep")


@pytest.mark.parametrize(("ready_s", "drops"), [(50.0, False), (0.0, True)])
def test_an_interrupt_may_ask_for_an_act_that_has_cooled_down(new_duel, boss_with, ready_s, drops):
    duel = in_the_middle_of(new_duel(boss_with(with_interrupt(act="thrust", cooled=True))), "sweep", 0.45, away_m=6.0)
    acts = [act.name for act in duel.spec.boss.phases[0].acts]
    duel.hidden["act_ready_s"][acts.index("thrust")] = ready_s
    assert duel.boss_move(duel.step()) == ("thrust" if drops else "sweep")


def hopping_early(content):
    add_hop(content)
    content["move"]["sweep"] |= {"hop_s": 1.0}
    content["move"]["sweep"]["source"] = "guess"


@pytest.mark.parametrize(("act", "at_s"), [("hop_back", 1.0), ("chop", None)])
def test_only_a_hop_begins_before_the_end_of_an_attack(new_duel, boss_with, act, at_s):
    def change(content):
        hopping_early(content)
        content["phase"]["1"]["rule"] = [{"weights": {act: 1.0}, "source": "guess"}]

    duel = new_duel(boss_with(change))
    sweep = duel.spec.boss.moves[duel.spec.boss.move_index("sweep")]
    duel.begin(away_m=5.0).force("sweep", 0.8, blows=False)
    record = duel.until(lambda record: duel.boss_move(record) != "sweep", at_most=40)
    assert duel.boss_move(record) == act
    assert 0.8 + 0.097 * record["step"] - record["boss_move_s"] == pytest.approx(at_s or sweep.end_s, abs=0.03)


# ---------------------------------------------------------------- rules that look back, acts that last


def with_rules(*rules, **acts):
    """Leaves the first phase these rules, and gives acts other keys."""

    def change(content):
        first = content["phase"]["1"]
        first["rule"] = [{"source": "guess"} | rule for rule in rules]
        for name, keys in acts.items():
            base = {"cooldown_s": 0.0, "after_odds": 0.0, "source": "guess"}
            first["act"][name] = first["act"].get(name, base) | keys

    return change


def decided_after(duel, move, **hidden):
    """The act that follows the end of a move."""
    end_s = duel.spec.boss.moves[duel.spec.boss.move_index(move)].label_end_s
    duel.begin(away_m=6.0).force(move, end_s - 0.05, blows=False)
    duel.place_player(6.0)
    for key, value in hidden.items():
        duel.hidden[key] = value
    duel.step()
    acts = [act.name for act in duel.spec.boss.phases[0].acts]
    return acts[duel.hidden["act"]] if duel.hidden["act"] >= 0 else ""


AFTER_A_CHOP = {"after": ["chop", "slam"], "weights": {"chop": 1.0}}
OTHERWISE = {"weights": {"sweep": 1.0}}


@pytest.mark.parametrize(("move", "act"), [("chop", "chop"), ("slam", "chop"), ("thrust", "sweep")])
def test_a_rule_may_follow_some_moves_only(new_duel, boss_with, move, act):
    assert decided_after(new_duel(boss_with(with_rules(AFTER_A_CHOP, OTHERWISE))), move) == act


@pytest.mark.parametrize(("count", "act"), [(4.0, "sweep"), (4.5, "chop")])
def test_a_rule_may_ask_for_a_count(new_duel, boss_with, count, act):
    duel = new_duel(boss_with(with_rules({"count_over": 4.0, "weights": {"chop": 1.0}}, OTHERWISE)))
    assert decided_after(duel, "thrust", count=count) == act


@pytest.mark.parametrize(("ready_s", "act"), [(99.0, "sweep"), (0.0, "chop")])
def test_a_rule_may_ask_for_an_act_that_is_ready(new_duel, boss_with, ready_s, act):
    duel = new_duel(boss_with(with_rules({"ready": "chop", "weights": {"chop": 1.0}}, OTHERWISE)))
    acts = [act.name for act in duel.spec.boss.phases[0].acts]
    ready = duel.begin().hidden["act_ready_s"].copy()
    ready[acts.index("chop")] = ready_s
    assert decided_after(duel, "thrust", act_ready_s=ready) == act


def test_moves_count_and_circling_begins_anew(new_duel, boss_with):
    def change(content):
        for name, count in (("thrust", 1.0), ("slam", 0.25)):
            content["move"][name] |= {"count": count, "source": "guess"}

    duel = new_duel(boss_with(change)).begin(away_m=3.0).force("thrust", blows=False, links=("thrust", 3))
    duel.hidden["count"] = 2.0
    duel.until(lambda record: duel.boss_move(record) == "slam", at_most=30)
    assert duel.hidden["count"] == 2.25
    duel.hidden["goal"], duel.hidden["goal_left_s"] = STRAFING, 1.0
    duel.hidden["strafe_move"] = duel.spec.boss.move_index("strafe_left")
    duel.hidden["boss_move_s"] = duel.spec.boss.moves[duel.spec.boss.move_index("slam")].end_s
    duel.hidden["decided"] = 1
    assert duel.boss_move(duel.step()) == "strafe_left"
    assert duel.hidden["count"] == 0.0


@pytest.mark.parametrize(("cooling_weight", "share"), [(0.0, 0.0), (1.0, 0.5)])
def test_an_act_says_what_it_weighs_while_it_cools_down(boss_with, cooling_weight, share):
    rule = {"weights": {"chop": 70.0, "sweep": 1.0}}
    spec = boss_with(with_rules(rule, chop={"cooling_weight": cooling_weight}))
    assert chosen(spec, away_m=4.0, cooling=("chop",), n=2000).get("chop", 0.0) == pytest.approx(share, abs=0.04)


@pytest.mark.parametrize(("name", "lasts_s"), [("strafe_right", 1.0), ("walk", 0.5)])
def test_an_act_of_walking_lasts(new_duel, boss_with, name, lasts_s):
    acts = {name: {"lasts_s": [lasts_s, lasts_s]}}
    spec = boss_with(with_rules({"every_s": 50.0, "weights": {name: 1.0}}, OTHERWISE, **acts))
    duel = new_duel(spec).begin(away_m=12.0, still=False)
    duel.hidden["is_first_approach"] = 0
    assert duel.boss_move(duel.step()) == name
    duel.until(lambda _: duel.hidden["act"] >= 0, at_most=30)
    assert duel.now["step"] * 0.097 == pytest.approx(lasts_s, abs=0.11)


def test_circling_ends_when_the_player_is_near(new_duel, boss_with):
    acts = {"strafe_right": {"lasts_s": [9.0, 9.0], "until_m": 5.0}}
    spec = boss_with(with_rules({"gap_m": [5.0, 99.0], "weights": {"strafe_right": 1.0}}, OTHERWISE, **acts))
    duel = new_duel(spec).begin(away_m=9.0, still=False)
    duel.hidden["is_first_approach"] = 0
    assert duel.boss_move(duel.step()) == "strafe_right"
    duel.place_player(4.9)
    duel.step()
    assert duel.hidden["act"] == duel.act_row("sweep")


def test_circling_that_would_be_over_at_once_counts_as_done(new_duel, boss_with):
    acts = {"strafe_right": {"lasts_s": [9.0, 9.0], "until_m": 7.0}}
    spec = boss_with(with_rules({"count_over": 4.0, "weights": {"strafe_right": 1.0}}, OTHERWISE, **acts))
    duel = new_duel(spec)
    assert decided_after(duel, "thrust", count=5.0) == "sweep"
    assert duel.hidden["count"] == 0.0


@pytest.mark.parametrize("gives_up", [True, False])
def test_an_approach_that_takes_too_long_is_given_up_or_not(new_duel, boss_with, gives_up):
    keys = {"approach_m": 2.0, "approach_s": 0.5, "gives_up": gives_up}
    rules = {"every_s": 50.0, "weights": {"chop": 1.0}}, {"weights": {"turn": 1.0}}
    duel = new_duel(boss_with(with_rules(*rules, chop=keys))).begin(away_m=15.0, still=False)
    duel.hidden["is_first_approach"] = 0
    seen = {duel.boss_move(record) for record in duel.play(rest=8)}
    assert ("chop" in seen) is not gives_up
