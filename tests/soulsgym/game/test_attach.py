"""Getting hold of a game, letting go of it, and starting it again."""

import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from fake_window import FakeKeys

from soulsgym.errors import GameGone, GameHung, GameNotFound, MisuseError, SpeedControlError
from soulsgym.game import attach as module
from soulsgym.game.attach import Game, Launcher, attach, find_game
from soulsgym.game.process import ProcessInfo


def found(pid):
    return ProcessInfo(pid, "C:/DarkSoulsIII.exe", {"DISPLAY": ":7", "WINEPREFIX": "/prefix", "HOME": "/theirs"})


@pytest.fixture
def games(monkeypatch):
    """The games that run, as the system would tell; a test changes the list."""
    pids = []
    monkeypatch.setattr(module, "find_processes", lambda executable: [found(pid) for pid in pids])
    return pids


class Part:
    """Any part of a game; tells what was done to it, and may fail at it."""

    def __init__(self, name, told, error=None):
        self._name, self._told, self._error = name, told, error

    def __getattr__(self, what):
        def do(*_):
            self._told.append(f"{self._name}.{what}")
            if self._error:
                raise self._error

        return do


def game_of(told, error=None, saved=None):
    parts = {name: Part(name, told, error) for name in ("process", "memory", "title", "keyboard", "window", "clock")}
    game = Game("darksouls3", found(1), **parts)
    game._saved = saved
    return game


def test_the_one_game_that_runs(games):
    games.append(12)
    assert find_game().pid == 12
    assert find_game(pid=12).pid == 12


def test_no_game(games):
    with pytest.raises(GameNotFound, match=r"DarkSoulsIII\.exe is not running; start the game"):
        find_game()
    with pytest.raises(GameNotFound, match="process 3 is not"):
        find_game(pid=3)


def test_several_games_must_be_told_apart(games):
    games.extend([12, 13])
    with pytest.raises(MisuseError, match=r"2 processes of .* say which by its pid: 12, 13"):
        find_game()
    assert find_game(pid=13).pid == 13


def test_unknown_title():
    with pytest.raises(MisuseError, match="title 'sekiro' is not known; give one of darksouls3, eldenring"):
        attach("sekiro")


def test_closing_puts_everything_back_and_only_once():
    told = []
    game = game_of(told, saved="flags")
    game.close()
    game.close()
    assert told == [
        "keyboard.release_all", "title.put_back", "clock.close", "keyboard.close", "window.close", "process.close",
    ]  # fmt: skip


def test_one_part_that_fails_does_not_keep_the_others_from_it():
    told = []
    game_of(told, GameGone("it has ended"), saved="flags").close()
    assert len(told) == 6


def test_what_was_opened_is_closed_when_a_later_part_fails(games, monkeypatch):
    games.append(12)
    told = []
    monkeypatch.setattr(module, "open_process", lambda pid: Part("process", told))
    monkeypatch.setattr(module, "open_window", lambda found, title: Part("window", told))

    def no_keys(found):
        raise GameNotFound("no display")

    monkeypatch.setattr(module, "open_keys", no_keys)
    with pytest.raises(GameNotFound, match="no display"):
        attach()
    assert told == ["window.close", "process.close"]


def test_a_game_that_this_program_holds_is_closed_by_the_next(games, monkeypatch, caplog):
    games.append(12)
    told = []
    monkeypatch.setattr(module, "open_process", lambda pid: Part("process", told))
    monkeypatch.setattr(module, "open_window", lambda found, title: Part("window", told))
    monkeypatch.setattr(module, "open_keys", lambda found: FakeKeys())

    def clock(found, memory):
        if told.count("clock.taken") > told.count("clock.close"):
            raise SpeedControlError("another program controls the clock of the game")
        told.append("clock.taken")
        return Part("clock", told)

    monkeypatch.setattr(module, "load_speed_control", clock)
    monkeypatch.setitem(module.TITLES, "darksouls3", lambda memory, **parts: Part("title", told))
    first = attach()
    second = attach()
    assert not first.is_open
    assert second.is_open
    assert "pid 12" in caplog.text
    first.close()  # as its environment would when it is collected: the second stays
    assert second.is_open
    second.close()
    attach().close()
    assert told.count("clock.close") == 3
    module.hold_clock(found(12))
    attach().close()  # the clock alone was held, by this program too
    assert told.count("clock.close") == 5


def launched(tmp_path, games, monkeypatch, code):
    """A launcher of a small Python program, which counts as the game as soon as it has written its pid."""
    file = tmp_path / "pid"
    program = (
        f"import os, time; open({str(file)!r}, 'w').write(f'{{os.getpid()}} {{os.environ.get(\"DISPLAY\")}}'); {code}"
    )

    def find(executable):
        new = [int(file.read_text().split()[0])] if file.exists() and file.read_text() else []
        return [found(pid) for pid in (*games, *new)]

    monkeypatch.setattr(module, "find_processes", find)
    return Launcher([sys.executable, "-c", program]), file


def test_a_game_is_started_in_its_own_place(tmp_path, games, monkeypatch):
    launcher, file = launched(tmp_path, games, monkeypatch, "time.sleep(120)")
    attached = []
    monkeypatch.setattr(
        module, "attach", lambda name, pid, display: attached.append((name, pid)) or SimpleNamespace(pid=pid)
    )
    told = []
    game = launcher(game_of(told))
    pid, display = file.read_text().split()
    assert "clock.close" in told
    assert attached == [("darksouls3", int(pid))]
    assert game.pid == int(pid)
    assert display == ":7"
    subprocess.run(["kill", pid], check=False)


def test_a_game_that_somebody_else_starts_in_another_prefix_is_not_taken(tmp_path, games, monkeypatch):
    launcher, file = launched(tmp_path, games, monkeypatch, "time.sleep(120)")
    ours, looks = module.find_processes, []

    def find(executable):
        looks.append(executable)
        other = ProcessInfo(3, "C:/DarkSoulsIII.exe", {"WINEPREFIX": "/another"})
        return [*([other] if len(looks) > 1 else []), *ours(executable)]

    monkeypatch.setattr(module, "find_processes", find)
    monkeypatch.setattr(module, "attach", lambda name, pid, display: pid)
    pid = launcher.start({"WINEPREFIX": "/prefix"})
    assert pid == int(file.read_text().split()[0])
    subprocess.run(["kill", str(pid)], check=False)


def test_a_game_that_is_not_ready_yet_is_tried_again(tmp_path, games, monkeypatch):
    launcher, file = launched(tmp_path, games, monkeypatch, "time.sleep(120)")
    tries = []

    def attach_later(name, pid, display):
        tries.append(pid)
        if len(tries) < 3:
            raise GameNotFound("no window yet")
        return "game"

    monkeypatch.setattr(module, "attach", attach_later)
    assert launcher.start() == "game"
    assert len(tries) == 3
    subprocess.run(["kill", file.read_text().split()[0]], check=False)


def test_a_game_that_never_comes(games, monkeypatch):
    monkeypatch.setattr(module, "START_LIMIT_S", 0.3)
    with pytest.raises(GameHung, match=r"was not ready 0 s after its launch \(no process appeared\)"):
        Launcher([sys.executable, "-c", "pass"]).start()


def test_a_launch_command_that_is_none(games):
    with pytest.raises(MisuseError, match="launch command is empty"):
        Launcher("")
    with pytest.raises(GameNotFound, match="cannot be run: No such file"):
        Launcher("/nowhere/steam -applaunch 374320").start()


@pytest.mark.skipif(sys.platform == "win32", reason="a shell's quotes, as on Linux")
def test_a_command_is_taken_apart_as_a_shell_does():
    assert Launcher("steam -applaunch '374 320'")._command == ["steam", "-applaunch", "374 320"]


def test_what_is_left_of_a_hanging_game_is_ended(monkeypatch):
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    monkeypatch.setattr(module, "find_processes", lambda _: [found(process.pid)] if process.poll() is None else [])
    game = game_of([])
    game.found = found(process.pid)
    module._end(game)
    assert process.wait(60) != 0


def test_another_program_with_the_same_pid_is_left_alone(games):
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    game = game_of([])
    game.found = found(process.pid)
    module._end(game)
    time.sleep(0.1)
    assert process.poll() is None
    process.kill()
    process.wait(60)
