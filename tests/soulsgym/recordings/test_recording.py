"""Reading and writing recordings, and what is said about files that are none."""

import json
from dataclasses import replace

import numpy as np
import pytest

from soulsgym.envs.simulated import FightSettings
from soulsgym.errors import RecordingError
from soulsgym.recordings import Recording, read_recording, write_recording
from soulsgym.recordings.recording import Simulation
from soulsgym.state import FIGHT, OBSERVATION_KEYS, Outcome

OBSERVATION = {
    "phase": 1,
    "player_hp": 454.0,
    "player_max_hp": 454,
    "player_sp": [95.0],
    "player_max_sp": 95,
    "boss_hp": 1037.0,
    "boss_max_hp": 1037,
    "player_pose": [1.0, 2.0, 3.0, 0.5],
    "boss_pose": [4.0, 5.0, 6.0, -0.5],
    "camera_pose": [0.0, 0.0, 0.0, 0.0, 1.0, 0.0],
    "player_animation": 17,
    "player_animation_duration": 0.25,
    "boss_animation": 23,
    "boss_animation_duration": [0.5],
    "lock_on": True,
}


def content(steps=4):
    return {
        "observations": [dict(OBSERVATION) for _ in range(steps)],
        "actions": [19] * steps,
        "rewards": [0.0] * steps,
        "dones": [False] * (steps - 1) + [True],
        "infos": [{"allowed_actions": [0, 8, 19]} for _ in range(steps)],
        "episodes": [0] * steps,
        "steps": list(range(steps)),
    }


@pytest.fixture
def write_json(tmp_path):
    def write(value):
        file = tmp_path / "fight.json"
        file.write_text(value if isinstance(value, str) else json.dumps(value))
        return file

    return write


def records(steps=5):
    rng = np.random.default_rng(3)
    fights = np.zeros(steps, FIGHT)
    for name in FIGHT.names:
        fights[name] = rng.integers(0, 2, fights[name].shape)
    return Recording(fights, np.arange(steps), np.repeat([4, 9], [2, steps - 2]))


def test_json_becomes_the_record(write_json):
    value = content()
    value["observations"][2]["player_hp"] = 335.0
    value["observations"][3]["player_hp"] = 0.0
    recording = read_recording(write_json(value))
    fights = recording.fights
    assert len(recording) == 4
    assert fights["player_pose"][0].tolist() == [1.0, 2.0, 3.0, 0.5]
    assert (fights["player_sp"][1, 0], fights["boss_animation_duration"][1, 0], fights["lock_on"][1]) == (95.0, 0.5, 1)
    assert np.flatnonzero(fights["action_mask"][0]).tolist() == [0, 8, 19]
    assert fights["damage_taken"].tolist() == [0.0, 0.0, 119.0, 335.0]
    assert fights["taken_total"][-1] == 454.0
    assert fights["step"].tolist() == [0, 1, 2, 3]
    assert fights["outcome"].tolist() == [0, 0, 0, Outcome.DIED]


@pytest.mark.parametrize(
    ("key", "values", "bounds"),
    [
        ("episodes", [0, 0, 1, 1], [(0, 2), (2, 4)]),
        ("steps", [0, 1, 2, 0], [(0, 3), (3, 4)]),
        ("dones", [True, False, False, True], [(0, 1), (1, 4)]),
        ("steps", [5, 6, 7, 8], [(0, 4)]),
    ],
)
def test_episodes_are_cut_where_anything_says_so(write_json, key, values, bounds):
    assert read_recording(write_json(content() | {key: values})).bounds() == bounds


def test_damage_is_not_counted_across_episodes(write_json):
    value = content() | {"episodes": [0, 0, 1, 1]}
    value["observations"][1]["player_hp"] = 0.0
    fights = read_recording(write_json(value)).fights
    assert fights["damage_taken"].tolist() == [0.0, 454.0, 0.0, 0.0]
    assert fights["outcome"].tolist() == [0, Outcome.DIED, 0, 0]


def test_what_is_written_is_read(tmp_path):
    written = records()
    write_recording(tmp_path / "fight.npz", written)
    read = read_recording(tmp_path / "fight.npz")
    for name in FIGHT.names:
        np.testing.assert_array_equal(read.fights[name], written.fights[name])
    assert read.actions.tolist() == written.actions.tolist()
    assert read.bounds() == [(0, 2), (2, 5)]
    assert read.simulation is None


SIMULATION = Simulation(FightSettings("iudex", phase=2, randomize=0.5), "0123456789abcdef", (7, 2**64 - 1))


def test_how_the_simulator_made_it_is_read_as_written(tmp_path):
    write_recording(tmp_path / "fight.npz", replace(records(), simulation=SIMULATION))
    assert read_recording(tmp_path / "fight.npz").simulation == SIMULATION


def test_every_episode_needs_its_seed(tmp_path):
    simulation = replace(SIMULATION, seeds=(7, 8, 9))
    with pytest.raises(RecordingError, match="has 3 seeds for 2 episodes; give one for each"):
        write_recording(tmp_path / "fight.npz", replace(records(), simulation=simulation))


def header(**changes):
    simulation = {"settings": {"boss": "iudex"}, "data": "0123456789abcdef", "seeds": [7, 8]} | changes
    return {"header": {"format": 1, "simulation": simulation}}


def test_recordings_are_never_pickled(tmp_path):
    file = tmp_path / "fight.npz"
    arrays = {name: np.zeros(2) for name in ("header", "actions", "episodes")}
    np.savez(file, fights=np.array([{"a": 1}], object), **arrays)
    with pytest.raises(RecordingError, match="damaged or cut short"):
        read_recording(file)


def changed(**changes):
    return content() | changes


def without(key):
    value = content()
    del value[key]
    return value


def observation_with(key, bad):
    value = content()
    value["observations"][1][key] = bad
    return value


def observation_without(key):
    value = content()
    del value["observations"][2][key]
    return value


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ('{"observations": [', r"is not JSON: Expecting value at line 1 column 19; it may be cut short"),
        ("[1, 2]", r"is a list; give an object with observations"),
        (without("infos"), r"infos is missing; a recording has observations"),
        (changed(actions=5), r"actions is a int; give a list"),
        (changed(actions=[19] * 3), r"actions has 3 entries and observations 4; every list"),
        (changed(actions=[19, 19, 1.5, 19]), r"actions\[2\] = 1.5 is not a whole number"),
        (changed(actions=[19, 19, 77, 19]), r"actions\[2\] = 77 is not an action; give 0 to 19"),
        (changed(dones=[0, 1, 0, 1]), r"dones\[0\] = 0 is not true or false"),
        (changed(infos=[{}] * 4), r"infos\[0\].allowed_actions is missing"),
        (changed(infos=[{"allowed_actions": [20]}] * 4), r"infos\[0\].allowed_actions holds 20"),
        (changed(observations=[7] * 4), r"observations\[0\] is a int; give an object"),
        (observation_without("boss_hp"), r"observations\[2\].boss_hp is missing"),
        (observation_with("boss_pose", [1.0, 2.0]), r"observations\[1\].boss_pose = \[1.0, 2.0\] does not fit; give 4"),
        (observation_with("player_sp", "much"), r"observations\[1\].player_sp = 'much' does not fit; give 1"),
        (observation_with("player_hp", float("nan")), r"observations\[1\].player_hp holds nan, which no fight shows"),
        (observation_with("boss_hp", -1e30), r"observations\[1\].boss_hp holds -1e\+30, which no fight shows"),
        (content(1), r"holds 1 steps; a recording needs at least 2"),
        ("", r"is empty; record the fight again"),
    ],
)
def test_what_is_wrong_with_json_is_named(write_json, value, message):
    with pytest.raises(RecordingError, match=message) as error:
        read_recording(write_json(value))
    assert "fight.json" in str(error.value)


def test_neither_format(tmp_path):
    file = tmp_path / "fight.bin"
    file.write_bytes(b"\xff\xfe\x00\x80\x81")
    with pytest.raises(RecordingError, match=r"is neither .npz nor .json"):
        read_recording(file)


def test_file_that_is_not_there(tmp_path):
    with pytest.raises(RecordingError, match=r"cannot be read: No such file or directory; give a recording"):
        read_recording(tmp_path / "none.json")


def test_truncated_archive(tmp_path):
    file = tmp_path / "fight.npz"
    write_recording(file, records())
    file.write_bytes(file.read_bytes()[:-200])
    with pytest.raises(RecordingError, match="damaged or cut short"):
        read_recording(file)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"episodes": None}, r"episodes is missing; write it with write_recording"),
        ({"header": {"soulsgym": "9.9"}}, r"header is not the JSON of a recording"),
        ({"header": {"format": 99, "soulsgym": "9.9"}}, r"header.format = 99 is not known.*soulsgym 9.9"),
        ({"header": {"format": 1, "simulation": 5}}, r"header.simulation does not fit \(.*\); record it again"),
        ({"header": {"format": 1, "simulation": {}}}, r"header.simulation does not fit \('settings'\)"),
        (header(settings={"phase": 1}), r"header.simulation does not fit \(.*'boss'\)"),
        (header(settings={"boss": "iudex", "pace": 2}), r"header.simulation does not fit \(.*'pace'\)"),
        (
            header(settings={"boss": "iudex", "phase": "2"}),
            r"simulation.settings.phase = '2' does not fit",
        ),
        (header(settings={"boss": "iudex", "changes": 1}), r"simulation.settings.changes = 1 does not fit"),
        (header(data=7), r"header.simulation.data = 7 does not fit"),
        (header(seeds=[7, 0.5]), r"header.simulation.seeds = 0.5 does not fit"),
        (header(seeds=[7]), r"has 1 seeds for 2 episodes"),
        ({"fights": np.zeros(5, [("phase", "i8")])}, r"fights has no field 'player_hp'"),
        ({"actions": np.zeros(3, np.int64)}, r"actions is int64 \[3\] beside 5 records"),
        ({"actions": np.zeros(5)}, r"actions is float64 \[5\] beside 5 records"),
    ],
)
def test_what_is_wrong_with_an_archive_is_named(tmp_path, changes, message):
    good = records()
    arrays = {"header": {"format": 1}, "fights": good.fights, "actions": good.actions, "episodes": good.episodes}
    arrays |= changes
    arrays["header"] = np.frombuffer(json.dumps(arrays["header"]).encode(), np.uint8)
    file = tmp_path / "fight.npz"
    np.savez(file, **{name: value for name, value in arrays.items() if value is not None})
    with pytest.raises(RecordingError, match=message):
        read_recording(file)


def test_every_observation_key_is_read():
    assert set(OBSERVATION) == set(OBSERVATION_KEYS)


@pytest.mark.parametrize(
    ("controls", "reason"),
    [
        (np.zeros((1, 6, 2), np.int8), "controls is int8"),
        (np.zeros((3, 6, 2), np.int64), "controls is int64"),
        (np.full((3, 6, 2), 9, np.int8), "holds a direction or a button that there is not"),
    ],
)
def test_controls_that_do_not_fit(own, tmp_path, controls, reason):
    part = replace(own, fights=own.fights[:3], actions=own.actions[:3], episodes=own.episodes[:3])
    write_recording(tmp_path / "good.npz", part)
    with np.load(tmp_path / "good.npz") as archive:
        np.savez(tmp_path / "bad.npz", **archive, controls=controls)
    with pytest.raises(RecordingError, match=reason):
        read_recording(tmp_path / "bad.npz")
