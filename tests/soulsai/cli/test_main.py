"""The `souls` command: start-up, version and how errors reach the user."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer

from soulsai.cli import main as cli
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
        "loaded = {'gymnasium', 'numba', 'numpy', 'pygame', 'torch'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    result = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, timeout=LIMIT_S)
    assert result.returncode == 0, result.stderr


def test_missing_command_line_extra_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None; import soulsai.cli.main"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT_S)
    assert result.returncode == 1
    assert result.stderr == "souls: the command line is not installed; run: pip install 'souls-arena[cli]'\n"
