"""Finds a window in Windows, brings it to the front and looks at it."""

from __future__ import annotations

import contextlib
import ctypes
import time
from collections.abc import Iterator
from ctypes import wintypes
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.errors import FocusLost, GameError, GameNotFound
from soulsgym.game.window import ScreenGrabber
from soulsgym.game.windows.keys import KEY_UP, KEYBOARD_INPUT, Input, KeyInput, load_user32, virtual_key

POLL_S = 0.01
ASK_AGAIN_S = 0.25
RESTORE = 9
PER_MONITOR_AWARE = -4
"""Sizes and places in real pixels, on a display that Windows enlarges too."""
SCREEN_LEFT, SCREEN_TOP, SCREEN_WIDTH, SCREEN_HEIGHT = 76, 77, 78, 79
"""GetSystemMetrics' numbers for the rectangle around all monitors."""
LONGEST_TITLE = 256

EachWindow = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class Rectangle(ctypes.Structure):
    """RECT of Windows."""

    _fields_ = (
        ("left", ctypes.c_int32),
        ("top", ctypes.c_int32),
        ("right", ctypes.c_int32),
        ("bottom", ctypes.c_int32),
    )


class Point(ctypes.Structure):
    """POINT of Windows."""

    _fields_ = (("x", ctypes.c_int32), ("y", ctypes.c_int32))


class System:
    """The parts of Windows that windows and pictures need; a test puts something else in their place."""

    def __init__(self) -> None:
        self.user32: Any = load_user32()
        self.kernel32: Any = ctypes.CDLL("kernel32", use_last_error=True)
        handle, whole, pointer = wintypes.HANDLE, ctypes.c_int, ctypes.c_void_p
        for library, name, result, arguments in (
            (self.user32, "EnumWindows", whole, (EachWindow, pointer)),
            (self.user32, "IsWindow", whole, (handle,)),
            (self.user32, "IsWindowVisible", whole, (handle,)),
            (self.user32, "IsIconic", whole, (handle,)),
            (self.user32, "GetWindowTextW", whole, (handle, pointer, whole)),
            (self.user32, "GetClientRect", whole, (handle, pointer)),
            (self.user32, "ClientToScreen", whole, (handle, pointer)),
            (self.user32, "SetForegroundWindow", whole, (handle,)),
            (self.user32, "BringWindowToTop", whole, (handle,)),
            (self.user32, "ShowWindow", whole, (handle, whole)),
            (self.user32, "AttachThreadInput", whole, (ctypes.c_uint32, ctypes.c_uint32, whole)),
            (self.user32, "GetSystemMetrics", whole, (whole,)),
            (self.kernel32, "GetCurrentThreadId", ctypes.c_uint32, ()),
        ):
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments

    def open_mss(self) -> Any:
        """What takes pictures of the screen."""
        import mss

        return mss.MSS()

    @contextlib.contextmanager
    def real_pixels(self) -> Iterator[None]:
        """This thread sees sizes in real pixels for as long as this lasts; other threads and the user's own do not."""
        change = getattr(self.user32, "SetThreadDpiAwarenessContext", None)
        if change is None:
            yield
            return
        change.restype, change.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
        before = change(ctypes.c_void_p(PER_MONITOR_AWARE))
        try:
            yield
        finally:
            if before:
                change(before)


def open_windows_window(pid: int, title: str, limit_s: float, system: Any = None) -> WindowsWindow:
    """The visible window of a process: the one with the title, or else its largest."""
    system = system if system is not None else System()
    deadline = time.monotonic() + limit_s
    while True:
        handle = find_window(system, pid, title)
        if handle is not None:
            return WindowsWindow(system, handle, title)
        if time.monotonic() > deadline:
            raise GameNotFound(
                f"no window {title!r} of process {pid} appeared within {limit_s:g} s; is the game past its start?"
            )
        time.sleep(0.1)


def find_window(system: Any, pid: int, title: str) -> int | None:
    """The handle of the best window of a process; None if it shows none."""
    handles: list[int] = []

    def note(handle: int, _: object) -> int:
        handles.append(handle)
        return 1

    system.user32.EnumWindows(EachWindow(note), None)
    ranked = []
    for handle in handles:
        owner = ctypes.c_uint32()
        system.user32.GetWindowThreadProcessId(handle, ctypes.byref(owner))
        if owner.value == pid and system.user32.IsWindowVisible(handle):
            width, height = _size(system, handle)
            ranked.append((window_name(system, handle) == title, width * height, handle))
    return max(ranked)[2] if ranked else None


def window_name(system: Any, handle: int) -> str:
    """The text in a window's title bar."""
    text = ctypes.create_unicode_buffer(LONGEST_TITLE)
    system.user32.GetWindowTextW(handle, text, LONGEST_TITLE)
    return text.value.strip()


def _size(system: Any, handle: int) -> tuple[int, int]:
    inner = Rectangle()
    with system.real_pixels():
        system.user32.GetClientRect(handle, ctypes.byref(inner))
    return inner.right - inner.left, inner.bottom - inner.top


class WindowsWindow:
    """One window of a process."""

    def __init__(self, system: Any, handle: int, title: str) -> None:
        self.title = title
        self._system, self._handle = system, handle
        self._grabber = ScreenGrabber(system.open_mss, title)

    def has_focus(self) -> bool:
        """Do key presses go to this window?"""
        self._check()
        return bool(self._system.user32.GetForegroundWindow() == self._handle)

    def activate(self, limit_s: float = 2.0) -> None:
        """Bring the window to the front; FocusLost if Windows does not let it come."""
        deadline, next_try, tries = time.monotonic() + limit_s, 0.0, 0
        while not self.has_focus():
            now = time.monotonic()
            if now > deadline:
                raise FocusLost(
                    f"the window {self.title!r} did not come to the front within {limit_s:g} s: {self._holder()} is "
                    "there; click into the game once, then leave mouse and keyboard alone"
                )
            if now >= next_try:
                self._request_focus(tries)
                tries, next_try = tries + 1, now + ASK_AGAIN_S
            time.sleep(POLL_S)

    def _request_focus(self, tries: int) -> None:
        """Windows lets only some programs change the front window, so each further try asks in another way."""
        user32 = self._system.user32
        if user32.IsIconic(self._handle):
            user32.ShowWindow(self._handle, RESTORE)
        if tries == 0:
            user32.SetForegroundWindow(self._handle)
        elif tries % 2:
            self._request_as_the_front_thread()
        else:
            # Whoever got the last key may change the front window. Alt is not bound in the game.
            alt = (Input * 2)(*(Input(KEYBOARD_INPUT, KeyInput(virtual_key("Alt"), 0, up, 0, 0)) for up in (0, KEY_UP)))
            user32.SendInput(2, ctypes.byref(alt), ctypes.sizeof(Input))
            user32.SetForegroundWindow(self._handle)

    def _request_as_the_front_thread(self) -> None:
        user32 = self._system.user32
        own = self._system.kernel32.GetCurrentThreadId()
        front = user32.GetForegroundWindow()
        other = user32.GetWindowThreadProcessId(front, None) if front else 0
        attached = other not in (0, own) and user32.AttachThreadInput(own, other, 1)
        try:
            user32.BringWindowToTop(self._handle)
            user32.SetForegroundWindow(self._handle)
        finally:
            if attached:
                user32.AttachThreadInput(own, other, 0)

    def _holder(self) -> str:
        front = self._system.user32.GetForegroundWindow()
        name = window_name(self._system, front) if front else ""
        return f"the window {name!r}" if name else "a window without a name" if front else "no window"

    def client_size(self) -> tuple[int, int]:
        """Width and height of what the game draws."""
        self._check()
        return _size(self._system, self._handle)

    def grab(self) -> npt.NDArray[np.uint8]:
        """The client area now, from the screen: what Windows puts together there is what Direct3D drew."""
        self._check()
        user32 = self._system.user32
        if user32.IsIconic(self._handle):
            raise GameError(f"the window {self.title!r} is minimised, so nothing can be seen of it; restore it")
        with self._system.real_pixels():
            width, height = _size(self._system, self._handle)
            corner = Point()
            user32.ClientToScreen(self._handle, ctypes.byref(corner))
            left, top, wide, tall = map(user32.GetSystemMetrics, (SCREEN_LEFT, SCREEN_TOP, SCREEN_WIDTH, SCREEN_HEIGHT))
            right, bottom = corner.x + width, corner.y + height
            if corner.x < left or corner.y < top or right > left + wide or bottom > top + tall:
                raise GameError(
                    f"the window {self.title!r}, {width} x {height} at ({corner.x}, {corner.y}), is partly outside of "
                    f"the screen of {wide} x {tall}; move it so that all of it can be seen"
                )
            return self._grabber.grab(corner.x, corner.y, width, height)

    def _check(self) -> None:
        if not self._system.user32.IsWindow(self._handle):
            raise GameNotFound(f"the window {self.title!r} is gone; start the game, or wait until it shows")

    def close(self) -> None:
        """Let go of the system's resources; the window stays."""
        self._grabber.close()
