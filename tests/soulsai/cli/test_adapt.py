"""`souls adapt`: what is asked of an adaptation, and what is printed of it."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from soulsai.adapting.adapt import Adaptation, Result, WinRate
from soulsai.cli.main import app
from soulsai.errors import RunError
from soulsgym.errors import MisuseError
from soulsgym.rehearsal.engine import RehearsalOptions

REHEARSED = ("--rehearse", "hidden.toml")


def souls(*arguments):
    return CliRunner().invoke(app, ["adapt", *map(str, arguments)])


@pytest.fixture
def asked(monkeypatch):
    """The adaptations that were asked for; they end at once, as `result` says."""
    found, result = [], []

    def run(self):
        found.append(self)
        return result[-1] if result else None

    monkeypatch.setattr(Adaptation, "run", run)
    return found, result


def test_a_run_by_its_name_gets_a_folder_beside_it(asked, trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(trained, tmp_path / "runs" / "mine")
    for name in ("mine", "runs/mine", "runs/mine/"):
        assert souls(name, *REHEARSED, "--minutes", 12, "--set", "run.seed=3").exit_code == 130
        one = asked[0][-1]
        assert (one.agent, one.folder) == (Path("runs/mine"), Path("runs/mine-adapted"))
        assert (one.target, one.minutes, one.fine_tune) == (RehearsalOptions("hidden.toml"), 12.0, 0.0)
        assert list(one.settings) == ["run.seed=3"]
    monkeypatch.chdir(tmp_path / "runs" / "mine")
    souls(".", *REHEARSED, "--fine-tune", "--tune-share", 0.5)
    one = asked[0][-1]
    assert (one.folder.resolve(), one.fine_tune) == (tmp_path / "runs" / "mine-adapted", 0.5)


def test_one_that_was_stopped_says_how_to_go_on(asked, trained, tmp_path):
    result = souls(trained, *REHEARSED, "--out", tmp_path / "adapted")
    assert result.exit_code == 130
    assert f"stopped and saved in {tmp_path / 'adapted'}; continue with the same command" in result.stderr


def test_what_is_printed_at_the_end(asked, trained, tmp_path):
    tuned = {"minutes": 10.0, "kept": "runs/4"}
    asked[1].append(Result(tmp_path, tmp_path / "runs" / "4", 30.0, WinRate(88, 100), None, tuned))
    lines = souls(trained, *REHEARSED).stdout.splitlines()
    assert lines[0] == "after 30.0 minutes of play: wins before 88.0% (80.2% to 93.0%), after not measured"
    assert lines[1] == f"the adapted agent: {tmp_path / 'runs' / '4'}"
    assert lines[2].startswith(f"what was corrected: souls calibrate {tmp_path}/recordings/*.npz --out ")
    told = json.loads(souls(trained, *REHEARSED, "--json").stdout)
    assert told["before"] == {"win_rate": 0.88, "interval": pytest.approx([0.802, 0.930], abs=1e-3), "fights": 100}
    assert (told["after"], told["minutes"], told["fine_tuned"]) == (None, 30.0, tuned)


def test_what_is_refused(asked, trained, tmp_path):
    result = souls(trained)
    assert isinstance(result.exception, MisuseError)
    assert "give --game, or --rehearse FILE" in str(result.exception)
    result = souls(tmp_path / "policy.onnx", *REHEARSED)
    assert isinstance(result.exception, RunError)
    result = souls(trained, *REHEARSED, "--tune-share", 0.5)
    assert isinstance(result.exception, MisuseError)
    assert "give that too" in str(result.exception)
    assert not asked[0]


def test_a_file_that_is_not_there_is_one_sentence_and_leaves_nothing(trained, tmp_path):
    result = souls(trained, "--rehearse", tmp_path / "nowhere.toml", "--out", tmp_path / "adapted")
    assert isinstance(result.exception, MisuseError)
    assert "nowhere.toml" in str(result.exception)
    assert not list(tmp_path.iterdir())
