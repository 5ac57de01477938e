"""Builds and runs the stand-in, a Windows program with the memory, keys and clock of the game, and looks into it.

Nothing of the game layer is used here, so that the stand-in can contradict it.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ADDRESSES = HERE.parent.parent / "src" / "soulsgym" / "data" / "darksouls3" / "addresses.toml"
COMPILER, RESOURCES = "x86_64-w64-mingw32-gcc", "x86_64-w64-mingw32-windres"
FLAGS = ("-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-mwindows", "-s")
LIBRARIES = ("-lgdi32", "-lwinmm", "-ldinput8", "-ldxguid", "-lole32")
EXECUTABLE, RING_EXECUTABLE = "DarkSoulsIII.exe", "eldenring.exe"
ON_WINDOWS = sys.platform == "win32"
START_LIMIT_S = 180.0
"""A new prefix, or a wineserver that has to start again, beside many busy programs has taken more than a minute."""
STOP_LIMIT_S = 10.0
WAIT_LIMIT_S = 60.0
"""For what happens within a second beside nothing else."""
RATE_TRIES = 60
KEPT_BUILDS = 12
FIXED_VERSION = struct.pack("<I", 0xFEEF04BD)
"""What the version in a VERSIONINFO resource begins with."""
OLDER_VERSION = 1
CLONE_FILES = ("system.reg", "user.reg", "userdef.reg")
"""What Wine rewrites in a prefix; the rest of a clone is shared with the original."""
SCREENS = ("title", "loading", "field", "arena", "death")
SOURCES = ("messages", "raw", "async", "dinput")
EVENTS, DIGESTS = 512, 64


class StandinError(Exception):
    """The stand-in cannot be built, started or read."""


class NoWindow(StandinError):
    """Wine has no screen: beside busy programs its desktop can take longer than the ten seconds it is given."""


# ---------------------------------------------------------------- what is needed, and building


def missing() -> str:
    """Why the stand-in cannot run here, or nothing."""
    if ON_WINDOWS:
        return "" if prebuilt() else "no built stand-in: SOULS_STANDIN_EXE names it"
    needed = ("wine", "wineserver", "Xvfb", COMPILER, RESOURCES)
    absent = [name for name in needed if _which(name) is None]
    return f"not installed: {', '.join(absent)}" if absent else ""


def _which(name: str) -> str | None:
    # Debian keeps the server beside the library, out of the path.
    return shutil.which(name) or shutil.which(name, path="/usr/lib/wine")


def prebuilt() -> Path | None:
    """The stand-in that somebody else has built, for systems without the compiler."""
    named = os.environ.get("SOULS_STANDIN_EXE")
    return Path(named) if named and Path(named).exists() else None


def storage() -> Path:
    """Where builds and prefixes are kept, outside of the repository."""
    named = os.environ.get("SOULS_WINE_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "souls-standin"


@cache
def build(*, wrong_version: bool = False) -> Path:
    """The executable, built if anything it is made of has changed; or the one that is another version."""
    if wrong_version:
        return other_version(build().parent / "other")
    return prebuilt() or _built(sorted(HERE.glob("*.c")), EXECUTABLE)


@cache
def build_ring() -> Path:
    """The program with the memory of Elden Ring, of which only what can be read is there."""
    return _built(sorted((HERE / "ring").glob("*.c")), RING_EXECUTABLE, "--ring")


def _built(sources: list[Path], executable: str, *options: str) -> Path:
    generated = storage() / "generated" / f"{os.getpid()}"
    try:
        subprocess.run([sys.executable, str(HERE / "generate.py"), str(generated), *options], check=True)
        parts = [*sources, *sorted(HERE.glob("*.h")), *sorted(generated.iterdir())]
        digest = hashlib.sha256(b"".join(part.read_bytes() for part in parts) + repr((FLAGS, LIBRARIES)).encode())
        folder = storage() / "builds" / digest.hexdigest()[:16]
        if not (folder / executable).exists():
            _compile(sources, generated, folder, executable)
        return folder / executable
    finally:
        shutil.rmtree(generated, ignore_errors=True)


def _compile(sources: list[Path], generated: Path, folder: Path, executable: str) -> None:
    resources = [generated / "resource.o"] if (generated / "version.rc").exists() else []
    if resources:
        _run([RESOURCES, "version.rc", "resource.o"], generated)
    command = [COMPILER, *FLAGS, "-I.", f"-I{HERE}", *map(str, (*sources, *resources)), "-o", executable]
    # No time stamp, so that the same sources give the same bytes.
    _run([*command, *LIBRARIES, "-Wl,--no-insert-timestamp"], generated)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError):  # somebody else built the same at the same time
        fresh = folder.with_name(f"{folder.name}.{os.getpid()}")
        fresh.mkdir(exist_ok=True)
        shutil.copy2(generated / executable, fresh / executable)
        fresh.rename(folder)
    builds = sorted(folder.parent.iterdir(), key=lambda each: each.stat().st_mtime)
    for old in builds[:-KEPT_BUILDS]:
        shutil.rmtree(old, ignore_errors=True)


def build_speed() -> None:
    """The library that controls a game's clock, built if its sources have changed; one process at a time."""
    if ON_WINDOWS:
        return
    import fcntl

    storage().mkdir(parents=True, exist_ok=True)
    with (storage() / "speed.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _run(["make", "-s", "speed"], HERE.parent.parent)


def other_version(folder: Path) -> Path:
    """A stand-in in `folder` that is another version: its number is older and its code has none of the patterns."""
    data = bytearray(build().read_bytes())
    # Of the four numbers, the third lies in the upper half of the second word of the version.
    struct.pack_into("<H", data, data.index(FIXED_VERSION) + 12 + 2, OLDER_VERSION)
    for row in _table()["base"].values():
        if "pattern" in row:
            for found in _occurrences(row["pattern"], bytes(data)):
                data[found] ^= 0xFF
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / f"{EXECUTABLE}.{os.getpid()}"
    fresh.write_bytes(data)
    return fresh.replace(folder / EXECUTABLE)


def _occurrences(pattern: str, data: bytes) -> list[int]:
    tokens = pattern.split()
    sought = b"".join(b"." if token == "??" else re.escape(bytes.fromhex(token)) for token in tokens)
    return [found.start() for found in re.finditer(b"(?=" + sought + b")", data, re.DOTALL)]


@cache
def _table() -> dict[str, Any]:
    with ADDRESSES.open("rb") as stream:
        return tomllib.load(stream)


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise StandinError(f"{command[0]} failed: {done.stderr.strip()}")


# ---------------------------------------------------------------- display and prefix


def _die_with_us() -> None:
    """In a child: end when the tests end, however they end."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


TRIES, WINE_FAILED, NO_WINDOW = 5, 1359, 3


def _child(command: list[str], environment: Mapping[str, str] | None = None, **rest: Any) -> subprocess.Popen[bytes]:
    quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    if not ON_WINDOWS:
        rest["preexec_fn"] = _die_with_us
    for left in reversed(range(TRIES)):
        try:
            return subprocess.Popen(command, env=dict(environment) if environment else None, **quiet, **rest)
        except OSError as error:  # Wine's own trouble with starting a process beside busy programs, which passes
            if getattr(error, "winerror", None) != WINE_FAILED or not left:
                raise
            time.sleep(1.0)
    raise AssertionError("unreachable")


class Display:
    """An X server of our own, on a number that nobody else has."""

    def __init__(self, size: str = "1280x800x24") -> None:
        reader, writer = os.pipe()
        command = ["Xvfb", "-displayfd", str(writer), "-screen", "0", size, "-nolisten", "tcp", "-noreset"]
        self._process = _child(command, pass_fds=(writer,))
        os.close(writer)
        with os.fdopen(reader, "rb") as stream:
            line = stream.readline()
        if not line.strip():
            self.close()
            raise StandinError("Xvfb did not start")
        self.name = f":{line.decode().strip()}"

    def close(self) -> None:
        """Stop the server."""
        self._process.terminate()
        try:
            self._process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Prefix:
    """A Wine prefix with its own server, cloned from one that is made once."""

    def __init__(self, folder: Path, display: str) -> None:
        self.folder, self.display = folder, display
        _clone(_original(display), folder)
        self._serve()

    def _serve(self) -> None:
        self._server = _child([str(_which("wineserver")), "-f", "-p"], self.environment)

    @property
    def environment(self) -> dict[str, str]:
        """What a program needs to run in this prefix."""
        return wine_environment(self.folder, self.display)

    def run(self, command: list[str], *, limit_s: float = 120.0) -> subprocess.CompletedProcess[str]:
        """Run a Windows program to its end."""
        return subprocess.run(
            ["wine", *command], env=self.environment, capture_output=True, text=True, timeout=limit_s,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def restart(self) -> None:
        """Stop everything in the prefix, its desktop too; the next program gets a new one."""
        self._stop()
        self._serve()

    def close(self) -> None:
        """Stop everything in the prefix and remove it."""
        self._stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _stop(self) -> None:
        server = str(_which("wineserver"))
        for action in ("-k", "-w"):
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run([server, action], env=self.environment, timeout=STOP_LIMIT_S, capture_output=True)
        try:
            self._server.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()


def wine_environment(prefix: Path, display: str) -> dict[str, str]:
    """The environment of a Windows program: quiet, without browser and .NET, with our proxy DLL if one lies there."""
    return {
        **os.environ,
        "WINEPREFIX": str(prefix),
        "WINEARCH": "win64",
        "WINEDEBUG": "-all",
        "WINEDLLOVERRIDES": "mscoree,mshtml=;winedbg.exe=d;dinput8=n,b",
        "DISPLAY": display,
    }


def _original(display: str) -> Path:
    """The prefix that all others are cloned from."""
    version = subprocess.run(["wine", "--version"], capture_output=True, text=True).stdout.strip() or "wine"
    folder = storage() / "prefixes" / version.replace(" ", "_")
    if folder.exists():
        return folder
    fresh = folder.with_name(f"{folder.name}.{os.getpid()}")
    fresh.parent.mkdir(parents=True, exist_ok=True)
    environment = wine_environment(fresh, display)
    subprocess.run(["wine", "wineboot", "-i"], env=environment, timeout=600.0, capture_output=True, check=True)
    subprocess.run([str(_which("wineserver")), "-w"], env=environment, timeout=120.0, capture_output=True)
    try:
        fresh.rename(folder)
    except OSError:  # somebody else was faster
        shutil.rmtree(fresh, ignore_errors=True)
    return folder


def _clone(original: Path, folder: Path) -> None:
    if folder.exists():
        return

    def link(source: str, target: str) -> str:
        if Path(source).name in CLONE_FILES:
            return shutil.copy2(source, target)
        try:
            os.link(source, target, follow_symlinks=False)
        except OSError:
            return shutil.copy2(source, target)
        return target

    shutil.copytree(original, folder, symlinks=True, copy_function=link)


# ---------------------------------------------------------------- memory, plainly


class _Span(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class Memory:
    """Bytes of another process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        if ON_WINDOWS:
            kernel = ctypes.windll.kernel32
            kernel.OpenProcess.restype = ctypes.c_void_p
            self._handle = ctypes.c_void_p(kernel.OpenProcess(0x0438, False, pid))
        else:
            self._libc = ctypes.CDLL(None, use_errno=True)

    def read(self, address: int, size: int) -> bytes:
        """The bytes at an address."""
        buffer = ctypes.create_string_buffer(size)
        if not self._move(buffer, address, size, writes=False):
            raise StandinError(f"cannot read {size} bytes at {address:#x}")
        return buffer.raw

    def write(self, address: int, data: bytes) -> None:
        """Put bytes at an address."""
        buffer = ctypes.create_string_buffer(data, len(data))
        if not self._move(buffer, address, len(data), writes=True):
            raise StandinError(f"cannot write {len(data)} bytes at {address:#x}")

    def _move(self, buffer: Any, address: int, size: int, *, writes: bool) -> bool:
        if ON_WINDOWS:
            kernel, done = ctypes.windll.kernel32, ctypes.c_size_t()
            call = kernel.WriteProcessMemory if writes else kernel.ReadProcessMemory
            at, length = ctypes.c_void_p(address), ctypes.c_size_t(size)
            return bool(call(self._handle, at, buffer, length, ctypes.byref(done))) and done.value == size
        local = _Span(ctypes.addressof(buffer), size)
        remote = _Span(address, size)
        call = self._libc.process_vm_writev if writes else self._libc.process_vm_readv
        return bool(call(self.pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) == size)

    def number(self, address: int, code: str) -> Any:
        """One number, by the code of `struct`."""
        return struct.unpack(f"<{code}", self.read(address, struct.calcsize(f"<{code}")))[0]

    def module_base(self) -> int:
        """Where the executable was loaded."""
        if ON_WINDOWS:
            modules, size = (ctypes.c_void_p * 1)(), ctypes.c_ulong()
            psapi = ctypes.windll.psapi
            if not psapi.EnumProcessModules(self._handle, modules, ctypes.sizeof(modules), ctypes.byref(size)):
                raise StandinError("no module yet")
            return int(modules[0] or 0)
        for line in Path(f"/proc/{self.pid}/maps").read_text().splitlines():
            if line.endswith(EXECUTABLE):
                return int(line.split("-")[0], 16)
        raise StandinError("no module yet")

    def export(self, name: str) -> int:
        """The address of an exported symbol of the executable."""
        base = self.module_base()
        pe = base + self.number(base + 0x3C, "I")
        table = base + self.number(pe + 24 + 112, "I")
        count, functions, names, ordinals = (self.number(table + at, "I") for at in (0x18, 0x1C, 0x20, 0x24))
        for index in range(count):
            text = self.read(base + self.number(base + names + 4 * index, "I"), len(name) + 1)
            if text == name.encode() + b"\0":
                ordinal = self.number(base + ordinals + 2 * index, "H")
                return int(base + self.number(base + functions + 4 * ordinal, "I"))
        raise StandinError(f"{name} is not exported")


# ---------------------------------------------------------------- the test block


class _Event(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint8) for name in ("source", "vk", "down", "spare")),
        ("spare_2", ctypes.c_uint32),
        ("tick", ctypes.c_uint64),
        ("qpc", ctypes.c_int64),
    ]  # fmt: skip


MAIL = (
    "crash", "hang", "player_unknown_ticks", "boss_unknown_ticks", "stuck", "null_chains_ticks", "lose_focus_ticks",
    "menu_open", "unarmed", "wrong_flags", "fall", "kill_player", "kill_boss", "refuse_lock_on", "lag_ms",
    "force_boss_move", "drop_lock_on", "to_title", "ignore_keys", "boss_still",
)  # fmt: skip
"""What a test can make the stand-in do; test_block.h says what each means."""


class _Mailbox(ctypes.Structure):
    _fields_ = [*((name, ctypes.c_int32) for name in MAIL), ("spare", ctypes.c_int32 * (32 - len(MAIL)))]


class TestBlock(ctypes.Structure):
    """The same structure as in test_block.h."""

    __test__ = False
    _fields_ = [
        ("magic", ctypes.c_char * 8),
        *((name, ctypes.c_uint32) for name in ("size", "screen")),
        *((name, ctypes.c_uint64) for name in ("ticks", "turns", "frames")),
        *((name, ctypes.c_int64) for name in ("qpc_per_s", "qpc_at_tick")),
        *((name, ctypes.c_uint32) for name in ("has_focus", "loads", "place", "boss_here", "boss_active", "phase")),
        *(
            (name, ctypes.c_uint32)
            for name in (
                "light_attacks", "heavy_attacks", "rolls", "parries", "boss_attacks", "hits_on_boss", "hits_on_player",
                "player_deaths", "boss_deaths", "lock_presses", "interactions",
            )
        ),
        *((name, ctypes.c_int32) for name in ("souls", "player_move", "boss_move")),
        ("player", ctypes.c_double * 4),
        ("boss", ctypes.c_double * 4),
        ("camera", ctypes.c_double),
        ("downs", ctypes.c_uint32 * 4),
        ("ups", ctypes.c_uint32 * 4),
        ("held", (ctypes.c_uint8 * 256) * 4),
        ("event_count", ctypes.c_uint64),
        ("events", _Event * EVENTS),
        ("digest", ctypes.c_uint64),
        ("digests", ctypes.c_uint64 * DIGESTS),
        ("mail", _Mailbox),
    ]  # fmt: skip

    def seen(self) -> list[tuple[str, int, bool, int]]:
        """The last input events: API, virtual key, down, tick."""
        first = max(0, self.event_count - EVENTS)
        chosen = (self.events[number % EVENTS] for number in range(first, self.event_count))
        return [(SOURCES[event.source], event.vk, bool(event.down), event.tick) for event in chosen]


# ---------------------------------------------------------------- fields of the address table, read on our own

CODES = {"u8": "B", "i32": "i", "u32": "I", "f32": "f"}
EXECUTABLE_SECTION = 0x20000000


class NotThere(StandinError):
    """A pointer on the way to a field is null."""


class Fields:
    """Fields by their names in the address table."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.table = _table()

    @cached_property
    def code(self) -> tuple[int, bytes]:
        """Address and bytes of the executable section."""
        memory = self._memory
        base = memory.module_base()
        pe = base + memory.number(base + 0x3C, "I")
        first = pe + 24 + memory.number(pe + 20, "H")
        for index in range(memory.number(pe + 6, "H")):
            size, rva = struct.unpack("<II", memory.read(first + 40 * index + 8, 8))
            if memory.number(first + 40 * index + 36, "I") & EXECUTABLE_SECTION:
                return base + rva, memory.read(base + rva, size)
        raise StandinError("no executable section")

    def hits(self, base: str) -> list[int]:
        """Addresses at which the pattern of a base occurs."""
        start, code = self.code
        return [start + found for found in _occurrences(self.table["base"][base]["pattern"], code)]

    @cached_property
    def bases(self) -> dict[str, int]:
        """The address of every base."""
        found = {}
        for name, row in self.table["base"].items():
            if "rva" in row:
                found[name] = self._memory.module_base() + row["rva"]
            else:
                hit = self.hits(name)[0]
                found[name] = hit + 7 + self._memory.number(hit + 3, "i")
        return found

    def address(self, name: str) -> int:
        """Where a field lies now; NotThere if a pointer on the way is null."""
        row = self.table["field"][name]
        at = self.bases[row["base"]]
        if self.table["base"][row["base"]].get("direct"):
            return int(at + row["offsets"][-1])
        for offset in (0, *row["offsets"][:-1]):
            at = self._memory.number(at + offset, "Q")
            if at == 0:
                raise NotThere(f"{name} is not there")
        return int(at + row["offsets"][-1])

    def get(self, name: str) -> Any:
        """The value of a field: a number, several, a text or bytes."""
        kind = self.table["field"][name]["type"]
        at = self.address(name)
        if kind.startswith("text"):
            return self._memory.read(at, int(kind[4:])).decode("utf-16-le").split("\0")[0]
        if kind.startswith("bytes"):
            return self._memory.read(at, int(kind[5:]))
        if kind.startswith("f32x"):
            return struct.unpack(f"<{kind[4:]}f", self._memory.read(at, 4 * int(kind[4:])))
        return self._memory.number(at, CODES[kind])

    def set(self, name: str, *values: Any) -> None:
        """Write a field: a number, or all of several."""
        kind = self.table["field"][name]["type"]
        code = f"{kind[4:]}f" if kind.startswith("f32x") else CODES[kind]
        self._memory.write(self.address(name), struct.pack(f"<{code}", *values))


# ---------------------------------------------------------------- a running stand-in


class Standin:
    """One running stand-in."""

    def __init__(self, executable: Path, process: subprocess.Popen[bytes], environment: Mapping[str, str]) -> None:
        self.executable, self.process, self.environment = executable, process, dict(environment)
        self.pid = process.pid
        self.memory = Memory(self.pid)
        self.fields = Fields(self.memory)
        self._block = 0

    @classmethod
    def start(cls, executable: Path, *switches: str, environment: Mapping[str, str] | None = None) -> Standin:
        """Start it and wait for its first tick. The environment is that of a prefix; on Windows there is none."""
        command = [str(executable), *switches] if ON_WINDOWS else ["wine", str(executable), *switches]
        process = _child(command, environment, cwd=executable.parent)
        standin = cls(executable, process, environment or os.environ)
        try:
            standin._find_block()
        except StandinError:
            standin.stop()
            raise
        return standin

    def _find_block(self) -> None:
        limit = time.monotonic() + START_LIMIT_S
        while time.monotonic() < limit:
            if not self.is_running():
                kind = NoWindow if self.process.returncode == NO_WINDOW else StandinError
                raise kind(f"the stand-in ended with code {self.process.returncode}")
            try:
                self._block = self.memory.export("standin_test")
                if self.memory.read(self._block, 8) == b"SOULSTST" and self.look().ticks > 0:
                    break
            except (StandinError, OSError):
                pass
            time.sleep(0.02)
        else:
            raise StandinError(f"the stand-in did not tick within {START_LIMIT_S:g} s")
        size = self.look().size
        if size != ctypes.sizeof(TestBlock):
            raise StandinError(f"the test block has {size} bytes, not {ctypes.sizeof(TestBlock)}: test_block.h changed")

    @property
    def display(self) -> str:
        """The X display it runs on."""
        return self.environment.get("DISPLAY", "")

    def is_running(self) -> bool:
        """Has its process not ended?"""
        return self.process.poll() is None

    def look(self) -> TestBlock:
        """The test block as it is now."""
        return TestBlock.from_buffer_copy(self.memory.read(self._block, ctypes.sizeof(TestBlock)))

    @property
    def ticks(self) -> int:
        """The true number of ticks so far."""
        return int(self.memory.number(self._block + TestBlock.ticks.offset, "Q"))

    @property
    def screen(self) -> str:
        """Where the game is: title, loading, field, arena or death."""
        return SCREENS[self.memory.number(self._block + TestBlock.screen.offset, "I")]

    def mail(self, **orders: int) -> None:
        """Make it misbehave; the names are those of MAIL."""
        for name, value in orders.items():
            if name not in MAIL:
                raise StandinError(f"{name} is no order of the mailbox")
            offset = TestBlock.mail.offset + getattr(_Mailbox, name).offset
            self.memory.write(self._block + offset, struct.pack("<i", value))

    def mailed(self, name: str) -> int:
        """What stands in the mailbox now."""
        return int(self.memory.number(self._block + TestBlock.mail.offset + getattr(_Mailbox, name).offset, "i"))

    def wait_for(self, happens: Callable[[TestBlock], object], limit_s: float = WAIT_LIMIT_S) -> TestBlock:
        """Wait until something is so in the test block."""
        limit = time.monotonic() + limit_s
        while True:
            block = self.look()
            if happens(block):
                return block
            if time.monotonic() > limit:
                raise StandinError(f"did not happen within {limit_s:g} s; the game is at {SCREENS[block.screen]}")
            time.sleep(0.002)

    def wait_ticks(self, count: int) -> int:
        """Wait until so many ticks are over; the number of the last one."""
        until = self.ticks + count
        return int(self.wait_for(lambda block: block.ticks >= until).ticks)

    def wait_turns(self, count: int = 3) -> int:
        """Wait until its loop has turned, with or without a tick: all it was sent before is taken in by then."""
        until = self.look().turns + count
        return int(self.wait_for(lambda block: block.turns >= until).ticks)

    def nothing_held(self) -> None:
        """Wait until it sees no key down by any way."""
        self.wait_for(lambda block: not any(any(held) for held in block.held))

    def until_seen(
        self, act: Callable[..., None], keys: Mapping[str, int], held: Callable[[], frozenset[str]]
    ) -> Callable[..., None]:
        """`act`, and then a wait until just the keys are seen down that are held, of those with a name."""
        messages = SOURCES.index("messages")

        def acted(*arguments: Any) -> None:
            before = held()
            act(*arguments)
            if held() == before:
                return
            wanted = {keys[name] for name in held()}
            self.wait_for(lambda block: {key for key in keys.values() if block.held[messages][key]} == wanted)
            time.sleep(0.05)  # and by the other ways to read keys

        return acted

    def force(self, move: int) -> None:
        """Let the boss begin a move of his moveset, by its number."""
        self.mail(force_boss_move=move + 1)

    def stop(self) -> None:
        """End it, however it is."""
        if self.is_running():
            self.process.kill() if ON_WINDOWS else self.process.send_signal(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_LIMIT_S)


def rate_of(count: Callable[[], float], wanted: float, *, rel: float = 0.15, seconds: float = 0.5) -> float:
    """By how much something counts on in a second. What is not as wanted is measured again: one may be held up."""
    for _ in range(RATE_TRIES):
        first, begin = count(), time.perf_counter()
        time.sleep(seconds)
        rate = (count() - first) / (time.perf_counter() - begin)
        if abs(rate - wanted) <= rel * wanted:
            break
    return rate


class Bench:
    """Where stand-ins are started: on Linux a display and a prefix of its own for each that runs at the same time."""

    def __init__(self, folder: Path | None = None) -> None:
        # Beside the original, since a hard link cannot lead to another file system.
        self._folder = folder or storage() / "clones" / str(os.getpid())
        self._own_folder = folder is None
        self._rooms: list[tuple[Display, Prefix]] = []
        self._running: dict[int, Standin] = {}
        self._lock = threading.Lock()

    def start(self, *switches: str, executable: Path | None = None, room: int = 0) -> Standin:
        """Start a stand-in in a room; only one at a time in each, so what still runs there is stopped first."""
        if room in self._running:
            self._running.pop(room).stop()
        for left in reversed(range(TRIES)):
            environment = self.environment(room)
            try:
                self._running[room] = Standin.start(executable or build(), *switches, environment=environment)
                break
            except NoWindow:
                if environment is None or not left:
                    raise
                self.prefix(room).restart()
        return self._running[room]

    def running(self, room: int = 0) -> Standin:
        """The stand-in in a room."""
        return self._running[room]

    def environment(self, room: int = 0) -> dict[str, str] | None:
        """The environment of a room's programs; none on Windows."""
        return None if ON_WINDOWS else self.prefix(room).environment

    def prefix(self, room: int = 0) -> Prefix:
        """The prefix of a room, made when first asked for."""
        with self._lock:
            while len(self._rooms) <= room:
                display = Display()
                try:
                    prefix = Prefix(self._folder / f"prefix-{len(self._rooms)}", display.name)
                except BaseException:
                    display.close()
                    raise
                self._rooms.append((display, prefix))
        return self._rooms[room][1]

    def display(self, room: int = 0) -> str:
        """The X display of a room."""
        return self.prefix(room).display

    def close(self) -> None:
        """Stop all: the stand-ins, then Wine, then the displays."""
        for standin in self._running.values():
            standin.stop()
        self._running.clear()
        for display, prefix in self._rooms:
            try:
                prefix.close()
            finally:
                display.close()
        self._rooms.clear()
        if self._own_folder:
            shutil.rmtree(self._folder, ignore_errors=True)


def _clear_clones() -> None:
    """Remove what killed tests have left."""
    for folder in (storage() / "clones").glob("*"):
        if not Path(f"/proc/{folder.name}").exists():
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def bench(folder: Path | None = None) -> Iterator[Bench]:
    """A bench that is cleared away, whatever happens."""
    if not ON_WINDOWS:
        _clear_clones()
    made = Bench(folder)
    try:
        yield made
    finally:
        made.close()


# ---------------------------------------------------------------- keys and pictures, straight from X


class XKeys:
    """Presses keys through XTest, without our game layer; `game` is who gets them now."""

    def __init__(self, display: str, game: Callable[[], Standin]) -> None:
        from Xlib import XK, X
        from Xlib.display import Display as XDisplay
        from Xlib.ext import xtest

        self._display, self._xtest, self._x, self._xk = XDisplay(display), xtest, X, XK
        self._held: list[str] = []
        self._game = game

    def _code(self, name: str) -> int:
        return int(self._display.keysym_to_keycode(self._xk.string_to_keysym(name)))

    def down(self, *names: str) -> None:
        """Press and keep."""
        for name in names:
            self._xtest.fake_input(self._display, self._x.KeyPress, self._code(name))
        self._held += names
        self._display.sync()

    def up(self, *names: str) -> None:
        """Let go."""
        for name in names:
            self._xtest.fake_input(self._display, self._x.KeyRelease, self._code(name))
        self._held = [name for name in self._held if name not in names]
        self._display.sync()

    def tap(self, *names: str, ticks: int = 4) -> None:
        """Press for some ticks of the game, and leave it the time to see that nothing is pressed any more."""
        game = self._game()
        self.down(*names)
        game.wait_turns()
        game.wait_ticks(ticks)
        self.up(*names)
        game.wait_turns()
        game.wait_ticks(2)

    def client_area(self, title: str) -> tuple[int, int, int, int]:
        """Left, top, width and height of the window with a title."""
        for window in self._display.screen().root.query_tree().children:
            if window.get_wm_name() == title:
                at = window.get_geometry()
                return int(at.x), int(at.y), int(at.width), int(at.height)
        raise StandinError(f"no window {title!r}")

    def close(self) -> None:
        """Let go of everything and hang up."""
        self.up(*self._held)
        self._display.close()


BLOCK_PIXELS, DATE_BITS = 8, 24


def date_of(picture: Any) -> int | None:
    """The tick that is written in a picture of the client area, or None if it is torn. (height, width, 3 or 4)"""
    tick = 0
    middle = BLOCK_PIXELS // 2
    for bit in range(DATE_BITS):
        column = bit * BLOCK_PIXELS + middle
        on, opposite = picture[middle, column, 0] > 127, picture[BLOCK_PIXELS + middle, column, 0] > 127
        if on == opposite:
            return None
        tick = tick << 1 | int(on)
    return tick
