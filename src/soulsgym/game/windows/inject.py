"""Loading a DLL into a running game on Windows: a thread there calls LoadLibraryW."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import Any

from soulsgym.errors import GameGone, SpeedControlError

LIMIT_MS = 10_000
_RIGHTS = 0x0002 | 0x0400 | 0x0008 | 0x0020 | 0x0010 | 0x100000
"""CREATE_THREAD, QUERY_INFORMATION, VM_OPERATION, VM_WRITE, VM_READ, SYNCHRONIZE"""
_COMMIT_AND_RESERVE, _RELEASE, _READ_WRITE = 0x3000, 0x8000, 0x04
_WAIT_OBJECT_0 = 0
_ACCESS_DENIED = 5


@functools.cache
def _kernel() -> dict[str, Any]:
    """Functions of kernel32 by name, with their types: a handle or address must not be cut to 32 bits."""
    dll = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined,unused-ignore]
    pointer, size, number, yes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32, ctypes.c_int32
    types: dict[str, tuple[Any, ...]] = {
        "OpenProcess": (pointer, number, yes, number),
        "IsWow64Process": (yes, pointer, pointer),
        "VirtualAllocEx": (pointer, pointer, pointer, size, number, number),
        "VirtualFreeEx": (yes, pointer, pointer, size, number),
        "WriteProcessMemory": (yes, pointer, pointer, pointer, size, pointer),
        "GetModuleHandleW": (pointer, ctypes.c_wchar_p),
        "GetProcAddress": (pointer, pointer, ctypes.c_char_p),
        "CreateRemoteThread": (pointer, pointer, pointer, size, pointer, pointer, number, pointer),
        "WaitForSingleObject": (number, pointer, number),
        "GetExitCodeThread": (yes, pointer, pointer),
        "CloseHandle": (yes, pointer),
    }
    functions = {}
    for name, (result, *arguments) in types.items():
        functions[name] = getattr(dll, name)
        functions[name].restype, functions[name].argtypes = result, arguments
    return functions


def _failure(pid: int, what: str, advice: str) -> SpeedControlError:
    error = ctypes.get_last_error()  # type: ignore[attr-defined,unused-ignore]
    return SpeedControlError(
        f"the speed control cannot be loaded into pid {pid}: {what} (Windows error {error}); {advice}"
    )


def _gone(pid: int) -> GameGone:
    return GameGone(f"the game (pid {pid}) has ended: start it again")


def inject(pid: int, library: Path) -> None:
    """Load a library into a running program. It is found by its whole path, in any script."""
    kernel = _kernel()
    process = kernel["OpenProcess"](_RIGHTS, 0, pid)
    if not process:
        if ctypes.get_last_error() == _ACCESS_DENIED:  # type: ignore[attr-defined,unused-ignore]
            raise _failure(pid, "it may not be changed", "run this program as administrator")
        raise _gone(pid)
    try:
        if kernel["WaitForSingleObject"](process, 0) == _WAIT_OBJECT_0:  # It is still there for who holds it.
            raise _gone(pid)
        emulated = ctypes.c_int32(0)
        if kernel["IsWow64Process"](process, ctypes.addressof(emulated)) and emulated.value:
            raise SpeedControlError(f"pid {pid} is a 32-bit program and only 64-bit games are supported")
        _load(pid, process, library)
    finally:
        kernel["CloseHandle"](process)


def _load(pid: int, process: int, library: Path) -> None:
    kernel = _kernel()
    path = ctypes.create_unicode_buffer(str(library.resolve()))
    size = ctypes.sizeof(path)
    there = kernel["VirtualAllocEx"](process, None, size, _COMMIT_AND_RESERVE, _READ_WRITE)
    if not there or not kernel["WriteProcessMemory"](process, there, ctypes.addressof(path), size, None):
        raise _failure(pid, "its memory cannot be written", "run this program as administrator")
    # Windows loads kernel32 at the same place into all programs until the next start.
    loader = kernel["GetProcAddress"](kernel["GetModuleHandleW"]("kernel32.dll"), b"LoadLibraryW")
    thread = kernel["CreateRemoteThread"](process, None, 0, loader, there, 0, None)
    if not thread:
        raise _failure(pid, "no thread can be started in it", "switch off what protects it, such as anti-cheat")
    try:
        if kernel["WaitForSingleObject"](thread, LIMIT_MS) != _WAIT_OBJECT_0:
            # The path stays: the thread may still read it.
            raise _failure(pid, f"it did not answer within {LIMIT_MS // 1000} s", "start the game again")
        loaded = ctypes.c_uint32(0)
        kernel["GetExitCodeThread"](thread, ctypes.addressof(loaded))
    finally:
        kernel["CloseHandle"](thread)
    kernel["VirtualFreeEx"](process, there, 0, _RELEASE)
    if not loaded.value:
        raise SpeedControlError(
            f"pid {pid} refused to load {library}; look whether an anti-virus program blocks the file"
        )
