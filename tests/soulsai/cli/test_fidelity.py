"""`souls fidelity`: the table, the JSON object and the errors."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from soulsai.cli.main import app
from soulsgym.actions import ACTION_CONTROLS, NOTHING
from soulsgym.engine import standard_starts
from soulsgym.errors import MisuseError, RecordingError
from soulsgym.recordings import Recording, read_recording, write_recording
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import load_fight


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    engine = SimEngine(load_fight("iudex"), 1)
    engine.reset(np.ones(1, np.bool_), standard_starts(1), np.array([5], np.uint64))
    records, actions = [engine.fights.copy()], [NOTHING]
    for action in np.random.default_rng(5).integers(0, 20, 60).tolist():
        engine.step(ACTION_CONTROLS[[action]])
        records.append(engine.fights.copy())
        actions.append(action)
    path = tmp_path_factory.mktemp("recordings") / "fight.npz"
    write_recording(path, Recording(np.concatenate(records), np.array(actions), np.zeros(61, np.int64)))
    return path


def test_table(file):
    result = CliRunner().invoke(app, ["fidelity", str(file)])
    assert result.exit_code == 0
    assert "fight.npz: 61 steps, 1 episode(s)" in result.stdout
    assert "M11" in result.stdout


def test_details(file):
    result = CliRunner().invoke(app, ["fidelity", str(file), "--details"])
    assert "M3: mean error of the position 10 steps on [m]" in result.stdout


def test_json(file):
    result = CliRunner().invoke(app, ["fidelity", str(file), "--json"])
    measured = json.loads(result.stdout)
    assert (measured["steps"], measured["episodes"]) == (61, 1)
    assert list(measured["metrics"]) == [f"M{number}" for number in range(1, 12)]
    assert set(measured["metrics"]["M2"]) >= {"value", "target", "floor", "n", "ok"}
    assert measured["metrics"]["M2"]["n"] == 60
    assert measured["departure"]["exact"] is False
    [fight] = measured["departure"]["fights"]
    assert (fight["fight"], fight["steps"]) == (1, 60)
    assert measured["departure"]["earliest_step"] == measured["departure"]["median_step"] == fight["step"]


def test_a_recording_of_the_game_names_its_boss(tmp_path):
    made = tmp_path / "vordt.npz"
    record = ["record", "--env", "SoulsGymVordt-v0", "--rehearse", "standard", "--fights", "1", "--out", str(made)]
    assert CliRunner().invoke(app, record).exit_code == 0
    named, told = (
        CliRunner().invoke(app, ["fidelity", str(made), "--json", *boss]) for boss in (["--boss", "vordt"], [])
    )
    assert told.exit_code == 0
    assert told.stdout == named.stdout
    refused = CliRunner().invoke(app, ["fidelity", str(made), "--boss", "iudex"]).exception
    assert isinstance(refused, MisuseError)
    assert "--boss iudex is not the boss" in str(refused)
    assert "which is vordt" in str(refused)


@pytest.fixture
def counted(tmp_path):
    """A recording without positions: one file of four steps."""
    steps = {"boss_animation": ["WalkFrontBattle"] * 4, "file": [0] * 4, "distance_m": [9.0, 8.0, 7.0, 6.0]}
    policy = {"roll_chance": 0.1, "step_s": 0.1, "files": 2, "file_s": 3.0}
    path = tmp_path / "counted.json"
    path.write_text(json.dumps({"boss": "iudex", "policy": policy, "steps": steps | {"damage_taken": [0.0] * 4}}))
    return path


def test_table_of_a_recording_without_positions(counted):
    result = CliRunner().invoke(app, ["fidelity", str(counted)])
    assert result.exit_code == 0
    assert "counted.json: 2 files of 3 s, without positions" in result.stdout
    assert "starts" in result.stdout
    assert "missed" in result.stdout


def test_json_of_a_recording_without_positions(counted):
    result = CliRunner().invoke(app, ["fidelity", str(counted), "--json"])
    rows = {row["name"]: row for row in json.loads(result.stdout)["distances"]}
    assert 0.0 <= rows["total variation of starts"]["value"] <= 1.0
    assert rows["total variation of starts"]["limit"] == 0.08
    assert set(rows["hits in a file"]) == {"name", "text", "value", "limit", "ok"}


def edited(file, into, **changes):
    """The recording with some of its parts changed, as a new file."""
    write_recording(into, replace(read_recording(file), **changes))
    return into


def told(file):
    """What is printed below the table of the replay, in one line."""
    result = CliRunner().invoke(app, ["fidelity", str(file)])
    assert result.exit_code == 0, result.exception
    below = re.split(r"\n\s*\n", result.stdout.rstrip())[-1]
    return " ".join(re.sub(r"^M10: hits .*: \d+\.\n", "", below).split())


def test_where_the_player_leaves_a_recording_that_tells_no_seed(file, tmp_path):
    fights = read_recording(file).fights.copy()
    fights["player_pose"][2, 1] += 3.0
    assert told(edited(file, tmp_path / "a.npz", fights=fights)).startswith(
        "The replay without restarts leaves the recording at step 2 of 60: 3"
    )


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    path = tmp_path_factory.mktemp("recordings") / "own.npz"
    result = CliRunner().invoke(app, ["record", "player:random", "--fights", "3", "--out", str(path)])
    assert result.exit_code == 0, result.exception
    return path


def test_a_recording_of_the_simulator_is_repeated(own):
    assert told(own) == "The exact replay never leaves the recording."
    measured = json.loads(CliRunner().invoke(app, ["fidelity", str(own), "--json"]).stdout)
    assert (measured["departure"]["exact"], measured["departure"]["median_step"], measured["note"]) == (True, None, "")
    assert [fight["step"] for fight in measured["departure"]["fights"]] == [None] * 3


def test_drift_is_told_with_its_step(own, tmp_path):
    recording = read_recording(own)
    fights, (low, high) = recording.fights.copy(), recording.bounds()[1]
    fights["boss_hp"][low + 4 : high] = 3.0
    changed = edited(own, tmp_path / "a.npz", fights=fights)
    assert told(changed) == (
        "The exact replay leaves 1 of 3 fights, earliest at step 4 of fight 2: boss_hp 1037.0 instead of 3.0."
    )
    fights["phase"][0] = 2
    assert told(edited(own, tmp_path / "b.npz", fights=fights)) == (
        "The exact replay leaves 2 of 3 fights, at step 4 in the median, earliest at step 0 of fight 1: "
        "phase 1 instead of 2."
    )
    result = CliRunner().invoke(app, ["fidelity", str(changed), "--details"])
    assert "  fight 2, " in result.stdout
    assert ": step 4, boss_hp 1037.0 instead of 3.0" in result.stdout


def test_other_data_is_one_sentence(own, tmp_path):
    simulation = replace(read_recording(own).simulation, data="0123456789abcdef")
    assert told(edited(own, tmp_path / "a.npz", simulation=simulation)).startswith(
        "Recorded with other data of iudex (digest 0123456789abcdef, now "
    )


def test_the_file_knows_its_boss(own, tmp_path):
    with pytest.raises(MisuseError, match=r"--boss vordt is not the boss of .*own.npz, which is iudex; leave it out"):
        raise CliRunner().invoke(app, ["fidelity", str(own), "--boss", "vordt"]).exception
    simulation = read_recording(own).simulation
    simulation = replace(simulation, settings=replace(simulation.settings, boss="nobody"))
    unknown = edited(own, tmp_path / "a.npz", simulation=simulation)
    with pytest.raises(RecordingError, match=r"a.npz: cannot be repeated: boss 'nobody' is not known"):
        raise CliRunner().invoke(app, ["fidelity", str(unknown)]).exception


def test_skipped_steps_print_no_empty_table(own, tmp_path):
    recording = read_recording(own)
    fights = recording.fights.copy()
    fights["step"] *= 2
    result = CliRunner().invoke(app, ["fidelity", str(edited(own, tmp_path / "a.npz", fights=fights))])
    assert "M1" not in result.stdout
    assert "step 1 of fight 1: step 1 instead of 2" in " ".join(result.stdout.split())


def test_missing_file_is_one_sentence(tmp_path):
    result = CliRunner().invoke(app, ["fidelity", str(tmp_path / "none.npz")])
    assert isinstance(result.exception, RecordingError)
    assert "none.npz: cannot be read" in str(result.exception)


def test_help_has_an_example():
    result = CliRunner().invoke(app, ["fidelity", "--help"])
    assert "souls fidelity fight.json" in result.stdout
