"""`souls doctor`: its lines, its JSON object, its exit codes, and Ctrl-C."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from soulsai.cli.game import doctor
from soulsgym.game import doctor as game_doctor
from soulsgym.game.machine import Finding

app = typer.Typer()
app.command()(doctor)

FINE = Finding("system", True, "Linux")
NOTE = Finding("offline", None, "cannot be seen", "play offline")
FAULT = Finding("game", False, "is not running", "start it")


@pytest.fixture
def say(monkeypatch):
    """Let the doctor find what a test says; the list holds what it was asked."""
    asked = []

    def prepare(*findings):
        def checks(title, pid, redis, *, only_look, **rest):
            asked.append((title, pid, redis, only_look))
            yield from findings

        monkeypatch.setattr(game_doctor, "checks", checks)
        return asked

    return prepare


def souls(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_fine_is_exit_code_0(say):
    say(FINE, NOTE)
    result = souls()
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines == ["ok   system     Linux", "note offline    cannot be seen: play offline", "ready to play"]


def test_fault_is_exit_code_1_and_says_what_to_do(say):
    say(FINE, FAULT, NOTE)
    result = souls()
    assert result.exit_code == 1
    assert "FIX  game       is not running: start it" in result.stdout.splitlines()
    assert result.stdout.splitlines()[-1] == "one thing to fix"


def test_json(say):
    say(FINE, FAULT)
    result = souls("--json")
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert told["ready"] is False
    assert told["findings"][1] == {"name": "game", "ok": False, "text": "is not running", "advice": "start it"}


def test_options_are_handed_on(say):
    asked = say(FINE)
    souls("--title", "eldenring", "--pid", "12", "--only-look")
    assert asked == [("eldenring", 12, None, True)]


def test_unknown_title_is_refused():
    result = souls("--title", "bloodborne")
    assert result.exit_code == 2


def test_interruption_closes_the_examination_and_is_exit_code_130(monkeypatch):
    closed = []

    def checks(*_, **__):
        try:
            yield FINE
            raise KeyboardInterrupt
        finally:
            closed.append(True)

    monkeypatch.setattr(game_doctor, "checks", checks)
    result = souls()
    assert result.exit_code == 130
    assert closed == [True]
    assert "interrupted" in result.output


def test_redis_that_is_not_there_is_named_without_its_password(say):
    asked = say(FINE)
    souls("--redis", "redis://alice:SECRET@127.0.0.1:1/run")
    look = asked[0][2]
    with pytest.raises(Exception, match=r"127\.0\.0\.1:1 does not answer") as failure:
        look()
    assert "SECRET" not in str(failure.value)


def test_wrong_address_of_redis_is_named(say):
    asked = say(FINE)
    souls("--redis", "http://somewhere")
    with pytest.raises(Exception, match="not the address of a Redis"):
        asked[0][2]()


def test_without_a_game_the_machine_is_looked_at():
    result = CliRunner().invoke(app, ["--pid", "999999999"])
    assert result.exit_code == 1
    assert "system" in result.stdout
    assert "Traceback" not in result.stdout


def test_help_has_an_example():
    assert "souls doctor" in souls("--help").stdout


def test_report_is_shown_and_written(say, tmp_path):
    say(FINE, Finding("backup", True, "in /home/me"))
    result = souls("--report", str(tmp_path / "game.json"))
    assert result.exit_code == 0
    written = json.loads((tmp_path / "game.json").read_text())
    assert written == {"findings": {"system": [True, "Linux"]}}
    assert '"Linux"' in result.stderr


def test_report_replaces_no_file(say, tmp_path):
    asked = say(FINE)
    (tmp_path / "game.json").write_text("mine")
    result = souls("--report", str(tmp_path / "game.json"))
    assert "game.json: exists; give another name" in str(result.exception)
    assert (tmp_path / "game.json").read_text() == "mine"
    assert asked == []
