"""Memory of another program on Linux: many places in one process_vm_readv, modules from /proc/PID/maps."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from soulsgym.errors import GameAccessDenied, GameError, GameGone, GameNotFound, ReadFailed
from soulsgym.game.process import ProcessInfo, Spans, is_called

PROC = Path("/proc")
IOV_MAX = 1024
"""Places that the kernel takes in one call."""
ENDED = frozenset("ZXx")
"""States of a process that is no more, though its parent has not looked yet."""
OF_WINE = ("/drive_c/windows/", "/x86_64-windows/", "/lib64/wine/", "/lib/wine/")
"""What the paths of Wine's own DLLs have in them, in a prefix or beside Wine."""
PTRACE_ADVICE = (
    "start the game from this program, or allow it until the next boot with `sudo sysctl kernel.yama.ptrace_scope=0`, "
    "and run both as the same user"
)


class _IoVec(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("size", ctypes.c_size_t))


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    for name in ("process_vm_readv", "process_vm_writev"):
        call = getattr(libc, name)
        call.restype = ctypes.c_ssize_t
        vectors = (ctypes.c_void_p, ctypes.c_ulong)
        call.argtypes = (ctypes.c_int, *vectors, *vectors, ctypes.c_ulong)
    return libc


class _Read:
    """Up to IOV_MAX spans with their vectors, which the kernel fills in one call."""

    def __init__(self, pid: int, spans: Spans) -> None:
        self.spans = spans
        self.size = sum(size for _, size in spans)
        self.buffer = ctypes.create_string_buffer(max(self.size, 1))
        self._here = _IoVec(ctypes.addressof(self.buffer), self.size)
        self._there = (_IoVec * len(spans))(*(_IoVec(*span) for span in spans))
        here, there = ctypes.addressof(self._here), ctypes.addressof(self._there)
        self._arguments = (pid, here, 1, there, len(spans), 0)
        self._readv = _libc().process_vm_readv

    def run(self) -> int:
        """Bytes read, less than `size` where a span cannot be read, -1 with errno if it is the first."""
        return int(self._readv(*self._arguments))

    def address_of(self, done: int) -> int:
        """Address of the span in which a read stopped after `done` bytes."""
        for address, size in self.spans:
            if done < size:
                return address
            done -= size
        return self.spans[-1][0]


class LinuxProcess:
    """One running program on Linux; under Wine or Proton its memory is laid out as on Windows."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.calls = 0
        """Batches of memory read or written so far."""
        self.reads = 0
        """System calls for them: one a batch, unless it has more than IOV_MAX spans."""
        self._started = _start_time(pid)
        if self._started is None:
            raise GameNotFound(f"no process with pid {pid} is running: start the game first")

    def read_many(self, spans: Spans) -> bytes:
        """All spans, one behind the other."""
        return self.prepare(spans)()

    def prepare(self, spans: Spans) -> Callable[[], bytes]:
        """The same read again and again. Not for two threads at a time."""
        parts = [_Read(self.pid, spans[at : at + IOV_MAX]) for at in range(0, len(spans), IOV_MAX)]
        if len(parts) == 1:
            return functools.partial(self._read_one, parts[0])
        return lambda: self._read_parts(parts)

    def _read_one(self, part: _Read) -> bytes:
        self.calls += 1
        self.reads += 1
        done = part.run()
        if done != part.size:
            raise self._failure(part.address_of(max(done, 0)), done, "cannot be read")
        return part.buffer.raw[: part.size]

    def _read_parts(self, parts: list[_Read]) -> bytes:
        before = self.calls
        data = b"".join(self._read_one(part) for part in parts)
        self.calls = before + 1
        return data

    def write(self, address: int, data: bytes) -> None:
        """Put bytes there; pages that the program itself may not write are refused."""
        self.calls += 1
        self.reads += 1
        buffer = ctypes.create_string_buffer(data, len(data))
        here, there = _IoVec(ctypes.addressof(buffer), len(data)), _IoVec(address, len(data))
        writev = _libc().process_vm_writev
        done = int(writev(self.pid, ctypes.addressof(here), 1, ctypes.addressof(there), 1, 0))
        if done != len(data):
            raise self._failure(address, done, "cannot be written")

    def _failure(self, address: int, done: int, what: str) -> GameError:
        # A read that stopped half-way has set no errno: the rest is not there.
        number = ctypes.get_errno() if done < 0 else errno.EFAULT
        if number == errno.ESRCH or not self.is_running():
            return GameGone(f"the game (pid {self.pid}) has ended: start it again")
        if number in (errno.EPERM, errno.EACCES):
            return GameAccessDenied(f"the memory of pid {self.pid} cannot be read: {PTRACE_ADVICE}")
        if number == errno.EFAULT:
            return ReadFailed(address, what)
        return ReadFailed(address, f"{what}: {os.strerror(number)}")

    def modules(self) -> dict[str, int]:
        """Base addresses by file name in lower case.

        Of two files with one name the game's own counts, not the one of Wine: a dinput8.dll beside the game loads the
        other one.
        """
        best: dict[str, tuple[bool, int]] = {}
        for path, address in _mapped_files(self._maps()):
            name, candidate = path.rpartition("/")[2], (any(part in path for part in OF_WINE), address)
            best[name] = min(candidate, best.get(name, candidate))
        return {name: address for name, (_, address) in best.items()}

    def _maps(self) -> str:
        try:
            text = (PROC / str(self.pid) / "maps").read_text(encoding="utf-8", errors="surrogateescape")
        except PermissionError:
            raise GameAccessDenied(f"the modules of pid {self.pid} cannot be seen: {PTRACE_ADVICE}") from None
        except OSError:
            text = ""
        if not text and not self.is_running():
            raise GameGone(f"the game (pid {self.pid}) has ended: start it again")
        return text

    def is_running(self) -> bool:
        """Has it not ended? Another program that got its pid is not it."""
        return self._started is not None and _start_time(self.pid) == self._started

    def close(self) -> None:
        """Nothing is held."""


def _mapped_files(maps: str) -> Iterator[tuple[str, int]]:
    """Path in lower case and address of every mapping that shows the beginning of a file."""
    for line in maps.splitlines():
        parts = line.split(maxsplit=5)
        if len(parts) == 6 and parts[5].startswith("/") and int(parts[2], 16) == 0:
            yield parts[5].removesuffix(" (deleted)").lower(), int(parts[0].partition("-")[0], 16)


def _start_time(pid: int) -> int | None:
    """When the process began, in ticks since the boot; None if it has ended."""
    try:
        text = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The second value is the name in brackets, which may hold anything; the others have no blanks.
    parts = text.rpartition(")")[2].split()
    return None if parts[0] in ENDED else int(parts[19])


def find_processes(executable: str) -> list[ProcessInfo]:
    """All running programs with this file name, by pid, whether Wine gives their path as Windows' or as its own."""
    pids = sorted(int(entry.name) for entry in PROC.iterdir() if entry.name.isdecimal())
    return [found for pid in pids if (found := _found(pid, executable)) is not None]


def _found(pid: int, executable: str) -> ProcessInfo | None:
    # Only the first argument counts: launchers have the game's name behind their own. Wine pads it with blanks.
    path = _read(pid, "cmdline").partition(b"\0")[0].decode("utf-8", "surrogateescape").strip()
    if not is_called(path, executable) or _start_time(pid) is None:
        return None
    return ProcessInfo(pid, path, _environment(pid))


def _environment(pid: int) -> dict[str, str]:
    pairs = (item.decode("utf-8", "surrogateescape").partition("=") for item in _read(pid, "environ").split(b"\0"))
    return {name: value for name, equals, value in pairs if equals}


def _read(pid: int, file: str) -> bytes:
    """A file of a process; nothing if it has ended or is another user's."""
    try:
        return (PROC / str(pid) / file).read_bytes()
    except OSError:
        return b""
