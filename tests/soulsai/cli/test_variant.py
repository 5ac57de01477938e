"""`souls variant draw`: a file that is a boss, or one sentence."""

import json
import os
import re

import pytest
from typer.testing import CliRunner

from soulsai.cli.main import app
from soulsgym.errors import SoulsError
from soulsgym.spec import load_fight
from soulsgym.spec.draw import drawn_spec


def souls(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_drawn_file_is_a_boss(tmp_path):
    file = tmp_path / "my.toml"
    result = souls("variant", "draw", "iudex", "--seed", 7, "--out", file)
    assert result.exit_code == 0, result.exception
    moved, total = map(int, re.search(r"moved (\d+) of (\d+) numbers: ", result.stdout).groups())
    assert 100 < moved < total
    kinds = {kind: int(count) for kind, count in re.findall(r"([a-z]+) (\d+)(?:,|\n)", result.stdout)}
    assert sum(kinds.values()) == moved
    assert {"time", "reach", "damage"} <= set(kinds)
    assert f"souls eval RUN --variant {file}" in result.stdout
    assert load_fight("iudex", str(file)).boss == drawn_spec("iudex", 7).boss


def test_json_counts_the_same(tmp_path):
    file = tmp_path / "my.toml"
    found = json.loads(souls("variant", "draw", "iudex", "--seed", 7, "--out", file, "--json").stdout)
    assert (found["file"], found["seed"], found["strength"]) == (str(file), 7, 1.0)
    assert sum(found["kinds"].values()) == found["moved"] < found["numbers"]


def test_a_boss_of_ones_own_is_drawn(sentinel, tmp_path):
    result = souls("variant", "draw", sentinel, "--out", tmp_path / "my.toml", "--json")
    assert result.exit_code == 0, result.exception
    assert set(json.loads(result.stdout)["kinds"]) >= {"weight", "time", "reach", "arc"}
    assert load_fight(str(sentinel), str(tmp_path / "my.toml")).boss == drawn_spec(str(sentinel), 0).boss


def test_no_strength_moves_nothing(tmp_path):
    result = souls("variant", "draw", "iudex", "--strength", 0, "--out", tmp_path / "my.toml")
    assert "moved 0 of" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["iudx"], "boss 'iudx' is not known, did you mean 'iudex'"),
        (["nowhere/boss.toml"], "cannot be read: No such file"),
        (["iudex", "--strength", -1], "strength -1.0 is out of range"),
        (["iudex", "--strength", 1000], "strength 1000.0 is out of range"),
        (["iudex", "--strength", "nan"], "strength nan is out of range"),
        (["iudex", "--seed", -1], "seed -1"),
        (["iudex", "--out", "nowhere/my.toml"], "cannot be written"),
        (["iudex", "--out", "."], "."),
    ],
)
def test_mistakes_are_a_sentence_and_leave_nothing(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    result = souls("variant", "draw", *arguments, *([] if "--out" in arguments else ["--out", "my.toml"]))
    assert isinstance(result.exception, SoulsError)
    assert message in str(result.exception)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_stays(tmp_path):
    file = tmp_path / "my.toml"
    file.write_text("mine")
    result = souls("variant", "draw", "iudex", "--out", file)
    assert "is there already" in str(result.exception)
    assert file.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    result = souls("variant", "draw", "iudex", "--out", tmp_path / "my.toml")
    assert "cannot be written" in str(result.exception)
