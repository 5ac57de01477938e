"""`souls game`: backups of saves, and the speed library."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from soulsai.cli.game import game
from soulsgym.errors import GameError
from soulsgym.game import process, proxy
from soulsgym.game.process import ProcessInfo

SAVE = "DS30000.sl2"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "data"))
    monkeypatch.setattr(process, "find_processes", lambda executable: [])
    folder = tmp_path / "saves" / "01"
    folder.mkdir(parents=True)
    (folder / SAVE).write_bytes(b"good")
    return folder


def souls(*arguments):
    return CliRunner().invoke(game, [str(argument) for argument in arguments])


def test_backup_list_and_restore(folder):
    result = souls("backup", "--save", folder)
    assert result.exit_code == 0
    assert "1 file(s), 4 bytes, copied and checked" in result.stdout
    (folder / SAVE).write_bytes(b"ruined")
    [listed] = souls("backups").stdout.splitlines()
    assert "by hand" in listed
    result = souls("restore")
    assert result.exit_code == 0
    assert (folder / SAVE).read_bytes() == b"good"
    assert "what it replaced is kept as" in result.stdout
    listed = json.loads(souls("backups", "--json").stdout)
    assert [one["reason"] for one in listed] == ["before a restore", "by hand"]
    assert listed[1]["files"][SAVE] == 4
    assert souls("restore", listed[0]["name"]).exit_code == 0
    assert (folder / SAVE).read_bytes() == b"ruined"


def test_restore_refuses_while_the_game_runs(folder, monkeypatch):
    souls("backup", "--save", folder)
    monkeypatch.setattr(process, "find_processes", lambda executable: [ProcessInfo(77, executable)])
    result = souls("restore")
    assert isinstance(result.exception, GameError)
    assert "process 77" in str(result.exception)


def test_restore_into_a_given_folder(folder, tmp_path):
    souls("backup", "--save", folder)
    assert souls("restore", "--save", tmp_path / "other").exit_code == 0
    assert (tmp_path / "other" / SAVE).read_bytes() == b"good"


def test_nothing_to_list_or_restore(folder):
    assert "no backups in" in souls("backups").stdout
    assert "there is no backup" in str(souls("restore").exception)


def test_save_is_found_by_itself_if_there_is_one(folder, tmp_path, monkeypatch):
    from soulsgym.game import saves

    monkeypatch.setattr(saves, "find_saves", lambda title: [])
    assert "give its folder with --save" in str(souls("backup").exception)
    monkeypatch.setattr(saves, "find_saves", lambda title: [folder])
    assert souls("backup").exit_code == 0
    monkeypatch.setattr(saves, "find_saves", lambda title: [folder, tmp_path])
    assert "2 folders with save games" in str(souls("backup").exception)


def test_speed_library_is_installed_and_removed(tmp_path, monkeypatch):
    built = tmp_path / "bin"
    built.mkdir()
    (built / "souls_speed.dll").write_bytes(b"souls_control")
    monkeypatch.setattr(proxy.install_proxy, "__kwdefaults__", {"source": built})
    place = tmp_path / "Game"
    place.mkdir()
    (place / "DarkSoulsIII.exe").write_bytes(b"MZ")
    result = souls("speed", "install", tmp_path)
    assert result.exit_code == 0
    assert 'WINEDLLOVERRIDES="dinput8=n,b" %command%' in result.stdout
    assert (place / "dinput8.dll").read_bytes() == b"souls_control"
    assert souls("speed", "remove", place).exit_code == 0
    assert not (place / "dinput8.dll").exists()


@pytest.mark.parametrize("command", ["backup", "restore", "backups", "speed install", "speed remove"])
def test_help_has_an_example(command):
    assert "Example: souls game" in souls(*command.split(), "--help").stdout
