"""SoulsGym's `core.utils`."""

from __future__ import annotations

from soulsgym.errors import GameNotFound
from soulsgym.game.process import ProcessInfo, find_processes
from soulsgym.geometry import wrap_angle as wrap_to_pi


def find_process(process_name: str) -> ProcessInfo:
    """A running program by its name, such as `DarkSoulsIII.exe`; GameNotFound if there is none."""
    found = find_processes(process_name)
    if not found:
        raise GameNotFound(f"{process_name} is not running; start it, then try again")
    return found[0]


def get_pid(process_name: str) -> int:
    """The id of a running program by its name."""
    return find_process(process_name).pid


__all__ = ["find_process", "get_pid", "wrap_to_pi"]
