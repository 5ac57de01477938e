"""An X display of our own, and plain windows on it that note the keys they get."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator

import pytest


@contextlib.contextmanager
def x_server(*options: str, size: str = "1024x768x24") -> Iterator[str]:
    """A running Xvfb; the name of its display."""
    if shutil.which("Xvfb") is None:
        pytest.skip("Xvfb is not installed, and so there is no display to press keys on")
    pytest.importorskip("Xlib", reason="python-xlib is not installed")
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", size, "-nolisten", "tcp", "-noreset", *options]
    server = subprocess.Popen(command, pass_fds=[writing], stderr=subprocess.DEVNULL)
    os.close(writing)
    try:
        with open(reading) as pipe:
            number = pipe.readline().strip()
        assert number, "Xvfb did not start"
        yield f":{number}"
    finally:
        server.terminate()
        server.wait(60)


class Client:
    """A program with one window on a display; `keys()` are the presses it got."""

    def __init__(self, display, title, *, pid=None, size=(320, 200), at=(40, 30), inside=None, program=None):
        from Xlib import X, Xatom
        from Xlib.display import Display

        self.display = Display(display)
        screen = self.display.screen()
        parent = self.display.create_resource_object("window", inside.window.id) if inside else screen.root
        self.window = parent.create_window(
            *at, *size, 0, screen.root_depth, background_pixel=0x204060, event_mask=X.KeyPressMask | X.KeyReleaseMask
        )
        self.window.set_wm_name(title)
        name = self.display.intern_atom("_NET_WM_NAME")
        self.window.change_property(name, self.display.intern_atom("UTF8_STRING"), 8, title.encode())
        if program is not None:
            self.window.set_wm_class(program, program)
        if pid is not None:
            self.window.change_property(self.display.intern_atom("_NET_WM_PID"), Xatom.CARDINAL, 32, [pid])
        self.window.map()
        self.display.sync()

    def focus(self) -> None:
        from Xlib import X

        self.window.set_input_focus(X.RevertToParent, X.CurrentTime)
        self.display.sync()

    def events(self) -> list[tuple[int, bool]]:
        """(key code, down) of every key event so far."""
        from Xlib import X

        self.display.sync()
        found = []
        while self.display.pending_events():
            event = self.display.next_event()
            if event.type in (X.KeyPress, X.KeyRelease):
                found.append((event.detail, event.type == X.KeyPress))
        return found

    def keys(self) -> list[str]:
        """The name of every key event: "w+" is W down, "w-" is W up."""
        from Xlib import XK

        names = []
        for code, down in self.events():
            keysym = self.display.keycode_to_keysym(code, 0)
            names.append((XK.keysym_to_string(keysym) or hex(keysym)) + ("+" if down else "-"))
        return [name.replace(" ", "space") for name in names]

    def close(self) -> None:
        self.display.close()


def wait_until(condition, limit_s: float = 60.0) -> None:
    """Wait for a condition; fail when it does not come."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)
