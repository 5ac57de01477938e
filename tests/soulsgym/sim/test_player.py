"""The player's rules, with a boss who does nothing."""

import math

import numpy as np
import pytest

from soulsgym.actions import ACTION_CONTROLS, CONTROL, NOTHING, Button
from soulsgym.engine import standard_starts
from soulsgym.sim.engine import SimEngine

FORWARD, RIGHT, BACK, LEFT = 0, 2, 4, 6
ROLL_FORWARD, ROLL_RIGHT, ROLL_BACK, ROLL_LEFT = 8, 10, 12, 14
LIGHT, HEAVY, PARRY = 16, 17, 18
IDLE, MOVE = 17, 18
FALL_START, FALL_LOOP = 43, 46
ROLL_A, ROLL_B = 21, 22
STEP_S = 0.097
"""What a step adds to a duration."""


def labels(records):
    return records["player_animation"].tolist()


def stamina(records):
    return records["player_sp"][:, 0].tolist()


def open_kinds(records):
    """Is walking, rolling, attacking open?"""
    return records["action_mask"][:, [0, 8, 16]].tolist()


# ---------------------------------------------------------------- rolling


@pytest.mark.parametrize(
    ("action", "axis", "metres"),
    [
        # Measured: metres in steps 2 to 8 along the commanded direction.
        (ROLL_FORWARD, (0.0, 1.0), (0.53, 0.52, 0.64, 0.82, 0.39, 0.13, 0.22)),
        (ROLL_RIGHT, (1.0, 0.0), (0.53, 0.55, 0.68, 0.75, 0.28, 0.35, 0.32)),
        (ROLL_LEFT, (-1.0, 0.0), (0.52, 0.55, 0.67, 0.74, 0.24, 0.26, 0.41)),
    ],
)
def test_a_roll_moves_as_measured(duel, steps_of, action, axis, metres):
    start = duel.now
    moved = steps_of(duel.play(action, rest=7), start)
    assert moved[1:] @ axis == pytest.approx(metres, abs=0.05)
    sideways = moved[1:] @ (axis[1], -axis[0])
    assert np.abs(sideways).max() < 0.06


@pytest.mark.parametrize("action", range(8, 16))
def test_a_roll_covers_the_measured_way_in_every_direction(duel, steps_of, action):
    start = duel.now
    moved = steps_of(duel.play(action, rest=7), start)[1:].sum(axis=0)
    assert 3.15 < np.hypot(*moved) < 3.65
    # Clockwise from forward, which is +y here.
    angle = math.atan2(moved[0], moved[1])
    error = (angle - (action - 8) * math.pi / 4 + math.pi) % (2 * math.pi) - math.pi
    assert abs(math.degrees(error)) < 6.0


def test_left_and_right_rolls_mirror_each_other_in_the_camera_frame(duel, steps_of):
    start = duel.now
    right = steps_of(duel.play(ROLL_RIGHT, rest=4), start)
    left = steps_of(duel.begin().play(ROLL_LEFT, rest=4), start)
    assert left * (-1.0, 1.0) == pytest.approx(right, abs=0.02)


def test_the_heading_is_frozen_in_a_roll_and_then_swings_to_the_boss(duel):
    records = duel.play(ROLL_RIGHT, rest=10)
    heading, at_s = records["player_pose"][:, 3], records["player_animation_duration"][:, 0]
    frozen = heading[(at_s > 0.12) & (at_s < 0.69)]
    assert len(frozen) == 6
    assert np.ptp(frozen) == 0.0
    last = records[-1]
    to_boss = math.atan2(*-(last["boss_pose"][:2] - last["player_pose"][:2]))
    assert heading[-1] == pytest.approx(to_boss, abs=0.1)
    assert abs(heading[-1] - frozen[0]) > 0.2


def test_rolls_out_of_rolls_alternate_their_ids(duel):
    seen = [labels(duel.play(ROLL_BACK, rest=7))[0] for _ in range(4)]
    assert seen == [ROLL_A, ROLL_B, ROLL_A, ROLL_B]


def test_a_roll_after_a_pause_has_the_first_id_again(duel):
    duel.play(ROLL_BACK, rest=7)
    duel.play(ROLL_FORWARD, rest=7)
    duel.until(lambda record: record["player_animation"] == IDLE)
    duel.play(rest=4)
    assert duel.step(ROLL_BACK)["player_animation"] == ROLL_A


def test_a_roll_right_after_a_roll_and_a_step_of_walking_has_the_second_id(duel):
    duel.play(ROLL_BACK, rest=7)
    assert duel.step(FORWARD)["player_animation"] == MOVE
    assert duel.step(ROLL_FORWARD)["player_animation"] == ROLL_B


def test_control_returns_eight_steps_after_the_press(duel):
    records = duel.play(ROLL_FORWARD, rest=7)
    assert records["player_animation_duration"][:, 0] == pytest.approx(0.078 + STEP_S * np.arange(8), abs=0.006)
    assert open_kinds(records) == [[0, 0, 0]] * 7 + [[1, 1, 1]]


def test_the_press_that_ends_a_roll_is_a_new_roll_at_full_length(duel, steps_of):
    duel.begin(away_m=15.0).play(ROLL_FORWARD, rest=7)
    start = duel.now
    assert steps_of(duel.play(ROLL_FORWARD, rest=7), start)[1:].sum() == pytest.approx(3.24, abs=0.12)


def test_a_roll_is_invulnerable_at_first(duel):
    records = duel.play(ROLL_FORWARD, rest=7)
    assert records["invulnerable"].tolist() == [1, 1, 1, 1, 0, 0, 0, 0]


def test_rolling_without_a_direction_is_a_step_back(duel, steps_of):
    start = duel.now
    duel.engine.step(np.array([(-1, Button.ROLL)], CONTROL))
    records = duel.play(rest=6)
    assert labels(records)[0] == 20
    assert steps_of(records, start)[:, 1].sum() == pytest.approx(-2.1, abs=0.1)


def test_a_step_back_costs_eleven_and_protects_from_nothing(duel):
    duel.engine.step(np.array([(-1, Button.ROLL)], CONTROL))
    records = np.array([duel.now, *duel.play(rest=6)])
    assert labels(records) == [20] * 7
    assert stamina(records) == [84.0] * 7
    assert not records["invulnerable"].any()


# ---------------------------------------------------------------- walking


@pytest.mark.parametrize(
    ("action", "axis", "first_m", "full_m"),
    [
        (FORWARD, (0.0, 1.0), (0.24, 0.31), (0.36, 0.41)),
        (RIGHT, (1.0, 0.0), (0.24, 0.31), (0.36, 0.42)),
        (BACK, (0.0, -1.0), (0.115, 0.135), (0.235, 0.255)),
        (LEFT, (-1.0, 0.0), (0.16, 0.28), (0.33, 0.40)),
    ],
)
def test_walking_ramps_up_in_one_step(duel, steps_of, action, axis, first_m, full_m):
    start = duel.now
    metres = steps_of(duel.play(*[action] * 4), start) @ axis
    assert first_m[0] < metres[0] < first_m[1]
    assert all(full_m[0] < step_m < full_m[1] for step_m in metres[1:])
    assert metres[2] == pytest.approx(metres[3], abs=0.005)


def test_one_step_of_walking_stops_dead(duel, steps_of):
    start = duel.step(FORWARD)
    records = duel.play(rest=3)
    assert steps_of(records, start).tolist() == [[0.0, 0.0]] * 3
    assert labels(records) == [MOVE] * 3


def test_the_move_label_lingers_and_becomes_idle(duel):
    duel.step(FORWARD)
    duel.until(lambda record: record["player_animation"] == IDLE, at_most=5)


@pytest.mark.parametrize(
    ("action", "label", "slide_m"), [(FORWARD, 23, 0.22), (BACK, 24, 0.15), (LEFT, 25, 0.23), (RIGHT, 26, 0.23)]
)
def test_two_steps_of_walking_end_in_a_slide(duel, steps_of, action, label, slide_m):
    start = duel.play(action, action)[-1]
    records = duel.play(rest=4)
    moved = np.hypot(*steps_of(records, start).T)
    assert labels(records)[:2] == [label] * 2
    assert moved[0] == pytest.approx(slide_m, abs=0.02)
    assert moved[1] < 0.12
    assert moved[3] == 0.0
    assert labels(records)[3] == IDLE


def test_everything_is_open_while_walking_and_stopping(duel):
    assert duel.play(FORWARD, FORWARD, NOTHING, NOTHING, NOTHING)["action_mask"].all()


def test_walking_faces_the_boss_and_standing_does_not_turn(duel):
    duel.begin(away_m=4.0)
    record = duel.play(*[RIGHT] * 4)[-1]
    to_boss = math.atan2(*-(record["boss_pose"][:2] - record["player_pose"][:2]))
    assert record["player_pose"][3] == pytest.approx(to_boss, abs=0.08)
    settled = duel.play(rest=3)[-1]
    duel.hidden["boss_x"] += 3.0
    assert duel.play(rest=3)[-1]["player_pose"][3] == settled["player_pose"][3]


def test_the_pressed_direction_is_the_cameras(duel, steps_of):
    """With the camera an eighth of a turn to the right, forward is what forward and right were before."""
    straight = steps_of(duel.play(ROLL_FORWARD + 1, rest=4), duel.begin().now)
    start = duel.begin().now
    # Its error against the boss stays small for a step: the view closes only part of it before the press.
    duel.hidden["camera_heading"] = math.pi + math.pi / 4 - 2 * math.pi
    duel.hidden["pivot_x"], duel.hidden["pivot_y"] = duel.hidden["boss_x"] - 10.0, duel.hidden["boss_y"] - 10.0
    turned = steps_of(duel.play(ROLL_FORWARD, rest=4), start)
    assert turned[1:].sum(axis=0) == pytest.approx(straight[1:].sum(axis=0), abs=0.15)
    assert turned[1:].sum(axis=0)[0] > 1.5


# ---------------------------------------------------------------- stamina


def test_a_roll_costs_sixteen_at_once_and_nothing_returns_until_it_is_over(duel):
    records = duel.play(ROLL_BACK, rest=13)
    at_s = records["player_animation_duration"][:, 0]
    assert set(records["player_sp"][at_s < 1.02, 0]) == {79.0}
    after = duel.hidden["player_sp"]
    duel.step()
    assert duel.hidden["player_sp"] - after == pytest.approx(min(4.5, 95.0 - after))


def test_stamina_returns_at_4_5_a_step(duel):
    duel.begin(player_sp=-20.0)
    gained = np.diff([-20.0, *(duel.step() is not None and float(duel.hidden["player_sp"]) for _ in range(30))])
    assert gained[:25] == pytest.approx(4.5)
    assert duel.now["player_sp"][0] == 95.0


def test_stamina_is_shown_in_whole_numbers(duel):
    duel.begin(player_sp=10.0)
    assert stamina(duel.play(rest=4)) == [14.0, 19.0, 23.0, 28.0]


@pytest.mark.parametrize(
    ("action", "cost", "not_before_s", "by_s"),
    [(LIGHT, 20.0, 0.386, 0.471), (PARRY, 28.0, 0.194, 0.276)],
)
def test_an_attack_is_paid_when_it_gets_going(duel, action, cost, not_before_s, by_s):
    records = duel.play(action, rest=6)
    at_s, left = records["player_animation_duration"][:, 0], records["player_sp"][:, 0]
    assert set(left[at_s < not_before_s]) == {95.0}
    assert set(left[at_s >= by_s - 0.002]) == {95.0 - cost}


def test_a_chain_of_rolls_runs_into_the_negative_and_leaves_only_walking(duel):
    # 95 - 6 * 16 = -1, and nothing comes back on the way.
    duel.begin(player=(140.0, 592.0, 0.0), boss=(140.0, 604.0, 0.0))
    left = []
    for number in range(6):
        left.append(duel.step(ROLL_FORWARD if number % 2 else ROLL_BACK)["player_sp"][0])
        duel.play(rest=7)
    assert left == [79.0, 63.0, 47.0, 31.0, 15.0, -1.0]
    assert open_kinds(duel.play(NOTHING)) == [[1, 0, 0]]
    assert duel.now["action_mask"].tolist() == [1] * 8 + [0] * 11 + [1]


@pytest.mark.parametrize(("sp", "open_now"), [(0.0, 0), (1.0, 1)])
def test_presses_need_stamina_above_zero(duel, sp, open_now):
    record = duel.begin(player_sp=sp).now
    assert open_kinds(np.array([record])) == [[1, open_now, open_now]]


def test_a_press_may_go_below_zero_but_not_below_the_floor(duel):
    # 1 - 16, and a tick or two of recovery before the press takes effect; measured: -13.
    assert -15.0 <= duel.begin(player_sp=1.0).step(ROLL_BACK)["player_sp"][0] <= -13.0
    duel.begin(player_sp=95.0).step(ROLL_BACK)
    duel.hidden["player_sp"], duel.hidden["payments"] = -55.0, 0
    assert duel.step()["player_sp"][0] == -60.0


# ---------------------------------------------------------------- attacks


def press_when_open(duel, action, times):
    """Press an action as soon as it is open, again and again; the labels after the presses."""
    seen = []
    for _ in range(times):
        if not duel.now["action_mask"][action]:
            duel.until(lambda record: record["action_mask"][action])
        seen.append(int(duel.step(action)["player_animation"]))
    return seen


def test_light_attacks_chain_one_two_three_and_begin_again(duel):
    assert press_when_open(duel, LIGHT, 4) == [29, 30, 31, 29]


def test_a_light_attack_after_a_pause_is_the_first_one(duel):
    press_when_open(duel, LIGHT, 2)
    duel.until(lambda record: record["player_animation"] == IDLE)
    assert press_when_open(duel, LIGHT, 1) == [29]


def test_a_light_attack_out_of_a_roll_is_its_own_and_costs_thirty(duel):
    duel.play(ROLL_FORWARD, rest=7)
    records = duel.play(LIGHT, rest=5)
    assert labels(records) == [32] * 6
    assert stamina(records)[-1] == 95.0 - 16.0 - 30.0
    at_s, left = records["player_animation_duration"][:, 0], records["player_sp"][:, 0]
    assert set(left[at_s < 0.387]) == {79.0}
    assert set(left[at_s >= 0.484]) == {49.0}


def test_a_heavy_attack_shows_its_wind_up_and_its_blow(duel):
    # A tap lets go of the wind-up as soon as it can be let go, at 0.333 s of the game: 34, the holding, never shows.
    shown = labels(duel.play(HEAVY, rest=22))
    order = [label for label, before in zip(shown, [None, *shown], strict=False) if label != before]
    assert order == [33, 35, IDLE]


def test_a_heavy_attack_takes_64_for_35(duel):
    duel.begin(away_m=1.4)
    records = duel.play(HEAVY, rest=8)
    assert records["damage_dealt"].tolist().count(64.0) == 1
    assert records["damage_dealt"].sum() == 64.0
    hit = records[records["damage_dealt"] > 0][0]
    assert duel.player_move(hit) == "heavy_end"
    # The blow opens 0.300 s of the game into the second part, and stamina is due then: not before.
    assert 0.291 <= hit["player_move_s"] < 0.291 + STEP_S
    at_s = np.where(records["player_animation"] == 35, records["player_move_s"], -1.0)
    assert set(records["player_sp"][at_s < 0.291, 0]) == {95.0}
    assert set(records["player_sp"][at_s >= 0.291, 0]) == {60.0}


def test_a_second_heavy_attack_hits_as_hard_as_the_first(duel):
    duel.begin(away_m=1.4).step(HEAVY)
    duel.until(lambda record: record["action_mask"][HEAVY])
    duel.place_player(1.4)
    before = duel.hidden["player_sp"]
    records = duel.play(HEAVY, rest=7)
    assert records["damage_dealt"].sum() == 64.0
    assert before - duel.hidden["player_sp"] == pytest.approx(35.0)


def test_an_attack_out_of_a_roll_takes_33(duel):
    duel.begin(away_m=8.0).play(ROLL_FORWARD, rest=7)
    duel.place_player(1.6)
    assert duel.play(LIGHT, rest=6)["damage_dealt"].sum() == 33.0


@pytest.mark.parametrize(("number", "label"), [(1, 29), (2, 30), (3, 31)])
def test_every_light_attack_takes_52_for_20(duel, number, label):
    duel.begin(away_m=1.4)
    assert press_when_open(duel, LIGHT, number)[-1] == label
    before_sp, before_hp = duel.hidden["player_sp"], duel.hidden["boss_hp"]
    duel.play(rest=5)
    assert before_hp - duel.hidden["boss_hp"] == 52.0
    assert before_sp - duel.hidden["player_sp"] == pytest.approx(20.0)


def test_a_heavy_attack_is_followed_by_the_second_one(duel):
    duel.step(HEAVY)
    duel.until(lambda record: record["action_mask"][HEAVY])
    shown = labels(duel.play(HEAVY, rest=20))
    order = [label for label, before in zip(shown, [None, *shown], strict=False) if label != before]
    assert order == [36, 37, IDLE]


def test_a_light_attack_moves_as_measured(duel, steps_of):
    start = duel.now
    moved = steps_of(duel.play(LIGHT, rest=6), start)[:, 1]
    assert moved == pytest.approx((0.06, 0.15, 0.20, 0.26, 0.63, 0.12, -0.03), abs=0.03)


@pytest.mark.parametrize(("away_m", "damage"), [(1.3, 52.0), (8.7, 0.0)])
def test_a_light_attack_hits_at_its_time_and_only_near(duel, away_m, damage):
    duel.begin(away_m=away_m)
    records = duel.play(LIGHT, rest=6)
    assert records["damage_dealt"].sum() == damage
    assert records["boss_hp"][-1, 0] == 1037.0 - damage
    if damage:
        hit = records[records["damage_dealt"] > 0]
        assert len(hit) == 1
        assert 0.466 < hit["player_animation_duration"][0, 0] <= 0.57
        assert duel.player_moves[hit["landed"][0]] == "light_1"


def test_a_light_attack_misses_behind_the_back(duel):
    duel.begin(away_m=1.5)
    duel.step(LIGHT)
    duel.step()
    duel.hidden["lock_on"] = 0  # nobody turns him
    duel.hidden["player_heading"], duel.hidden["player_sin"], duel.hidden["player_cos"] = 0.0, 0.0, 1.0
    assert duel.play(rest=6)["damage_dealt"].sum() == 0.0


def test_what_is_out_of_reach_costs_stamina_all_the_same(duel):
    duel.begin(away_m=8.7)
    assert duel.play(LIGHT, rest=6)["player_sp"][-1, 0] == 75.0


# ---------------------------------------------------------------- the mask


@pytest.mark.parametrize("busy_with", [ROLL_FORWARD, LIGHT, HEAVY, PARRY])
@pytest.mark.parametrize("pressed", [FORWARD, ROLL_RIGHT, LIGHT, HEAVY, PARRY])
def test_what_is_pressed_while_disabled_has_no_effect(duel, same_bits, busy_with, pressed):
    duel.step(busy_with)
    waiting = duel.engine.snapshot()
    duel.play(rest=2)
    untouched = duel.engine.snapshot()
    duel.engine.restore(waiting)
    duel.play(pressed, pressed)
    assert same_bits(duel.engine.snapshot(), untouched)


def assert_mask_follows_the_table(fight, animations):
    """The rule of the animation table, from nothing but the observation."""
    mask, at_s = fight["action_mask"], float(fight["player_animation_duration"][0])
    assert mask[NOTHING] == 1
    times = animations[fight["player_animation"]]
    stopped = fight["outcome"] != 0 or fight["player_animation"] in (FALL_START, FALL_LOOP)
    tired = fight["player_sp"][0] <= 0
    for first, last, from_s, closed in (
        (0, 8, times.move_s, False),
        (8, 16, times.roll_s, tired),
        (16, 19, times.attack_s, tired),
    ):
        if abs(at_s - from_s) < 1e-5 and from_s > 0.0:
            continue  # the very moment: the shown duration is rounded
        opens = not stopped and not closed and at_s >= from_s
        assert mask[first:last].tolist() == [opens] * (last - first), (fight["player_animation"], at_s)


@pytest.mark.parametrize("phase", [1, 2])
def test_the_mask_is_the_rule_of_the_animation_table(spec, phase):
    engine = SimEngine(spec, 64, phase=phase)
    everyone = np.ones(64, np.bool_)
    starts = standard_starts(64)
    starts["random_pose"] = 1
    engine.reset(everyone, starts, np.arange(64, dtype=np.uint64))
    generator = np.random.default_rng(3)
    labels_seen = set()
    for _ in range(300):
        engine.step(ACTION_CONTROLS[generator.integers(0, 20, 64)])
        for fight in engine.fights:
            assert_mask_follows_the_table(fight, spec.player_animations)
        labels_seen |= set(engine.fights["player_animation"].tolist())
        over = engine.fights["outcome"] != 0
        if over.any():
            engine.reset(over, starts, None)
    assert len(labels_seen) > 20
