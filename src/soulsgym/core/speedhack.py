"""SoulsGym's speed control of a running game."""

from __future__ import annotations

from pathlib import Path

from soulsgym.core.utils import find_process
from soulsgym.game.attach import hold_clock, release_clock


class SpeedHackConnector:
    """The clock of a running game, shared with whatever else in this program plays or speeds up that game."""

    def __init__(self, process_name: str = "DarkSoulsIII.exe") -> None:
        self._found = find_process(process_name)
        hold_clock(self._found)

    def set_game_speed(self, value: float) -> None:
        """Let the game run so many times as fast as it does by itself; 0 stops it."""
        hold_clock(self._found).set_speed(value)

    def close(self) -> None:
        """Let the game run as it does by itself, unless an environment plays it."""
        release_clock(self._found.pid)


def inject_dll(process_name: str, dll_path: Path | str | None = None) -> None:
    """Load our own library into a running game, if it is not there yet; `dll_path`, SoulsGym's, is not looked at."""
    SpeedHackConnector(process_name)


__all__ = ["SpeedHackConnector", "inject_dll"]
