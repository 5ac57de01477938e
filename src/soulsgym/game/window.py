"""The window of a game: what has the focus, and what is seen."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol

from soulsgym.errors import GameError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from soulsgym.game.process import Found

FIND_S = 10.0
"""How long a game that has just started may take to show its window."""
FOCUS_S = 2.0


class Window(Protocol):
    """One window of a running game."""

    title: str

    def activate(self, limit_s: float = FOCUS_S) -> None:
        """Give the window the focus, without mouse; FocusLost if it does not get it in time."""
        ...

    def has_focus(self) -> bool:
        """Do key presses go to this window?"""
        ...

    def client_size(self) -> tuple[int, int]:
        """Width and height of what the game draws, in pixels."""
        ...

    def grab(self) -> npt.NDArray[np.uint8]:
        """What is seen now: (height, width, 3), RGB, without frame and title bar."""
        ...

    def close(self) -> None:
        """Let go of the system's resources; the window stays."""
        ...


def open_window(found: Found, title: str, limit_s: float = FIND_S) -> Window:
    """The window of a running game; waits for it up to the limit, then GameNotFound."""
    if sys.platform == "win32":
        from soulsgym.game.windows.window import open_windows_window

        return open_windows_window(found.pid, title, limit_s)
    if sys.platform == "linux":
        from soulsgym.game.linux.window import open_linux_window

        return open_linux_window(found, title, limit_s)
    raise GameError(f"a window cannot be found on {sys.platform}; a game is played on Windows or Linux")
