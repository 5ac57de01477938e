"""A connection to the X display on which a game shows itself."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from soulsgym.errors import GameError
from soulsgym.packages import install_command

_AUTHORITY = threading.Lock()
"""Who may read a display is said by an environment variable alone, so connections are made one at a time."""
INSTALL = f"run: {install_command('game')}"
PROC = Path("/proc")
LOCAL = 256
"""The family of addresses of this machine, in an authority file."""
COOKIE = b"MIT-MAGIC-COOKIE-1"
LARGEST_AUTHORITY = 1 << 20


@dataclass(frozen=True)
class Way:
    """A display, and the content of the authority file to show there; None is the user's own."""

    display: str
    authority: bytes | None = None


def ways(environment: Mapping[str, str], pid: int | None = None, chosen: str = "") -> list[Way]:
    """Where a game may be seen, the likeliest first: its own display, or the one chosen, then the user's.

    Proton runs a game in a container, whose authority file, and in old ones even the display, has a name that means
    nothing outside. The file is read through the process's own root.
    """
    own, users = environment.get("DISPLAY", ""), os.environ.get("DISPLAY", "")
    names = [chosen] if chosen else list(dict.fromkeys(name for name in (own, users) if name))
    content = _authority_file(environment.get("XAUTHORITY", ""), pid)
    found: list[Way] = []
    for name in names:
        rights = as_local(content, name)
        both = [Way(name, rights), Way(name)] if rights else [Way(name)]
        found += both if name == own else reversed(both)
    return found


def _authority_file(path: str, pid: int | None) -> bytes:
    """The content of the game's authority file; nothing if it has none that can be read."""
    if not path.startswith("/"):
        return b""
    inside = [PROC / str(pid) / "root" / path.lstrip("/")] if pid is not None else []
    for file in (*inside, Path(path)):
        try:
            with file.open("rb") as stream:
                return stream.read(LARGEST_AUTHORITY)
        except OSError:  # gone, not ours, or a name from inside of a container
            continue
    return b""


def as_local(content: bytes, display: str) -> bytes:
    """An authority file with the best cookie of another for this machine and any display.

    Containers write the host as any host, which python-xlib does not understand, or another number of the display.
    """
    number = display.rpartition(":")[2].partition(".")[0].encode()
    rows = [row for row in _entries(content) if row[2] == COOKIE]
    rows.sort(key=lambda row: (row[1] not in (number, b""), row[0] != LOCAL))
    if not rows:
        return b""
    parts = (socket.gethostname().encode(), b"", COOKIE, rows[0][3])
    return struct.pack(">H", LOCAL) + b"".join(struct.pack(">H", len(part)) + part for part in parts)


def _entries(content: bytes) -> Iterator[tuple[int, bytes, bytes, bytes]]:
    """Family, display number, kind and data of each row, up to the first that is cut off."""
    at = 0
    while at + 2 <= len(content):
        (family,) = struct.unpack_from(">H", content, at)
        at += 2
        parts = []
        for _ in range(4):
            if at + 2 > len(content):
                return
            (length,) = struct.unpack_from(">H", content, at)
            parts.append(content[at + 2 : at + 2 + length])
            at += 2 + length
        if at > len(content):
            return
        yield family, parts[1], parts[2], parts[3]


class Screen:
    """One connection; its errors are ours, and none of them is printed."""

    def __init__(self, environment: Mapping[str, str], pid: int | None = None, chosen: str = "") -> None:
        found = ways(environment, pid, chosen)
        if not found:
            raise GameError(
                "the game has no DISPLAY in its environment; start it on an X display (or XWayland), or give --display"
            )
        self.display: Any = None
        self.way, failures = found[0], list[str]()
        for self.way in found:
            try:
                self.display = self._connected()
                break
            except GameError as error:
                failures.append(str(error))
        if self.display is None:
            raise GameError("; ".join(dict.fromkeys(failures)) + "; is it running, and yours? give --display if not")
        # Errors of requests without an answer, like a press for a window that has just gone: python-xlib prints them.
        self.display.set_error_handler(lambda *_: None)
        self.root: Any = self.display.screen().root

    @property
    def name(self) -> str:
        """The name of the display."""
        return self.way.display

    def _connected(self) -> Any:
        try:
            from Xlib.display import Display
            from Xlib.error import DisplayError
        except ModuleNotFoundError as error:
            raise GameError(f"python-xlib, which presses keys on Linux, is not installed; {INSTALL}") from error
        try:
            with authority(self.way):
                return Display(self.name)
        except (DisplayError, OSError) as error:
            reason = " ".join(str(error).split())
            raise GameError(f"the display {self.name} cannot be reached: {reason}") from None

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
def authority(way: Way) -> Iterator[None]:
    """Show the game's own right to its display, for as long as a connection is made."""
    with _AUTHORITY:
        if way.authority is None:
            yield
            return
        before = os.environ.get("XAUTHORITY")
        with tempfile.NamedTemporaryFile(prefix="souls-authority-") as file:  # readable by the user alone
            file.write(way.authority)
            file.flush()
            os.environ["XAUTHORITY"] = file.name
            try:
                yield
            finally:
                if before is None:
                    del os.environ["XAUTHORITY"]
                else:
                    os.environ["XAUTHORITY"] = before
