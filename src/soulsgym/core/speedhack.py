"""SoulsGym's speed control of a running game."""

from __future__ import annotations

from pathlib import Path

from soulsgym.core.utils import find_process
from soulsgym.game.attach import held_game
from soulsgym.game.clock import Clock, load_speed_control
from soulsgym.game.memory import ProcessMemory
from soulsgym.game.process import Process, open_process


class SpeedHackConnector:
    """The clock of a running game, shared with the environment that plays it if there is one in this program."""

    def __init__(self, process_name: str = "DarkSoulsIII.exe") -> None:
        found = find_process(process_name)
        shared = held_game(found.pid)
        self._own: tuple[Clock | Process, ...] = ()
        if shared is not None:
            self._clock = shared.clock
            return
        process = open_process(found.pid)
        try:
            self._clock = load_speed_control(found, ProcessMemory(process))
        except BaseException:
            process.close()
            raise
        self._own = self._clock, process

    def set_game_speed(self, value: float) -> None:
        """Let the game run so many times as fast as it does by itself; 0 stops it."""
        self._clock.set_speed(value)

    def close(self) -> None:
        """Let the game run as it does by itself, unless an environment plays it."""
        for part in self._own:
            part.close()


def inject_dll(process_name: str, dll_path: Path | str | None = None) -> None:
    """Load our own library into a running game, if it is not there yet; `dll_path`, SoulsGym's, is not looked at."""
    SpeedHackConnector(process_name).close()


__all__ = ["SpeedHackConnector", "inject_dll"]
