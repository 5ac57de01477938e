"""The calls of kernel32 that reach into another program, with their types, as plain Python methods.

By ctypes and not by a package: it is a dozen calls, which ask for no more rights than they need and can be counted,
and they run under Wine too, where psutil does not.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, Protocol

from soulsgym.errors import GameError

VM_OPERATION, VM_READ, VM_WRITE, QUERY_LIMITED, SYNCHRONIZE = 0x0008, 0x0010, 0x0020, 0x1000, 0x100000
ACCESS_DENIED, BAD_LENGTH, INVALID_PARAMETER = 5, 24, 87
_SNAP_PROCESS, _SNAP_MODULE, _SNAP_MODULE_32 = 0x02, 0x08, 0x10
_STILL_RUNNING = 0x102
_INVALID = ctypes.c_void_p(-1).value
_LONGEST_PATH = 32768
_SNAPSHOT_TRIES = 20

Handle = int


class _ProcessEntry(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_uint32),
        ("usage", ctypes.c_uint32),
        ("pid", ctypes.c_uint32),
        ("heap", ctypes.c_void_p),
        ("module", ctypes.c_uint32),
        ("threads", ctypes.c_uint32),
        ("parent", ctypes.c_uint32),
        ("priority", ctypes.c_int32),
        ("flags", ctypes.c_uint32),
        ("name", ctypes.c_wchar * 260),
    )


class _ModuleEntry(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_uint32),
        ("module", ctypes.c_uint32),
        ("pid", ctypes.c_uint32),
        ("usage", ctypes.c_uint32),
        ("process_usage", ctypes.c_uint32),
        ("base", ctypes.c_void_p),
        ("base_size", ctypes.c_uint32),
        ("handle", ctypes.c_void_p),
        ("name", ctypes.c_wchar * 256),
        ("path", ctypes.c_wchar * 260),
    )


class Api(Protocol):
    """What the process backend needs of Windows. Where a number is returned that says `error`, 0 is success."""

    def open(self, pid: int, rights: int) -> tuple[Handle, int]:
        """A handle and the error."""

    def read(self, handle: Handle, address: int, buffer: Any, size: int) -> int:
        """Fill the buffer with memory; the error."""

    def write(self, handle: Handle, address: int, data: bytes) -> int:
        """Put bytes there; the error."""

    def is_running(self, handle: Handle, wait_ms: int = 0) -> bool:
        """Has the process not ended, also after waiting for it?"""

    def path(self, handle: Handle) -> str:
        """Of its executable; empty if it is not told."""

    def processes(self) -> Iterator[tuple[int, str]]:
        """Pid and file name of everything that runs."""

    def modules(self, pid: int) -> tuple[list[tuple[str, int]], int]:
        """Name and base of its modules, and the error."""

    def close(self, handle: Handle) -> None:
        """Give the handle back."""


class Kernel32:
    """The real one; it can only be made on Windows (or under Wine)."""

    def __init__(self) -> None:
        load: Any = getattr(ctypes, "WinDLL", None)
        if load is None:
            raise GameError("the Windows backend needs Windows; on Linux the game is read by the Linux backend")
        self._dll = load("kernel32", use_last_error=True)
        self._last_error: Any = getattr(ctypes, "get_last_error", None)
        handle, address, size, number, yes = (
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_uint32,
            ctypes.c_int32,
        )
        self._open = self._declared("OpenProcess", handle, number, yes, number)
        self._read = self._declared("ReadProcessMemory", yes, handle, address, address, size, address)
        self._write = self._declared("WriteProcessMemory", yes, handle, address, address, size, address)
        self._wait = self._declared("WaitForSingleObject", number, handle, number)
        self._path = self._declared("QueryFullProcessImageNameW", yes, handle, number, address, address)
        self._snapshot = self._declared("CreateToolhelp32Snapshot", handle, number, number)
        self._close = self._declared("CloseHandle", yes, handle)
        self._first_process = self._declared("Process32FirstW", yes, handle, address)
        self._next_process = self._declared("Process32NextW", yes, handle, address)
        self._first_module = self._declared("Module32FirstW", yes, handle, address)
        self._next_module = self._declared("Module32NextW", yes, handle, address)

    def _declared(self, name: str, result: Any, *arguments: Any) -> Any:
        call = getattr(self._dll, name)
        call.restype, call.argtypes = result, arguments
        return call

    def _error(self, succeeded: object) -> int:
        # A failure without a reason is still one.
        return 0 if succeeded else int(self._last_error()) or INVALID_PARAMETER

    def open(self, pid: int, rights: int) -> tuple[Handle, int]:
        """A handle and the error."""
        handle = self._open(rights, 0, pid)
        return int(handle or 0), self._error(handle)

    def read(self, handle: Handle, address: int, buffer: Any, size: int) -> int:
        """Fill the buffer with memory; the error."""
        return self._error(self._read(handle, address, buffer, size, None))

    def write(self, handle: Handle, address: int, data: bytes) -> int:
        """Put bytes there; the error."""
        return self._error(self._write(handle, address, data, len(data), None))

    def is_running(self, handle: Handle, wait_ms: int = 0) -> bool:
        """Has the process not ended, also after waiting for it?"""
        return bool(self._wait(handle, wait_ms) == _STILL_RUNNING)

    def path(self, handle: Handle) -> str:
        """Of its executable; empty if it is not told."""
        length, buffer = ctypes.c_uint32(_LONGEST_PATH), ctypes.create_unicode_buffer(_LONGEST_PATH)
        done = self._path(handle, 0, ctypes.addressof(buffer), ctypes.addressof(length))
        return buffer.value if done else ""

    def processes(self) -> Iterator[tuple[int, str]]:
        """Pid and file name of everything that runs."""
        entries, _ = self._entries(_SNAP_PROCESS, 0, _ProcessEntry, self._first_process, self._next_process)
        return ((entry.pid, entry.name) for entry in entries)

    def modules(self, pid: int) -> tuple[list[tuple[str, int]], int]:
        """Name and base of its modules, and the error."""
        kinds = _SNAP_MODULE | _SNAP_MODULE_32
        entries, error = self._entries(kinds, pid, _ModuleEntry, self._first_module, self._next_module)
        return [(entry.name, int(entry.base or 0)) for entry in entries], error

    def _entries(self, kinds: int, pid: int, entry_type: Any, first: Any, following: Any) -> tuple[list[Any], int]:
        snapshot, error = self._taken(kinds, pid)
        if error:
            return [], error
        entries: list[Any] = []
        entry = entry_type(size=ctypes.sizeof(entry_type))
        more = first(snapshot, ctypes.addressof(entry))
        while more:
            entries.append(entry_type.from_buffer_copy(entry))
            more = following(snapshot, ctypes.addressof(entry))
        self._close(snapshot)
        return entries, 0

    def _taken(self, kinds: int, pid: int) -> tuple[Handle, int]:
        """A snapshot; Windows asks to try again while the program is loading modules."""
        error = BAD_LENGTH
        for _ in range(_SNAPSHOT_TRIES):
            snapshot = self._snapshot(kinds, pid)
            if snapshot not in (None, _INVALID):
                return int(snapshot), 0
            error = self._error(False)
            if error != BAD_LENGTH:
                break
        return 0, error

    def close(self, handle: Handle) -> None:
        """Give the handle back."""
        self._close(handle)
