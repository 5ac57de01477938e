"""Game: everything held of one running game, and how to get hold of it."""

from __future__ import annotations

import atexit
import logging
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from soulsgym.errors import GameError, GameHung, GameNotFound, MisuseError, SoulsError
from soulsgym.game.addresses import load_addresses
from soulsgym.game.clock import Clock, load_speed_control
from soulsgym.game.keyboard import Keyboard, load_bindings, open_keys
from soulsgym.game.memory import ProcessMemory
from soulsgym.game.process import Process, ProcessInfo, find_processes, open_process
from soulsgym.game.titles import TITLES, Remembered, Title
from soulsgym.game.window import Window, open_window

log = logging.getLogger(__name__)

START_LIMIT_S = 180.0
"""From the launch of a game until its window is there; a cold start from a slow disk takes a minute."""
LOOK_EVERY_S = 0.25
END_LIMIT_S = 10.0
PLACE = ("DISPLAY", "XAUTHORITY", "WINEPREFIX", "WINEDLLOVERRIDES", "WINEARCH", "WINELOADER")
"""What of a game's environment says where it runs; another one is started in the same place."""

_HELD: dict[int, Game] = {}
"""The games that this program holds, by pid: each once, since a clock has one controller."""
_CLOCKS: dict[int, tuple[Clock, Process]] = {}
"""The clocks that it holds without the rest of the game, by pid."""


@dataclass
class Game:
    """One running game: its process, memory, window, keys and clock, and what is known about its title."""

    name: str
    found: ProcessInfo
    process: Process
    memory: ProcessMemory
    title: Title
    keyboard: Keyboard
    window: Window
    clock: Clock
    _saved: Remembered | None = None
    _open: bool = field(default=True)

    @property
    def is_open(self) -> bool:
        """Is the game still held?"""
        return self._open

    def close(self) -> None:
        """Leave the game as it was found: keys up, flags as they were, its own speed. Safe to call again."""
        if not self._open:
            return
        self._open = False
        atexit.unregister(self.close)
        if _HELD.get(self.found.pid) is self:
            del _HELD[self.found.pid]
        for part in (self.keyboard.release_all, self._put_back, self.clock.close, self.keyboard.close,
                     self.window.close, self.process.close):  # fmt: skip
            # One part that fails, as all do when the game is gone, must not keep the others from being put back.
            with suppress(SoulsError, OSError):
                part()

    def remember(self) -> None:
        """Note what must be put back in the end, once a character is loaded; ReadFailed while none is."""
        if self._saved is None:
            # What a training that was killed has left behind is not how the game was.
            self._saved = self.title.untouched() if self.clock.was_abandoned else self.title.remember()

    def _put_back(self) -> None:
        # What nobody has written is not written back: the way to it may be wrong.
        if self._saved is not None and (self.title.was_written or self.clock.was_abandoned):
            self.title.put_back(self._saved)


def find_game(name: str = "darksouls3", pid: int | None = None) -> ProcessInfo:
    """The one running game of a title, or the one with this pid."""
    table = load_addresses(name)
    games = find_processes(table.executable)
    if pid is not None:
        games = [game for game in games if game.pid == pid]
        if not games:
            raise GameNotFound(f"process {pid} is not {table.executable}; leave out the pid, or look it up again")
    if not games:
        raise GameNotFound(f"{table.executable} is not running; start the game and load your character, then try again")
    if len(games) > 1:
        pids = ", ".join(str(game.pid) for game in games)
        raise MisuseError(f"{len(games)} processes of {table.executable} are running; say which by its pid: {pids}")
    return games[0]


def held_game(pid: int) -> Game | None:
    """The game with this pid, if this program holds it."""
    return _HELD.get(pid)


def hold_clock(found: ProcessInfo) -> Clock:
    """The clock of a running game: that of the game if this program holds it, else one that it keeps by itself."""
    if (held := _HELD.get(found.pid)) is not None:
        return held.clock
    if found.pid not in _CLOCKS:
        process = open_process(found.pid)
        try:
            _CLOCKS[found.pid] = load_speed_control(found, ProcessMemory(process)), process
        except BaseException:
            process.close()
            raise
    return _CLOCKS[found.pid][0]


def release_clock(pid: int) -> None:
    """Let the game with this pid run as it does by itself, if this program holds nothing but its clock."""
    for part in _CLOCKS.pop(pid, ()):
        part.close()


def attach(name: str = "darksouls3", pid: int | None = None, display: str = "") -> Game:
    """Get hold of a running game, on an X display if that must be said.

    It is left as it was found when the interpreter ends, whatever happens. If this program holds it already, as after a
    cell of a notebook that failed, that is closed first.
    """
    if name not in TITLES:
        raise MisuseError(f"title {name!r} is not known; give one of {', '.join(TITLES)}")
    found = replace(find_game(name, pid), display=display)
    if (held := _HELD.get(found.pid)) is not None:
        log.warning("the game (pid %d) was held by an environment that was never closed; closing it now", found.pid)
        held.close()
    release_clock(found.pid)
    table = load_addresses(name)
    opened: list[Any] = []
    try:
        process = open_process(found.pid)
        opened.append(process)
        memory = ProcessMemory(process)
        window = open_window(found, table.window_title)
        opened.append(window)
        keyboard = Keyboard(open_keys(found), load_bindings(name))
        opened.append(keyboard)
        clock = load_speed_control(found, memory)
        opened.append(clock)
        title = TITLES[name](memory, keyboard=keyboard, window=window, clock=clock)
    except BaseException:
        for part in reversed(opened):
            with suppress(SoulsError, OSError):
                part.close()
        raise
    keyboard.release_all()  # what an earlier program left down when it was killed
    game = Game(name, found, process, memory, title, keyboard, window, clock)
    with suppress(GameError):  # not in game yet
        game.remember()
    atexit.register(game.close)
    _HELD[found.pid] = game
    return game


class Launcher:
    """Starts a game again after it crashed or hung, by the user's own command."""

    def __init__(self, command: str | Sequence[str], name: str = "darksouls3") -> None:
        # Windows itself takes a program and its arguments apart.
        self._command = shlex.split(command) if isinstance(command, str) and sys.platform != "win32" else command
        if not self._command:
            raise MisuseError("launch command is empty; give the command that starts the game")
        self._name = name

    def __call__(self, game: Game) -> Game:
        """End what is left of `game`, start another and get hold of it."""
        game.close()
        _end(game)
        log.info("starting the game again: %s", self._command)
        place = {key: value for key, value in game.found.environment.items() if key in PLACE}
        return self.start(place, game.found.display)

    def start(self, place: Mapping[str, str] | None = None, display: str = "") -> Game:
        """Start the game, in its display and prefix, and wait until it can be got hold of."""
        executable, prefix = load_addresses(self._name).executable, (place or {}).get("WINEPREFIX")
        before = {found.pid for found in find_processes(executable)}
        try:
            subprocess.Popen(
                self._command, env={**os.environ, **(place or {})}, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        except OSError as error:
            raise GameNotFound(f"launch command {self._command} cannot be run: {error.strerror}") from error
        deadline, last = time.monotonic() + START_LIMIT_S, "no process appeared"
        while time.monotonic() < deadline:
            found = [one for one in find_processes(executable) if one.pid not in before]
            # Somebody else may start the same game in a prefix of his own at the same moment.
            new = [one.pid for one in found if not prefix or one.environment.get("WINEPREFIX", prefix) == prefix]
            if new:
                try:
                    return attach(self._name, new[0], display)
                except GameError as error:  # its window, or its own code in memory, is not there yet
                    last = str(error)
            time.sleep(LOOK_EVERY_S)
        raise GameHung(f"the game was not ready {START_LIMIT_S:.0f} s after its launch ({last}); start it by hand")


def _end(game: Game) -> None:
    """A game that hangs must go before another can come: Steam starts only one."""
    pid, executable = game.found.pid, load_addresses(game.name).executable
    deadline = time.monotonic() + END_LIMIT_S
    while any(found.pid == pid for found in find_processes(executable)):  # by now the pid may be another program's
        with suppress(OSError):  # it has just ended by itself, or we may not end it: the next look tells
            os.kill(pid, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
        if time.monotonic() > deadline:
            raise GameHung(f"process {pid} of the game does not end; end it by hand")
        time.sleep(LOOK_EVERY_S)
