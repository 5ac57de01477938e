"""Running probes: small Windows programs that write down what their clocks say."""

from __future__ import annotations

import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from soulsgym.errors import GameError
from soulsgym.game.clock import SPEED_BIN, Clock, load_speed_control
from soulsgym.game.memory import ProcessMemory
from soulsgym.game.process import find_processes, open_process

HERE = Path(__file__).parent
COMPILER = "x86_64-w64-mingw32-gcc"
START_LIMIT_S = 60.0


class Seen(NamedTuple):
    """The block of a probe, in the order of probe.c."""

    ready: int
    ticks: int
    turns: int
    frequency: int
    counter: int
    tick: int
    tick64: int
    time: int
    counter_back: int
    tick_back: int
    tick64_back: int
    time_back: int
    apart: int
    hammered: int
    naps: int
    naps_ex: int
    direct_input: int
    measure: int
    call_ps: int
    hang: int
    nap_ns: int
    control: int
    token: int
    changes: int


class Probe:
    """One running probe."""

    def __init__(self, executable: Path, environment: dict[str, str], hammers: int) -> None:
        quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        command = ["wine", str(executable), str(hammers)]
        self.process = subprocess.Popen(command, env=environment, cwd=executable.parent, **quiet)  # type: ignore[call-overload]
        self.pid: int = self.process.pid
        self.memory = ProcessMemory(open_process(self.pid))
        self.clocks: list[Clock] = []
        try:
            self._block = self._found()
        except BaseException:
            self.stop()
            raise

    def _found(self) -> int:
        deadline = time.monotonic() + START_LIMIT_S
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                address = self.memory.module("probe.exe").exports["probe"]
                if any(self.memory.read(address, 8)):
                    return address
            except (GameError, KeyError):
                pass
            time.sleep(0.02)
        raise TimeoutError("the probe did not start")

    def look(self) -> Seen:
        """What it has seen so far."""
        data = self.memory.read(self._block, 8 * len(Seen._fields))
        return Seen(*(int.from_bytes(data[at : at + 8], "little", signed=True) for at in range(0, len(data), 8)))

    def put(self, **values: int) -> None:
        """Set what a test may set."""
        for name, value in values.items():
            self.memory.write(self._block + 8 * Seen._fields.index(name), struct.pack("<q", value))

    def wait(self, happens: Callable[[Seen], object], limit_s: float = 60.0) -> Seen:
        """Wait until something is so."""
        deadline = time.monotonic() + limit_s
        while not happens(seen := self.look()):
            assert time.monotonic() < deadline, f"did not happen within {limit_s:g} s: {seen}"
            time.sleep(0.0002)
        return seen

    def clock(self, **options: Any) -> Clock:
        """Its clock; the library is injected if it is not there."""
        (found,) = (found for found in find_processes("probe.exe") if found.pid == self.pid)
        clock = load_speed_control(found, self.memory, **options)
        self.clocks.append(clock)
        return clock

    def stop(self) -> None:
        """End it, however it is."""
        for clock in self.clocks:
            clock.close()
        self.process.kill()
        self.process.wait(60.0)


@pytest.fixture(scope="session")
def speed_bin(wine: Any) -> Path:
    """The library and the injector, which the fixture `wine` has built from the sources of now."""
    return SPEED_BIN


@pytest.fixture(scope="session")
def probe_exe(wine: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The probe, compiled."""
    target = tmp_path_factory.mktemp("probe") / "probe.exe"
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{SPEED_BIN.parent}"]
    libraries = ["-ldinput8", "-lwinmm", "-lntdll"]
    done = subprocess.run(
        [COMPILER, *flags, str(HERE / "probe.c"), "-o", str(target), *libraries], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture
def start_probe(wine: Any, speed_bin: Path, probe_exe: Path) -> Iterator[Callable[..., Probe]]:
    """A function that starts a probe; all are stopped after the test."""
    started: list[Probe] = []

    def start(*, hammers: int = 0, executable: Path = probe_exe) -> Probe:
        started.append(Probe(executable, {**wine.environment(), "LC_ALL": "C.UTF-8"}, hammers))
        return started[-1]

    yield start
    for probe in started:
        probe.stop()


@pytest.fixture
def probe(start_probe: Callable[..., Probe]) -> Probe:
    """One probe that does nothing but tick and nap."""
    return start_probe()
