"""`souls fidelity`: the table, the JSON object and the errors."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from soulsai.cli.main import app
from soulsgym.controls import ACTION_CONTROLS, NOTHING
from soulsgym.engine import standard_starts
from soulsgym.errors import RecordingError
from soulsgym.movesets import load_moveset
from soulsgym.recordings import Recording, write_recording
from soulsgym.sim.engine import SimEngine


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    engine = SimEngine(load_moveset("iudex"), 1)
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


def test_missing_file_is_one_sentence(tmp_path):
    result = CliRunner().invoke(app, ["fidelity", str(tmp_path / "none.npz")])
    assert isinstance(result.exception, RecordingError)
    assert "none.npz: cannot be read" in str(result.exception)


def test_help_has_an_example():
    result = CliRunner().invoke(app, ["fidelity", "--help"])
    assert "souls fidelity fight.json" in result.stdout
