"""Presses keys on an X display through its XTEST extension: to a game they are like those of a real keyboard."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from soulsgym.errors import GameError
from soulsgym.game.linux.display import Screen

KEYSYMS = {
    "Space": "space",
    "Tab": "Tab",
    "Enter": "Return",
    "Escape": "Escape",
    "Backspace": "BackSpace",
    "Shift": "Shift_L",
    "Control": "Control_L",
    "Alt": "Alt_L",
    "Up": "Up",
    "Down": "Down",
    "Left": "Left",
    "Right": "Right",
}
"""X11's names of keys that are not letters or digits."""
BUSY_S = 0.5
"""How long one thread waits until another one has sent its keys."""


class LinuxKeys:
    """The keys of one X display."""

    def __init__(self, environment: Mapping[str, str], pid: int | None = None, display: str = "") -> None:
        self._place = environment, pid, display
        self._lock = threading.Lock()
        self._interrupted = False
        self._down: dict[str, int] = {}
        self._open()

    def _open(self) -> None:
        self._screen = Screen(*self._place)
        self._codes: dict[str, int] = {}
        if not self._screen.display.has_extension("XTEST"):
            name = self._screen.name
            self._screen.close()
            raise GameError(f"the display {name} has no XTEST extension, so no key can be pressed on it")

    def send(self, changes: Sequence[tuple[str, bool]]) -> None:
        """Press and let go of keys, in this order; the display has done it when this returns."""
        # A signal handler can come here while its own thread is inside, and Ctrl-C can break off in the middle. The
        # old connection is then of no use, as its locks may stay locked for ever; a new one works at once.
        if not self._lock.acquire(timeout=BUSY_S):
            self._lock = threading.Lock()
            self._lock.acquire()
            self._interrupted = True
        lock = self._lock
        try:
            if self._interrupted:
                self._screen.close()
                self._open()
            self._interrupted = True
            with self._screen.asking("pressing keys"):
                self._send(changes)
            self._interrupted = False
        finally:
            lock.release()

    def _send(self, changes: Sequence[tuple[str, bool]]) -> None:
        from Xlib import X

        self._follow_layout()
        codes = [self._code_to_release(key) if not down else self.code(key) for key, down in changes]
        display = self._screen.display
        for (key, down), code in zip(changes, codes, strict=True):
            if code is None:
                continue
            display.xtest_fake_input(X.KeyPress if down else X.KeyRelease, code)
            if down:
                self._down[key] = code
            else:
                self._down.pop(key, None)
        display.sync()

    def _code_to_release(self, key: str) -> int | None:
        # As it was pressed, even if the layout has changed since. A key that the layout lacks cannot be down.
        if key in self._down:
            return self._down[key]
        try:
            return self.code(key)
        except GameError:
            return None

    def _follow_layout(self) -> None:
        from Xlib import X

        display = self._screen.display
        for _ in range(display.pending_events()):
            event = display.next_event()
            if event.type == X.MappingNotify:
                display.refresh_keyboard_mapping(event)
                self._codes.clear()

    def code(self, key: str) -> int:
        """The display's number of a key, by the keyboard layout of now; GameError if the layout lacks it."""
        if key not in self._codes:
            self._codes[key] = self._looked_up(key)
        return self._codes[key]

    def _looked_up(self, key: str) -> int:
        from Xlib import XK

        name = KEYSYMS.get(key, key.lower() if len(key) == 1 else "")
        keysym = XK.string_to_keysym(name) if name else 0
        if not keysym:
            raise GameError(f"the key {key!r} is not known; give a letter, a digit or one of {', '.join(KEYSYMS)}")
        found: list[Any] = list(self._screen.display.keysym_to_keycodes(keysym))
        # Even places of a key's row are without Shift; the first place is the first layout of the list.
        plain = sorted((index, code) for code, index in found if index % 2 == 0)
        if not plain:
            raise GameError(
                f"the keyboard layout of display {self._screen.name} has no key {key!r}; "
                "choose an English layout (for example: setxkbmap us)"
            )
        return int(plain[0][1])

    def missing(self, keys: Iterable[str]) -> list[str]:
        """Those keys that the present layout lacks."""
        with self._screen.asking("reading the keyboard layout"):
            self._follow_layout()
            return [key for key in keys if not self._has(key)]

    def _has(self, key: str) -> bool:
        try:
            return bool(self.code(key))
        except GameError:
            return False

    def layouts(self) -> list[str]:
        """The layouts of the display, by their short names; empty if it does not tell."""
        from Xlib import X

        with self._screen.asking("reading the keyboard layout"):
            atom = self._screen.atom("_XKB_RULES_NAMES")
            found = self._screen.root.get_full_property(atom, X.AnyPropertyType) if atom else None
        parts = bytes(found.value).decode("latin-1").split("\0") if found is not None else []
        # Rules, model, layouts, variants, options.
        return [name for name in parts[2].split(",") if name] if len(parts) > 2 else []

    def close(self) -> None:
        """Hang up; what is down stays down."""
        self._screen.close()
