"""What a player sees, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from soulsgym.geometry import heading_along
from soulsgym.parts.encoders import make_encoder
from soulsgym.players.observation import bearing_from_boss, distance_m, heading_to_boss
from soulsgym.state import observation_of

LONG_S = 3.0


@pytest.fixture
def encoder(spec):
    return make_encoder("player", 1, spec)


def one_hot(row, prefix):
    """The names of a block that are 1; all others must be 0."""
    block = {name.removeprefix(prefix): value for name, value in row.items() if name.startswith(prefix)}
    assert set(block.values()) <= {0.0, 1.0}
    return [name for name, value in block.items() if value == 1.0]


def picked(row, *names):
    return [row[name] for name in names]


def test_random_fights_stay_within_range(spec, played):
    rows = played.encoded(make_encoder("player", 200, spec))
    assert played.begun.sum() >= 400
    assert rows.min() >= -1.5
    assert rows.max() <= 1.5


def test_random_fights_move_nearly_every_number(spec, played):
    encoder = make_encoder("player", 200, spec)
    spread = np.ptp(played.encoded(encoder), axis=(0, 1))
    still = {name for name, range_ in zip(encoder.names, spread, strict=True) if range_ == 0.0}
    assert all(name.startswith(("player_is_", "boss_is_", "boss_was_")) for name in still - {"lock_on"})


def test_shares_phase_and_lock(encoder, encodings, record):
    (row,) = encodings(encoder, [record(player_hp=227.0, player_sp=-19.0, boss_hp=259.25, phase=2, lock_on=0)])
    assert picked(row, "player_hp", "player_sp", "boss_hp", "lock_on") == pytest.approx([0.5, -0.2, 0.25, 0.0])
    assert one_hot(row, "phase_") == ["2"]
    (row,) = encodings(encoder, [record()])
    assert row["lock_on"] == 1.0
    assert one_hot(row, "phase_") == ["1"]


def test_bearings_and_distances(encoder, encodings, record):
    # The player looks along +y, so +x is to his right; the boss looks along -y; the camera along +x, its right is -y.
    (row,) = encodings(encoder, [record(
        player_pose=(140.0, 590.0, -69.0, np.pi), boss_pose=(143.0, 594.0, -69.0, 0.0),
        camera_pose=(0.0, 0.0, 0.0, 0.9, 0.0, np.sqrt(0.19)),
    )])  # fmt: skip
    assert picked(row, "distance_far", "distance_near") == pytest.approx([5 / 15, 1.0])
    assert picked(row, "boss_from_player_sin", "boss_from_player_cos") == pytest.approx([0.6, 0.8])
    assert picked(row, "player_from_boss_sin", "player_from_boss_cos") == pytest.approx([0.6, 0.8])
    assert picked(row, "boss_from_camera_sin", "boss_from_camera_cos") == pytest.approx([-0.8, 0.6])
    # The middle lies at (139, 596): 1 m behind the camera's view and 6 m to its left.
    assert picked(row, "centre_ahead", "centre_right") == pytest.approx([-0.05, -0.3])


def test_bearings_agree_with_those_of_the_scripted_players(spec, played):
    encoder = make_encoder("player", 200, spec)
    row = dict(zip(encoder.names, np.moveaxis(played.encoded(encoder), -1, 0), strict=True))
    for step in (0, 40, 300):
        seen = observation_of(played.fights[step])
        to_boss = heading_to_boss(seen)
        camera = heading_along(seen["camera_pose"][:, 3], seen["camera_pose"][:, 4])
        bearings = {
            "boss_from_player": to_boss - seen["player_pose"][:, 3],
            "player_from_boss": bearing_from_boss(seen),
            "boss_from_camera": to_boss - camera,
        }
        for name, bearing in bearings.items():
            assert row[f"{name}_sin"][step] == pytest.approx(np.sin(bearing), abs=1e-5)
            assert row[f"{name}_cos"][step] == pytest.approx(np.cos(bearing), abs=1e-5)
        assert row["distance_near"][step] == pytest.approx(np.minimum(distance_m(seen) / 5.0, 1.0), abs=1e-5)


@pytest.mark.parametrize(
    ("x_m", "y_m", "room", "ahead", "right", "cliff"),
    [
        (140.0, 590.0, 1.0, 0.0, 0.0, 1.0),
        (123.48, 590.0, 0.2, -0.8, 0.0, 1.0),  # a metre from the western wall, the camera looks east
        # From (160.5, 587.5) to (161, 598) the cliff's outside is (10.5, -0.5) / 10.512.
        (159.5, 592.0, 0.24258, 0.75742 * 0.99887, 0.75742 * 0.04757, 0.24258),
        (170.0, 592.0, 0.0, 0.99887, 0.04757, 0.0),
    ],
)
def test_the_edge_is_seen_when_it_is_near(encoder, encodings, record, x_m, y_m, room, ahead, right, cliff):
    (row,) = encodings(encoder, [record(
        player_pose=(x_m, y_m, -69.0, 0.0), camera_pose=(0.0, 0.0, 0.0, 1.0, 0.0, 0.0),
    )])  # fmt: skip
    assert picked(row, "edge_room", "edge_ahead", "edge_right", "cliff_room") == pytest.approx(
        [room, ahead, right, cliff], abs=1e-4
    )


@pytest.mark.parametrize("steps", [1, 4])
def test_speeds_are_per_tenth_of_a_second_and_seen_along_the_line_to_the_boss(encoder, encodings, record, steps):
    before = record(player_pose=(140.2, 589.6, 0.0, 0.0), boss_pose=(140.5, 600.8, 0.0, -0.1), time_s=7.0)
    after = record(
        player_pose=(140.0, 590.0, 0.0, 0.0), boss_pose=(140.0, 600.0, 0.0, 0.1), time_s=7.0 + 0.1 * steps,
    )  # fmt: skip
    first, second = encodings(encoder, [before, after])
    names = ("player_closing", "player_sideways", "boss_closing", "boss_sideways", "boss_turning")
    assert picked(first, *names) == [0.0] * 5
    expected = np.array([0.4, -0.2, 0.8, -0.5, np.sin(0.2)]) / steps
    assert picked(second, *names) == pytest.approx(expected, abs=1e-4)


def test_without_time_there_is_no_speed_and_a_leap_is_limited(encoder, encodings, record):
    far = (150.0, 590.0, 0.0, 0.0)
    _, still, leapt = encodings(encoder, [record(), record(player_pose=far), record(time_s=0.1)])
    assert still["player_sideways"] == 0.0
    assert leapt["player_sideways"] == -1.5


def test_both_at_one_place_have_no_bearing(encoder, encodings, record):
    place = (140.0, 590.0, -69.0, 1.0)
    (row,) = encodings(encoder, [record(player_pose=place, boss_pose=place)])
    assert picked(row, "distance_near", "boss_from_player_sin", "boss_from_player_cos") == [0.0] * 3
    assert np.isfinite(list(row.values())).all()


def test_animations_and_their_times(encoder, encodings, record):
    (row,) = encodings(encoder, [record(
        player_animation="RunStopLeft", player_animation_duration=0.6,
        boss_animation="Attack3004", boss_animation_duration=9.0,
    )])  # fmt: skip
    assert one_hot(row, "player_is_") == ["Free"]
    assert one_hot(row, "boss_is_") == ["Attack3004"]
    assert one_hot(row, "boss_was_") == []
    assert picked(row, "player_animation_s", "boss_animation_s") == pytest.approx([0.2, 1.5])


def test_unknown_animations_are_nothing(encoder, encodings, record):
    (row,) = encodings(encoder, [record(player_animation="?", boss_animation="?")])
    assert [one_hot(row, prefix) for prefix in ("player_is_", "boss_is_", "boss_was_")] == [[], [], []]


def test_what_the_boss_did_before_is_remembered(encoder, encodings, record):
    shown = [  # time, label, its clock -> what it did before and for how long, how long it has been doing this
        (0.0, "IdleBattle", 0.0, [], 0.0, 0.0),
        (0.5, "WalkFrontBattle", 0.1, ["IdleBattle"], 0.4, 0.1),
        (0.8, "WalkFrontBattle", 0.4, ["IdleBattle"], 0.4, 0.4),
        (0.9, "TurnBattle_Left90", 0.1, ["IdleBattle"], 0.4, 0.5),
        (1.0, "Attack3001", 0.1, ["Movement"], 0.5, 0.1),
        (3.0, "Attack3001", 2.1, ["Movement"], 0.5, 2.1),
        (3.1, "Attack3001", 2.05, ["Movement"], 0.5, 2.2),  # noise of the clock
        (3.2, "Attack3001", 0.0, ["Attack3001"], 2.3, 0.0),  # the same again
        (3.6, "?", 0.1, ["Attack3001"], 0.3, 0.1),
        (3.9, "Attack3002", 0.2, [], 0.2, 0.2),
    ]
    records = [record(time_s=t, boss_animation=name, boss_animation_duration=s) for t, name, s, *_ in shown]
    for row, (*_, did, did_s, doing_s) in zip(encodings(encoder, records), shown, strict=True):
        assert one_hot(row, "boss_was_") == did
        assert picked(row, "boss_did_s", "boss_doing_s") == pytest.approx([did_s / LONG_S, doing_s / LONG_S], abs=1e-5)


def test_the_last_action_is_shown(encoder, encodings, record):
    rows = encodings(encoder, [record(), record(), record()], [-1, 9, 19])
    assert [one_hot(row, "pressed_") for row in rows] == [[], ["roll_FR"], ["nothing"]]


def test_another_boss_gives_other_blocks(spec, encodings, record):
    boss = replace(spec.boss, phases=(spec.boss.phases[0],) * 3)
    other = replace(spec, boss=boss, boss_animations=("Bite", "Roar"))
    encoder = make_encoder("player", 1, other)
    assert encoder.size == make_encoder("player", 1, spec).size + 1 - 2 * (25 - 2)
    fight = record(phase=3)
    fight["boss_animation"] = 1
    (row,) = encodings(encoder, [fight])
    assert [one_hot(row, "phase_"), one_hot(row, "boss_is_")] == [["3"], ["Roar"]]


def lit(row):
    """The marks of the boss's ruler that are not dark."""
    marks = {name: value for name, value in row.items() if name.startswith("boss_at_")}
    assert sum(marks.values()) == pytest.approx(1.0)
    return {name.removeprefix("boss_at_"): pytest.approx(value, abs=1e-5) for name, value in marks.items() if value}


@pytest.mark.parametrize(
    ("shown_s", "marks"),
    [
        (0.0, {"0.0_s": 1.0}),
        (0.45, {"0.4_s": 0.75, "0.6_s": 0.25}),
        (3.2, {"3.2_s": 1.0}),
        (9.0, {"3.2_s": 1.0}),
        (-0.1, {"0.0_s": 1.0}),
    ],
)
def test_a_ruler_shows_tenths_of_a_second(encoder, encodings, record, shown_s, marks):
    (row,) = encodings(encoder, [record(boss_animation_duration=shown_s)])
    assert lit(row) == marks
