"""The `souls` command: start-up, version and how errors reach the user."""

from __future__ import annotations

import errno
import json
import math
import subprocess
import sys
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from soulsai.cli import main as cli
from soulsai.cli.options import print_json
from soulsgym.errors import SoulsError
from soulsgym.packages import VERSION

LIMIT_S = 180.0


class GameMissing(SoulsError):
    exit_code = 7


def run_app_with(verb, monkeypatch: pytest.MonkeyPatch) -> None:
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(verb)
    monkeypatch.setattr(cli, "app", app)
    monkeypatch.setattr(sys, "argv", ["souls"])
    cli.main()


def souls(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = "from soulsai.cli.main import main; main()"
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=LIMIT_S)


def test_version_is_the_installed_one():
    result = souls("--version")
    assert (result.returncode, result.stdout) == (0, f"souls {VERSION}\n")


def test_the_package_is_the_command():
    result = subprocess.run(
        [sys.executable, "-m", "soulsai", "--version"], capture_output=True, text=True, timeout=LIMIT_S
    )
    assert (result.returncode, result.stdout) == (0, f"souls {VERSION}\n")


def test_help_names_no_types_of_flags():
    text = souls("train", "--help").stdout
    assert "Usage: souls train [OPTIONS] [PRESET] [FILE]..." in text
    assert "bool" not in text
    for group in ("config", "game", "variant", "bench"):
        assert "bool" not in souls(group, "--help").stdout


def test_no_line_of_the_help_is_cut():
    assert "..." not in souls("--help").stdout.partition("Commands:")[2]


def test_json_has_no_numbers_that_are_not_finite(capsys):
    print_json({"speed": math.nan, "list": [math.inf, 1.5]})
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == {"speed": None, "list": [None, 1.5]}


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES])
def test_a_full_disk_or_a_missing_permission_is_one_sentence_wherever_it_is_met(code, monkeypatch, capsys):
    def verb() -> None:
        raise OSError(code, "reason", "runs/mine/log.txt")

    with pytest.raises(SystemExit) as stop:
        run_app_with(verb, monkeypatch)
    assert stop.value.code == 2
    assert capsys.readouterr().err.startswith("souls: runs/mine/log.txt: cannot be written, ")


def test_unknown_verb_is_misuse_without_traceback():
    result = souls("trian")
    assert result.returncode == 2
    assert "trian" in result.stderr
    assert "Traceback" not in result.stderr


def test_expected_error_is_one_sentence_with_its_exit_code(monkeypatch, capsys):
    def verb() -> None:
        raise GameMissing("DarkSoulsIII.exe is not running: start the game first.")

    with pytest.raises(SystemExit) as stop:
        run_app_with(verb, monkeypatch)
    assert stop.value.code == 7
    assert capsys.readouterr() == ("", "souls: DarkSoulsIII.exe is not running: start the game first.\n")


def test_expected_error_defaults_to_the_exit_code_of_misuse(monkeypatch):
    def verb() -> None:
        raise SoulsError("no such boss")

    with pytest.raises(SystemExit) as stop:
        run_app_with(verb, monkeypatch)
    assert stop.value.code == 2


def test_bug_is_not_hidden(monkeypatch):
    def verb() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_app_with(verb, monkeypatch)


def test_help_loads_no_heavy_library():
    code = (
        "import sys\n"
        "from soulsai.cli.main import main\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as stop:\n"
        "    assert stop.code == 0, stop.code\n"
        "loaded = {'gymnasium', 'numba', 'numpy', 'pygame', 'soulsai.config', 'torch'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    result = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, timeout=LIMIT_S)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_is_where_the_table_says(name):
    command = cli.load_command(name)
    assert command.name == name
    assert command.help
    assert len(cli.COMMANDS[name][1]) <= 64  # a line of a narrow terminal


def test_a_group_of_options_becomes_options_of_the_command():
    given = []

    @dataclass(frozen=True)
    class Group:
        size: Annotated[int, typer.Option(min=1)] = 3
        quick: Annotated[bool, typer.Option("--quick")] = False

    def verb(name: str, number: int = 7, *, group) -> None:
        given.append((name, number, group))

    verb.__annotations__["group"] = Group
    app = typer.Typer()
    app.command()(cli.expand_groups(verb))
    for words in (["a"], ["b", "--quick", "--size", "5", "--number", "1"]):
        assert CliRunner().invoke(app, words).exit_code == 0
    assert given == [("a", 7, Group()), ("b", 1, Group(5, quick=True))]
    assert CliRunner().invoke(app, ["a", "--size", "0"]).exit_code == 2


def test_only_the_command_that_is_called_is_loaded():
    code = (
        "import sys\n"
        "from soulsai.cli.main import app\n"
        "app(['presets'], standalone_mode=False)\n"
        "print({name for name in sys.modules if name.startswith('soulsai.cli.')})\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT_S)
    assert eval(result.stdout.splitlines()[-1]) == {f"soulsai.cli.{one}" for one in ("main", "config", "options")}


def test_missing_command_line_extra_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None; import soulsai.cli.main"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT_S)
    assert result.returncode == 1
    assert result.stderr == "souls: the command line is not installed; run: pip install 'souls-arena[cli]'\n"
