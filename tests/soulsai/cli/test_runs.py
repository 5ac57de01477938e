"""`souls runs`: all runs in a folder, the broken ones with their problem."""

import json

import pytest
from typer.testing import CliRunner

from soulsai.cli.main import app
from soulsai.errors import RunError
from soulsai.runs.status import Status


def souls(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def folder(run):
    run.write_status(Status("finished", 1_234_567, 1_200_000, 0.973, 0.961, 0.982))
    (run.folder.parent / "odd").mkdir()
    return run.folder.parent


def test_table(folder):
    result = souls("runs", folder)
    assert result.exit_code == 0, result.exception
    assert "tiny" in result.stdout
    assert "smoke" in result.stdout
    assert "finished" in result.stdout
    assert "1,234,567" in result.stdout
    assert "97.3 %" in result.stdout
    assert "96.1-98.2" in result.stdout
    assert "odd is broken: " in result.stdout
    assert "it has no config.toml" in result.stdout
    table = [line for line in result.stdout.splitlines() if "broken:" not in line]
    assert max(map(len, table)) <= 80


def test_long_names_are_folded_and_not_cut(folder):
    (folder / "tiny").rename(folder / "recipe-rl-souls-with-a-long-name-20261115-231500")
    result = souls("runs", folder)
    assert "…" not in result.stdout
    assert "97.3 %" in result.stdout


def test_json(folder):
    rows = {row["name"]: row for row in json.loads(souls("runs", folder, "--json").stdout)}
    assert (rows["tiny"]["win_rate"], rows["tiny"]["step"], rows["tiny"]["preset"]) == (0.973, 1_234_567, "smoke")
    assert rows["odd"]["state"] == "broken"
    assert "config.toml" in rows["odd"]["problem"]


def test_no_runs_yet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert souls("runs").stdout == "no runs in runs; `souls train` makes one\n"
    with pytest.raises(RunError, match="nowhere: there is no such folder"):
        raise souls("runs", "nowhere").exception
