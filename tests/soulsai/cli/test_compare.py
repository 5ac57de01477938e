"""`souls compare`: the same fights for both, and a verdict."""

import json

import pytest
from typer.testing import CliRunner

from soulsai.cli.main import app
from soulsgym.errors import MisuseError


def souls(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_verdict():
    result = souls("compare", "player:idle", "player:duellist", "--fights", 30)
    assert result.exit_code == 0, result.exception
    assert "player:idle wins 0.0 % of 30 fights (95 % interval" in result.stdout
    assert "is real at the 5 % level." in result.stdout


def test_json(run):
    result = souls("compare", run.folder, "player:idle", "--fights", 4, "--seed", 5, "--variant", "hard", "--json")
    content = json.loads(result.stdout)
    assert content["names"] == ["tiny", "player:idle"]
    assert content["settings"]["step_limit"] == 300  # that of the run, for both
    assert (content["settings"]["seed"], content["settings"]["variant"]) == (5, "hard")
    assert content["is_paired"] is True
    assert content["is_real"] is False
    assert content["b"]["fights"] == 4
    assert [name for name, _ in run.evaluations() if "eval" in name] == []


def test_a_run_with_itself_is_no_different(run):
    result = souls("compare", run.folder, run.folder, "--fights", 3)
    assert "tiny (A) wins" in result.stdout
    assert "they won equally often" in result.stdout


def test_runs_of_different_fights_need_to_be_told_which(run, make_run):
    other = make_run("smoke-q", "fight.full=false", "starts.random_pose=true", "fight.step_limit=400")
    with pytest.raises(MisuseError, match=r"different fights \(full: True and False\); give --phase or --full"):
        raise souls("compare", run.folder, other.folder).exception
    result = souls("compare", run.folder, other.folder, "--phase", 1, "--fights", 2, "--json")
    settings = json.loads(result.stdout)["settings"]
    assert (settings["full"], settings["random_pose"], settings["step_limit"]) == (False, True, 400)


def test_gym_run(make_run):
    with pytest.raises(MisuseError, match="made plays CartPole-v1, not fights"):
        raise souls("compare", make_run("cartpole-ppo").folder, "player:idle").exception
