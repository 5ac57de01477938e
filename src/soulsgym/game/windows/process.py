"""Memory of another program on Windows: places that lie together are read by one ReadProcessMemory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from typing import NamedTuple

from soulsgym.errors import GameAccessDenied, GameError, GameGone, GameNotFound, ReadFailed
from soulsgym.game.process import ProcessInfo, Spans, is_called
from soulsgym.game.windows.api import (
    ACCESS_DENIED,
    QUERY_LIMITED,
    SYNCHRONIZE,
    VM_OPERATION,
    VM_READ,
    VM_WRITE,
    Api,
    Kernel32,
)

RIGHTS = VM_READ | VM_WRITE | VM_OPERATION | QUERY_LIMITED | SYNCHRONIZE
LARGEST_GAP = 256
"""Bytes between two spans up to which reading them too is cheaper than a second call."""
LARGEST_MERGED = 4096
ENDING_MS = 1000
"""A program that ends may refuse everything for a moment before it counts as ended."""
RIGHTS_ADVICE = "run this program as administrator, or start the game (and Steam) without administrator rights"


class _Group(NamedTuple):
    """Spans that one call reads: where it begins, how long it is, and (place, offset in it, size) of each span."""

    address: int
    size: int
    pieces: tuple[tuple[int, int, int], ...]


def grouped(spans: Spans) -> list[_Group]:
    """Spans as few groups; those that lie together share one, in whichever order they are wanted.

    Only a span that is wanted first and last stays there: whether it has changed says if the others are of one moment.
    """
    indices = range(len(spans))
    if len(spans) > 2 and spans[0] == spans[-1]:
        first, last = (_Group(*spans[at], ((at, 0, spans[at][1]),)) for at in (0, len(spans) - 1))
        return [first, *_merged(spans, indices[1:-1]), last]
    return _merged(spans, indices)


def _merged(spans: Spans, indices: Iterable[int]) -> list[_Group]:
    groups: list[_Group] = []
    for index in sorted(indices, key=lambda at: spans[at]):
        address, size = spans[index]
        if groups:
            last = groups[-1]
            gap, end = address - (last.address + last.size), max(address + size, last.address + last.size)
            if gap <= LARGEST_GAP and end - last.address <= LARGEST_MERGED:
                pieces = (*last.pieces, (index, address - last.address, size))
                groups[-1] = _Group(last.address, end - last.address, pieces)
                continue
        groups.append(_Group(address, size, ((index, 0, size),)))
    return groups


class WindowsProcess:
    """One running program on Windows."""

    def __init__(self, pid: int, api: Api | None = None) -> None:
        self.pid = pid
        self.calls = 0
        """Batches of memory read or written so far."""
        self.reads = 0
        """System calls for them."""
        self._api = api or Kernel32()
        self._handle, error = self._api.open(pid, RIGHTS)
        if error == ACCESS_DENIED:
            raise GameAccessDenied(f"the process with pid {pid} cannot be opened: {RIGHTS_ADVICE}")
        if error or not self._api.is_running(self._handle):
            self.close()
            raise GameNotFound(f"no process with pid {pid} is running: start the game first")

    def read_many(self, spans: Spans) -> bytes:
        """All spans, one behind the other."""
        return self.prepare(spans)()

    def prepare(self, spans: Spans) -> Callable[[], bytes]:
        """The same read again and again. Not for two threads at a time."""
        groups = grouped(spans)
        buffer = ctypes.create_string_buffer(max((group.size for group in groups), default=1))

        def read() -> bytes:
            self.calls += 1
            found: list[bytes] = [b""] * len(spans)
            for group in groups:
                self._read_group(group, buffer, found)
            return b"".join(found)

        return read

    def _read_group(self, group: _Group, buffer: ctypes.Array[ctypes.c_char], found: list[bytes]) -> None:
        error = self._read(group.address, buffer, group.size)
        if not error:
            data = buffer.raw
            for index, offset, size in group.pieces:
                found[index] = data[offset : offset + size]
            return
        # What lies between the spans may be what cannot be read.
        for index, offset, size in group.pieces:
            address = group.address + offset
            if len(group.pieces) > 1:
                error = self._read(address, buffer, size)
            if error:
                raise self._failure(address, error, "cannot be read")
            found[index] = buffer.raw[:size]

    def _read(self, address: int, buffer: ctypes.Array[ctypes.c_char], size: int) -> int:
        self.reads += 1
        return self._api.read(self._handle, address, buffer, size)

    def write(self, address: int, data: bytes) -> None:
        """Put bytes there."""
        self.calls += 1
        self.reads += 1
        error = self._api.write(self._handle, address, data)
        if error:
            raise self._failure(address, error, "cannot be written")

    def _failure(self, address: int, error: int, what: str) -> GameError:
        if not self.is_running():
            return self._gone()
        # Single places may be refused with the same error as the whole process.
        if error == ACCESS_DENIED and not self._can_be_read():
            if not self.is_running(ENDING_MS):
                return self._gone()
            return GameAccessDenied(f"the memory of pid {self.pid} cannot be read: {RIGHTS_ADVICE}")
        return ReadFailed(address, f"{what} (Windows error {error})")

    def _can_be_read(self) -> bool:
        """Can any module of the process?"""
        modules, _ = self._api.modules(self.pid)
        buffer = ctypes.create_string_buffer(2)
        return any(not self._read(base, buffer, 2) for _, base in modules[:1])

    def modules(self) -> dict[str, int]:
        """Base addresses by file name in lower case."""
        modules, error = self._api.modules(self.pid)
        if error and not self.is_running(ENDING_MS):
            raise self._gone()
        if error:
            raise GameAccessDenied(f"the modules of pid {self.pid} cannot be seen: {RIGHTS_ADVICE}")
        bases: dict[str, int] = {}
        for name, base in modules:
            bases.setdefault(name.lower(), base)
        return bases

    def is_running(self, wait_ms: int = 0) -> bool:
        """Has it not ended, also after waiting for it?"""
        return bool(self._handle) and self._api.is_running(self._handle, wait_ms)

    def _gone(self) -> GameGone:
        return GameGone(f"the game (pid {self.pid}) has ended: start it again")

    def close(self) -> None:
        """Give the handle back."""
        if self._handle:
            self._api.close(self._handle)
            self._handle = 0


def find_processes(executable: str, api: Api | None = None) -> list[ProcessInfo]:
    """All running programs with this file name, by pid."""
    api = api or Kernel32()
    pids = sorted(pid for pid, name in api.processes() if is_called(name, executable))
    return [ProcessInfo(pid, _path(api, pid) or executable) for pid in pids]


def _path(api: Api, pid: int) -> str:
    handle, error = api.open(pid, QUERY_LIMITED)
    if error:
        return ""
    try:
        return api.path(handle)
    finally:
        api.close(handle)
