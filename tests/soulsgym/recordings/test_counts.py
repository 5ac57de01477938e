"""Recordings without positions: reading, counting, playing their policy, comparing."""

import json

import pytest

from soulsgym.errors import RecordingError
from soulsgym.recordings.counts import (
    Counts,
    Policy,
    compare,
    follow_up_rate,
    has_no_positions,
    play_policy,
    read_counts,
    total_variation,
)
from soulsgym.spec import load_fight

POLICY = {"roll_chance": 0.1, "step_s": 0.1, "files": 2, "file_s": 0.4}
STEPS = {
    "boss_animation": ["Walk", "Walk", "Hit", "Hit", "Hit", "Walk", "Hit", "Rest"],
    "file": [0, 0, 0, 0, 1, 1, 1, 1],
    "distance_m": [4.0, 3.0, 2.0, 1.0, 4.0, 3.0, 2.0, 1.0],
    "damage_taken": [0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 7.0, 0.0],
}


def written(tmp_path, **content):
    file = tmp_path / "counts.json"
    file.write_text(json.dumps(content))
    return file


def test_total_variation():
    assert total_variation({"a": 1, "b": 1}, {"a": 10, "b": 10}) == 0.0
    assert total_variation({"a": 1}, {"b": 1}) == 1.0
    assert total_variation({"a": 3, "b": 1}, {"a": 1, "b": 1}) == pytest.approx(0.25)


def test_steps_are_counted_file_by_file(tmp_path):
    recording = read_counts(written(tmp_path, boss="iudex", policy=POLICY, steps=STEPS))
    counts = recording.counts
    assert (recording.boss, recording.policy) == ("iudex", Policy(0.1, 0.1, 2, 0.4))
    assert counts.starts == {"Walk": 2, "Hit": 3, "Rest": 1}
    assert counts.transitions == {("Walk", "Hit"): 2, ("Hit", "Walk"): 1, ("Hit", "Rest"): 1}
    assert counts.hits == {"Hit": 2}
    assert (counts.hits_per_file, counts.damage_per_file) == (1.0, 6.0)
    assert counts.distance_quantiles[0.5] == 2.5
    assert follow_up_rate(counts, "Hit", ("Walk",)) == 0.5
    assert follow_up_rate(counts, "never", ("Walk",)) == 0.0


def test_counts_may_be_given(tmp_path):
    content = {
        "starts": {"Hit": 3}, "transitions": {"Hit": {"Walk": 2}}, "hits": {"Hit": 1}, "hits_per_file": 1,
        "damage_per_file": 50, "distance_quantiles": {"0.5": 2.0}, "follow_ups": {"Hit": [["Walk"], 0.5]},
    }  # fmt: skip
    counts = read_counts(written(tmp_path, policy=POLICY, **content)).counts
    assert counts.transitions == {("Hit", "Walk"): 2.0}
    assert (counts.distance_quantiles, counts.follow_ups) == ({0.5: 2.0}, {"Hit": (("Walk",), 0.5)})


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({}, "policy is missing"),
        ({"policy": 3}, "policy is missing"),
        ({"policy": {"roll_chance": 0.1}}, "policy lacks a number"),
        ({"policy": POLICY | {"speed": 1}}, "policy.speed is not known"),
        ({"policy": POLICY | {"file_s": "long"}}, "policy.file_s = 'long' is not possible"),
        ({"policy": POLICY | {"roll_chance": 2.0}}, "is not possible; give a chance"),
        ({"policy": POLICY | {"files": 0}}, "is not possible; give a chance"),
        ({"policy": POLICY, "boss": 3}, "boss = 3 is not a name"),
        ({"policy": POLICY}, "starts is missing; give the counts or the steps"),
        ({"policy": POLICY, "steps": {"boss_animation": ["a"]}}, "steps.file is missing"),
        ({"policy": POLICY, "steps": STEPS | {"file": [0]}}, "give as many"),
        ({"policy": POLICY, "steps": STEPS | {"distance_m": ["far"] * 8}}, "are not lists of numbers"),
        ({"policy": POLICY, "steps": {key: [] for key in STEPS}}, "give as many"),
        ({"policy": POLICY, "starts": {"a": "many"}}, "counts are not numbers by name"),
    ],
)
def test_bad_files_are_refused_with_a_sentence(tmp_path, content, reason):
    with pytest.raises(RecordingError, match=r"counts\.json: ") as caught:
        read_counts(written(tmp_path, **content))
    assert reason in str(caught.value)


def test_what_is_no_file_or_no_json_is_refused(tmp_path):
    with pytest.raises(RecordingError, match="cannot be read"):
        read_counts(tmp_path / "none.json")
    (tmp_path / "half.json").write_text('{"policy": ')
    with pytest.raises(RecordingError, match="is not JSON"):
        read_counts(tmp_path / "half.json")


def test_recordings_with_positions_are_told_apart(tmp_path):
    (tmp_path / "fight.npz").write_bytes(b"PK\x03\x04")
    (tmp_path / "soulsgym.json").write_text('{"observations": []}')
    assert not has_no_positions(tmp_path / "fight.npz")
    assert not has_no_positions(tmp_path / "soulsgym.json")
    assert not has_no_positions(tmp_path / "none.json")
    assert has_no_positions(written(tmp_path, policy=POLICY))


@pytest.fixture(scope="module")
def played():
    return play_policy(load_fight("iudex"), Policy(0.1, 0.1, 16, 30.0))


def test_the_policy_is_played_as_long_as_it_was_recorded(played):
    assert sum(played.starts.values()) > 16
    assert played.hits_per_file == pytest.approx(sum(played.hits.values()) / 16, abs=0.5)
    assert played.damage_per_file > played.hits_per_file
    assert played.distance_quantiles[0.05] <= played.distance_quantiles[0.95]
    assert 0 < played.dodges[1] <= played.dodges[0]


def test_the_same_seed_counts_the_same(played):
    again = play_policy(load_fight("iudex"), Policy(0.1, 0.1, 16, 30.0))
    assert (again.starts, again.hits) == (played.starts, played.hits)


def test_a_recording_of_the_simulator_itself_is_near(played):
    other = play_policy(load_fight("iudex"), Policy(0.1, 0.1, 64, 30.0), seed=2)
    rows = {row.name: row for row in compare(played, other)}
    assert rows["total variation of starts"].value < 0.15
    assert rows["hits in a file"].value < 0.3


def test_what_differs_is_missed():
    quantiles = {0.5: 2.0}
    recorded = Counts({"a": 1}, {("a", "b"): 1}, {"a": 1}, 10.0, 100.0, quantiles, {"a": (("b",), 1.0)})
    other = Counts({"b": 1}, {("a", "c"): 1}, {"b": 1}, 20.0, 100.0, {0.5: 2.4}, dodges=(100, 95))
    verdicts = {row.name: row.ok for row in compare(recorded, other)}
    assert verdicts == {
        "total variation of starts": False, "total variation of hits": False, "total variation of transitions": False,
        "hits in a file": False, "health lost in a file": True, "distance, quantile 0.5": True,
        "follow-ups of a": False, "rolls up to 0.4 s before a blow": False,
    }  # fmt: skip
