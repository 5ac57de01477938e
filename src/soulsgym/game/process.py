"""A running program: its memory and its modules, by pid. Below this seam the operating systems differ."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from soulsgym.errors import GameError

Spans = Sequence[tuple[int, int]]
"""Pieces of memory: address and size of each."""


class Process(Protocol):
    """One running program, by its pid."""

    pid: int
    calls: int
    """Batches of memory read or written so far."""

    def read_many(self, spans: Spans) -> bytes:
        """All spans, one behind the other."""

    def prepare(self, spans: Spans) -> Callable[[], bytes]:
        """The same read again and again, with everything built beforehand. Not for two threads at a time."""

    def write(self, address: int, data: bytes) -> None:
        """Put bytes there."""

    def modules(self) -> dict[str, int]:
        """Base addresses by file name in lower case."""

    def is_running(self) -> bool:
        """Has it not ended?"""

    def close(self) -> None:
        """Let go of it."""


@dataclass(frozen=True)
class ProcessInfo:
    """A program that runs."""

    pid: int
    executable_path: str
    environment: Mapping[str, str] = field(default_factory=dict)
    """Of the program, where the system tells: on Linux DISPLAY and WINEPREFIX are in it."""
    display: str = ""
    """The X display that the user says it is on; empty: look in its environment."""


def find_processes(executable: str) -> list[ProcessInfo]:
    """All running programs with this file name, by pid."""
    if sys.platform.startswith("linux"):
        from soulsgym.game.linux import process as linux

        return linux.find_processes(executable)
    if sys.platform == "win32":
        from soulsgym.game.windows import process as windows

        return windows.find_processes(executable)
    raise _no_backend()


def open_process(pid: int) -> Process:
    """The running program with this pid."""
    if sys.platform.startswith("linux"):
        from soulsgym.game.linux import process as linux

        return linux.LinuxProcess(pid)
    if sys.platform == "win32":
        from soulsgym.game.windows import process as windows

        return windows.WindowsProcess(pid)
    raise _no_backend()


def _no_backend() -> GameError:
    return GameError(f"games can be played on Windows and on Linux; this system calls itself {sys.platform!r}")


def is_called(path: str, executable: str) -> bool:
    """Is `executable` the last part of the path, whichever way its separators lean?"""
    return path.replace("\\", "/").rpartition("/")[2].strip().lower() == executable.lower()
