"""A desktop of Windows that is not there, with windows as a test says."""

# ruff: noqa: N802 (the names are those of Windows)

from __future__ import annotations

import contextlib
from types import SimpleNamespace

from mss.exception import ScreenShotError


class FakeWindows:
    """Windows of a made-up desktop, by handle: owner, name, client size, corner, visible, minimised."""

    def __init__(self):
        self.windows, self.front, self.dpi = {}, 0, []
        self.obeys = lambda tries: True
        self.asked, self.attached, self.alts, self.shown = 0, [], 0, []
        self.screen, self.locked, self.opened, self.closed = (0, 0, 1920, 1080), False, 0, 0
        self.user32 = self.kernel32 = self

    def add(self, handle, pid=7, name="DARK SOULS III", size=(4, 3), at=(100, 50), visible=True, minimised=False):
        self.windows[handle] = SimpleNamespace(
            pid=pid, name=name, size=size, at=at, visible=visible, minimised=minimised
        )

    @contextlib.contextmanager
    def real_pixels(self):
        self.dpi.append("on")
        yield
        self.dpi.append("off")

    def EnumWindows(self, call, _):
        for handle in self.windows:
            call(handle, None)
        return 1

    def GetWindowThreadProcessId(self, handle, pid):
        if pid is not None:
            pid._obj.value = self.windows[handle].pid
        return 1000 + handle

    def IsWindow(self, handle):
        return handle in self.windows

    def IsWindowVisible(self, handle):
        return self.windows[handle].visible

    def IsIconic(self, handle):
        return self.windows[handle].minimised

    def ShowWindow(self, handle, how):
        self.shown.append(how)
        self.windows[handle].minimised = False

    def GetWindowTextW(self, handle, text, size):
        text.value = self.windows[handle].name[: size - 1]
        return len(text.value)

    def GetClientRect(self, handle, rectangle):
        rectangle._obj.right, rectangle._obj.bottom = self.windows[handle].size
        return 1

    def ClientToScreen(self, handle, point):
        point._obj.x, point._obj.y = self.windows[handle].at
        return 1

    def GetSystemMetrics(self, number):
        return self.screen[number - 76]

    def GetForegroundWindow(self):
        return self.front

    def SetForegroundWindow(self, handle):
        self.asked += 1
        if self.obeys(self):
            self.front = handle
        return 1

    def BringWindowToTop(self, handle):
        return 1

    def GetCurrentThreadId(self):
        return 5

    def AttachThreadInput(self, own, other, on):
        self.attached.append((own, other, on))
        return 1

    def SendInput(self, count, inputs, size):
        self.alts += 1
        assert [one.key.vk for one in inputs._obj] == [0x12, 0x12]
        return count

    def open_mss(self):
        self.opened += 1
        return self

    def grab(self, area):
        if self.locked:
            raise ScreenShotError("BitBlt failed")
        # The colour of a pixel tells where it is: blue its column, green its row on the screen.
        return SimpleNamespace(
            raw=bytes(
                number & 0xFF
                for row in range(area["height"])
                for column in range(area["width"])
                for number in (area["left"] + column, area["top"] + row, 7, 0)
            )
        )

    def close(self):
        self.closed += 1
