"""The window of a game: what has the focus, and what is seen."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from soulsgym.errors import GameError
from soulsgym.packages import install_command

if TYPE_CHECKING:
    import numpy.typing as npt

    from soulsgym.game.process import ProcessInfo

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


def open_window(found: ProcessInfo, title: str, limit_s: float = FIND_S) -> Window:
    """The window of a running game; waits for it up to the limit, then GameNotFound."""
    if sys.platform == "win32":
        from soulsgym.game.windows.window import open_windows_window

        return open_windows_window(found.pid, title, limit_s)
    if sys.platform == "linux":
        from soulsgym.game.linux.window import open_linux_window

        return open_linux_window(found, title, limit_s)
    raise GameError(f"a window cannot be found on {sys.platform}; a game is played on Windows or Linux")


class ScreenGrabber:
    """Parts of the screen as pictures, by mss, which is opened when the first is wanted."""

    def __init__(self, open_mss: Callable[[], Any], title: str) -> None:
        self._open_mss, self._title = open_mss, title
        self._mss: Any = None

    def grab(self, left: int, top: int, width: int, height: int) -> npt.NDArray[np.uint8]:
        """What is seen there now: (height, width, 3), RGB."""
        if width < 1 or height < 1:
            raise GameError(f"the window {self._title!r} is {width} x {height} pixels large; enlarge it")
        try:
            from mss.exception import ScreenShotError
        except ModuleNotFoundError as error:
            install = install_command("game")
            raise GameError(f"mss, which looks at windows, is not installed; run: {install}") from error
        try:
            if self._mss is None:
                self._mss = self._open_mss()
            raw = self._mss.grab({"left": left, "top": top, "width": width, "height": height}).raw
        except (ScreenShotError, OSError) as error:
            self._mss = None
            raise GameError(f"the window {self._title!r} cannot be seen: {error}; is the screen locked?") from error
        pixels = np.frombuffer(raw, np.uint8).reshape(height, width, 4)
        image = np.empty((height, width, 3), np.uint8)
        for channel in range(3):
            image[:, :, channel] = pixels[:, :, 2 - channel]
        return image

    def close(self) -> None:
        """Let go of the screen."""
        if self._mss is not None:
            self._mss.close()
            self._mss = None
