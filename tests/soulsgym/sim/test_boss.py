"""The boss: decisions, chains, walking and turning, the change of phase."""

import itertools
import math

import numpy as np
import pytest

from soulsgym.controls import ACTION_CONTROLS, NOTHING
from soulsgym.engine import standard_starts
from soulsgym.sim.engine import SimEngine

IDLE, WALK, LEFT, RIGHT = 23, 19, 20, 21
TURN_RIGHT, TURN_RIGHT_AROUND, TURN_LEFT, TURN_LEFT_AROUND = 24, 25, 26, 27
UNKNOWN = -1
APPROACH = 2


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
        duel.hidden["hit_bits"] = -1
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
def watched(moveset):
    """What 128 bosses of each phase do in a minute, with players who run about: [phase][step][fight]."""
    played = {}
    for phase in (1, 2):
        engine = SimEngine(moveset, 128, phase=phase)
        starts = standard_starts(128)
        starts["random_pose"] = 1
        engine.reset(np.ones(128, np.bool_), starts, np.arange(128, dtype=np.uint64))
        generator = np.random.default_rng(8)
        records = []
        for _ in range(600):
            engine.hidden["hp"] = 454.0
            engine.step(ACTION_CONTROLS[generator.choice([0, 1, 7, 2, 8, 10, 12, NOTHING], 128)])
            records.append(engine.fights.copy())
        played[phase] = np.array(records)
    return played


@pytest.mark.parametrize("phase", [1, 2])
def test_an_attack_is_cut_short_only_by_a_link_of_its_chain(moveset, watched, phase):
    """Anything else waits for the end of the animation."""
    moves = moveset.boss.moves
    allowed = links_of(moveset.boss.phases[phase - 1])
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
def test_a_phase_uses_all_its_moves_and_only_those(moveset, watched, phase):
    part = moveset.boss.phases[phase - 1]
    own = {act.name for act in part.acts} | {name for pair in links_of(part) for name in pair}
    shared = {move.name for move in moveset.boss.moves if move.kind in ("idle", "walk", "strafe", "turn", "executed")}
    shared |= {move.grab_move for move in moveset.boss.moves} | {"stagger", "parried"}
    seen = {moveset.boss.moves[index].name for index in np.unique(watched[phase]["boss_move"])}
    assert seen <= own | shared
    assert own <= seen
    assert set(watched[phase]["phase"].ravel().tolist()) == {phase}


# ---------------------------------------------------------------- labels


def test_the_label_of_the_next_attack_leads_its_start(moveset, watched):
    """Chosen while the last attack still recovers, it is shown at once and its duration runs on at the real start."""
    moves = moveset.boss.moves
    names = moveset.boss_animations
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


def test_a_recovering_boss_shows_idle_or_the_next_attack(moveset, watched):
    names = moveset.boss_animations
    for step in watched[1][::7]:
        for fight in step[step["outcome"] == 0]:
            move = moveset.boss.moves[fight["boss_move"]]
            shown = names[fight["boss_animation"]]
            if move.kind == "attack" and shown != move.animation:
                assert fight["boss_move_s"] >= move.label_end_s - 0.001
                assert shown == "IdleBattle" or shown.startswith("Attack")


# ---------------------------------------------------------------- walking and turning


def walking(duel, *, away_m, act=None, seconds=3.0, move="walk"):
    duel.begin(away_m=away_m).force(move, blows=False)
    duel.hidden["goal"], duel.hidden["goal_t"] = APPROACH, seconds
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


def chosen(moveset, *, away_m, bearing_deg=0.0, cooling=(), phase=1, n=4000, down=False):
    """How often each act is chosen at a place, as shares; "" is none yet."""
    engine = SimEngine(moveset, n, phase=phase)
    starts = standard_starts(n)
    starts["boss_pose"] = (140.0, 592.0, 0.0)
    bearing = math.radians(bearing_deg)
    starts["player_pose"] = (140.0 - away_m * math.sin(bearing), 592.0 - away_m * math.cos(bearing), 0.0)
    engine.reset(np.ones(n, np.bool_), starts, np.arange(n, dtype=np.uint64))
    engine.hidden["first"] = 0
    acts = [act.name for act in moveset.boss.phases[phase - 1].acts]
    for name in cooling:
        engine.hidden["ready_s"][:, acts.index(name)] = 1e9
    if down:
        engine.hidden["pmove"] = [move.name for move in moveset.player.moves].index("DamageExLarge")
    engine.step(np.full(n, ACTION_CONTROLS[NOTHING]))
    first = engine.tables[0]["phases"][phase - 1]["act"]
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
def test_the_distance_decides_what_he_does(moveset, away_m, shares):
    total = sum(shares.values())
    seen = chosen(moveset, away_m=away_m)
    assert set(seen) == set(shares)
    for name, weight in shares.items():
        assert seen[name] == pytest.approx(weight / total, abs=0.035)  # 4.4 standard errors of 4,000 draws


def test_what_cools_down_is_hardly_chosen_again(moveset):
    seen = chosen(moveset, away_m=6.0, cooling=("thrust",))
    # Weight 1 beside 10 and 10.
    assert seen["thrust"] == pytest.approx(1 / 21, abs=0.02)
    assert seen["sweep"] == pytest.approx(10 / 21, abs=0.04)


def test_taking_an_act_starts_its_cooldown(duel):
    duel.begin(away_m=5.0, still=False)
    duel.hidden["first"] = 0
    duel.step()
    phase = duel.moveset.boss.phases[0]
    row = int(duel.hidden["act"]) - duel.act_row(phase.acts[0].name)
    assert duel.hidden["ready_s"][row] == pytest.approx(phase.acts[row].cooldown_s, abs=0.02)
    assert (np.delete(duel.hidden["ready_s"], row) == 0.0).all()


def test_who_lies_on_the_ground_is_mostly_waited_for(moveset):
    seen = chosen(moveset, away_m=6.0, down=True)
    assert seen[""] == pytest.approx(300 / 395, abs=0.035)


def test_beside_him_other_acts_are_chosen(moveset):
    seen = chosen(moveset, away_m=3.0, bearing_deg=90.0)
    assert set(seen) == {"sweep", "chop"}
    assert seen["sweep"] == pytest.approx(0.55, abs=0.035)
    assert set(chosen(moveset, away_m=3.0, bearing_deg=-90.0)) == {"sweep", "chop", "back_swing"}


def test_behind_him_he_only_turns(moveset):
    assert set(chosen(moveset, away_m=3.0, bearing_deg=150.0, n=200)) == {""}


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
    assert len(changing) * 0.097 == pytest.approx(4.6, abs=0.11)
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
        duel.hidden["hp"] = 454.0
        records.append(duel.step())
    assert {int(record["phase"]) for record in records} == {1}
    assert UNKNOWN not in {int(record["boss_animation"]) for record in records}


def test_the_second_phase_has_no_third(full_duel):
    full_duel.begin(away_m=12.0, still=False, boss_hp=10.0, phase=2)
    records = full_duel.play(rest=60)
    assert set(records["phase"].tolist()) == {2}


def test_the_burst_of_the_change_throws_the_player_back(full_duel):
    full_duel.begin(away_m=3.0, still=False, boss_hp=300.0)
    record = full_duel.until(lambda record: record["hit_by"] >= 0, at_most=40)
    assert full_duel.boss_move(record) == "transform"
    assert record["player_animation"] == 10
