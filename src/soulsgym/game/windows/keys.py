"""Presses keys in Windows, for whichever window is in front."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from ctypes import wintypes
from typing import Any

from soulsgym.errors import GameError

VIRTUAL_KEYS = {
    "Backspace": 0x08,
    "Tab": 0x09,
    "Enter": 0x0D,
    "Shift": 0x10,
    "Control": 0x11,
    "Alt": 0x12,
    "Escape": 0x1B,
    "Space": 0x20,
    "Left": 0x25,
    "Up": 0x26,
    "Right": 0x27,
    "Down": 0x28,
}
"""Windows' numbers of keys that are not letters or digits; those have the number of their character."""
EXTENDED = frozenset({"Left", "Up", "Right", "Down"})
"""Keys whose scan code a number-pad key has too."""
KEYBOARD_INPUT = 1
EXTENDED_KEY, KEY_UP = 0x1, 0x2
VK_TO_SCAN = 0


class KeyInput(ctypes.Structure):
    """KEYBDINPUT of Windows."""

    _fields_ = (
        ("vk", ctypes.c_uint16),
        ("scan", ctypes.c_uint16),
        ("flags", ctypes.c_uint32),
        ("time", ctypes.c_uint32),
        ("extra", ctypes.c_size_t),
    )


class Input(ctypes.Structure):
    """INPUT of Windows, with room for the largest of its kinds."""

    _fields_ = (("kind", ctypes.c_uint32), ("key", KeyInput), ("room", ctypes.c_byte * 8))


def virtual_key(key: str) -> int:
    """Windows' number of a key; GameError if there is none of this name."""
    if key in VIRTUAL_KEYS:
        return VIRTUAL_KEYS[key]
    if len(key) == 1 and key.isascii() and key.isalnum():
        return ord(key.upper())
    raise GameError(f"the key {key!r} is not known; give a letter, a digit or one of {', '.join(VIRTUAL_KEYS)}")


def load_user32() -> Any:
    """Windows' own library of windows and keys, with its types."""
    # On 64-bit Windows there is but one calling convention, so this is the same as WinDLL.
    user32 = ctypes.CDLL("user32", use_last_error=True)
    handle, dword = wintypes.HANDLE, ctypes.c_uint32
    for name, result, arguments in (
        ("SendInput", ctypes.c_uint, (ctypes.c_uint, ctypes.c_void_p, ctypes.c_int)),
        ("MapVirtualKeyExW", ctypes.c_uint, (ctypes.c_uint, ctypes.c_uint, handle)),
        ("GetKeyboardLayout", handle, (dword,)),
        ("GetKeyboardLayoutList", ctypes.c_int, (ctypes.c_int, ctypes.c_void_p)),
        ("GetForegroundWindow", handle, ()),
        ("GetWindowThreadProcessId", dword, (handle, ctypes.c_void_p)),
    ):
        function = getattr(user32, name)
        function.restype, function.argtypes = result, arguments
    return user32


class WindowsKeys:
    """The keyboard of this desktop; the window in front gets what is pressed."""

    def __init__(self, pid: int, user32: Any = None) -> None:
        self._pid = pid
        self._user32 = user32 if user32 is not None else load_user32()

    def send(self, changes: Sequence[tuple[str, bool]]) -> None:
        """Press and let go of keys, in this order, with nothing of other programs in between."""
        if not changes:
            return
        layout = self._layout()
        inputs = (Input * len(changes))(*(self._input(key, down, layout) for key, down in changes))
        taken = self._user32.SendInput(len(inputs), ctypes.byref(inputs), ctypes.sizeof(Input))
        if taken != len(inputs):
            raise GameError(
                f"Windows took {taken} of {len(inputs)} key presses; another program blocks them, or the game runs "
                "as administrator: then run this as administrator too"
            )

    def _layout(self) -> Any:
        # The layout belongs to the thread of the window in front, which is what reads the keys.
        window = self._user32.GetForegroundWindow()
        thread = self._user32.GetWindowThreadProcessId(window, None) if window else 0
        return self._user32.GetKeyboardLayout(thread)

    def _input(self, key: str, down: bool, layout: Any) -> Input:
        # Both numbers: games that ask DirectInput see the scan code, all others the virtual key.
        vk = virtual_key(key)
        scan = self._user32.MapVirtualKeyExW(vk, VK_TO_SCAN, layout)
        if not scan and down:
            raise GameError(f"the keyboard layout has no key {key!r}; add and choose an English layout in Windows")
        flags = (EXTENDED_KEY if key in EXTENDED else 0) | (0 if down else KEY_UP)
        return Input(KEYBOARD_INPUT, KeyInput(vk, scan, flags, 0, 0))

    def missing(self, keys: Iterable[str]) -> list[str]:
        """Those keys that the present layout lacks."""
        layout = self._layout()
        return [key for key in keys if not self._user32.MapVirtualKeyExW(virtual_key(key), VK_TO_SCAN, layout)]

    def layouts(self) -> list[str]:
        """The languages of all installed layouts, as Windows numbers them: 0409 is English of the United States."""
        count = self._user32.GetKeyboardLayoutList(0, None)
        handles = (wintypes.HANDLE * max(count, 1))()
        count = self._user32.GetKeyboardLayoutList(count, ctypes.byref(handles))
        return [f"{(handle or 0) & 0xFFFF:04x}" for handle in handles[:count]]

    def close(self) -> None:
        """Nothing is held of the system."""
