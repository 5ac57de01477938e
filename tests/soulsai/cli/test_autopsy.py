"""`souls autopsy`: causes of death, changes, and the page that shows both fights."""

import json
import re
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from soulsai.cli.main import app
from soulsai.errors import RunError
from soulsgym.errors import MisuseError, RecordingError
from soulsgym.recordings import read_recording, write_recording


def souls(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def part(page, name):
    found = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', page.read_text(), re.DOTALL)
    return json.loads(found[1])


def test_a_script(tmp_path):
    page = tmp_path / "autopsy.html"
    result = souls("autopsy", "player:idle", "--fights", 5, "--html", page, "--show", 2)
    assert result.exit_code == 0, result.exception
    assert "standing in" in result.stdout
    assert "5 deaths in 5 fights" in result.stdout
    assert "5 of 5 survive that attack" in result.stdout
    deaths, viewer = part(page, "deaths"), part(page, "page")
    assert len(deaths) == 2
    assert viewer["text"].count(viewer["marker"]) == 1
    for death in deaths:
        assert death["before"]["outcome"] == "died"
        assert death["after"]["outcome"] == "time-out"
        assert death["change"].startswith("Lives: ")
    with pytest.raises(RunError, match="exists; give another name"):
        raise souls("autopsy", "player:idle", "--html", page).exception


def test_a_run(make_run):
    run = make_run("smoke", "fight.step_limit=900")
    result = souls("autopsy", run.folder, "--fights", 4, "--json")
    assert result.exit_code == 0, result.exception
    told = json.loads(result.stdout)
    assert told["fights"] == 4
    assert {"fight", "time_s", "killer", "cause", "survives", "change"} == set(told["deaths"][0])


def test_a_recording(tmp_path):
    file = tmp_path / "fights.npz"
    assert souls("record", "player:idle", "--fights", 2, "--out", file).exit_code == 0
    result = souls("autopsy", file)
    assert result.exit_code == 0, result.exception
    assert "2 deaths in 2 fights" in result.stdout
    with pytest.raises(MisuseError, match="is a recording, which has its own boss; leave out --boss"):
        raise souls("autopsy", file, "--boss", "vordt").exception


def test_own_boss_file(tmp_path):
    from soulsgym.spec.fight import boss_file

    own = tmp_path / "mine.toml"
    own.write_text(boss_file("iudex").read_text())
    result = souls("autopsy", "player:idle", "--boss", own, "--fights", 2)
    assert result.exit_code == 0, result.exception
    assert "2 deaths in 2 fights" in result.stdout


def test_a_recording_of_the_game(tmp_path):
    file, game = tmp_path / "fights.npz", tmp_path / "game.npz"
    assert souls("record", "player:idle", "--out", file).exit_code == 0
    write_recording(game, replace(read_recording(file), simulation=None))
    with pytest.raises(RecordingError, match="holds no seeds, so it cannot be played again; give a recording of the"):
        raise souls("autopsy", game).exception


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("player:idle", "--no-hit"), "nothing to explain; give --hits"),
        (("player:idle", "--variant", "drawn:20"), "is a number of drawn files"),
        (("nothing.npz",), "cannot be read"),
        (("player:idle", "--html", "a.txt"), "give a name that ends in .html"),
    ],
)
def test_refusals(arguments, sentence):
    assert sentence in str(souls("autopsy", *arguments).exception)


def test_nobody_died():
    result = souls("autopsy", "player:duellist", "--fights", 1, "--seed", 0)
    assert result.exit_code == 0, result.exception
    assert "player:duellist did not die in 1 fight." in result.stdout
