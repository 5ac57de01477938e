"""A connection to the X display on which a game shows itself."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from soulsgym.errors import GameError
from soulsgym.packages import install_command

_AUTHORITY = threading.Lock()
"""Who may read a display is said by an environment variable alone, so connections are made one at a time."""
INSTALL = f"run: {install_command('game')}"


class Screen:
    """One connection; its errors are ours, and none of them is printed."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment
        self.name = environment.get("DISPLAY") or os.environ.get("DISPLAY", "")
        if not self.name:
            raise GameError("the game has no DISPLAY in its environment; start it on an X display (or XWayland)")
        self.display: Any = self._connected()
        # Errors of requests without an answer, like a press for a window that has just gone: python-xlib prints them.
        self.display.set_error_handler(lambda *_: None)
        self.root: Any = self.display.screen().root

    def _connected(self) -> Any:
        try:
            from Xlib.display import Display
            from Xlib.error import DisplayError
        except ModuleNotFoundError as error:
            raise GameError(f"python-xlib, which presses keys on Linux, is not installed; {INSTALL}") from error
        try:
            with authority(self.environment):
                return Display(self.name)
        except (DisplayError, OSError) as error:
            reason = " ".join(str(error).split())
            raise GameError(f"the display {self.name} cannot be reached: {reason}; is it running, and yours?") from None

    @contextlib.contextmanager
    def asking(self, what: str) -> Iterator[None]:
        """Errors of the display, inside, become a GameError that names `what`; X errors of a request pass."""
        from Xlib.error import ConnectionClosedError

        try:
            yield
        except (ConnectionClosedError, OSError) as error:
            raise GameError(f"{what}: the display {self.name} has closed the connection; is it running?") from error

    def atom(self, name: str) -> int:
        """The number of a name; 0 if nobody on the display uses it."""
        return int(self.display.intern_atom(name, only_if_exists=True))

    def close(self) -> None:
        """Hang up."""
        with contextlib.suppress(Exception):
            # Not display.close(): it would wait for a lock that an interrupted call has left locked.
            self.display.display.socket.close()


@contextlib.contextmanager
def authority(environment: Mapping[str, str]) -> Iterator[None]:
    """Show the game's own right to its display, for as long as a connection is made."""
    with _AUTHORITY:
        before, own = os.environ.get("XAUTHORITY"), environment.get("XAUTHORITY")
        if own is None or own == before:
            yield
            return
        os.environ["XAUTHORITY"] = own
        try:
            yield
        finally:
            if before is None:
                del os.environ["XAUTHORITY"]
            else:
                os.environ["XAUTHORITY"] = before
