"""The controlling side of a game's clock, against a model of the library in the game."""

from __future__ import annotations

import os
import re
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import soulsgym.game.clock as clock_module
from soulsgym.errors import GameGone, GameHung, GameNotFound, MisuseError, ReadFailed, SpeedControlError
from soulsgym.game.clock import Clock, find_block, load_speed_control, packed_command
from soulsgym.game.process import ProcessInfo

SOURCES = Path(clock_module.__file__).parent / "speed"
BASE = 0x7FF800000000
FREQUENCY = 10_000_000
FIELDS = {
    "magic": (0, "8s"), "version": (8, "I"), "size": (12, "I"), "frequency": (16, "q"), "installed": (24, "I"),
    "failed": (28, "I"), "limit_ms": (32, "I"), "claim": (64, "Q"), "beat": (72, "Q"), "token": (80, "Q"),
    "sequence": (88, "Q"), "wanted_speed": (96, "d"), "advance": (104, "q"), "flags": (112, "Q"), "check": (120, "Q"),
    "owner": (128, "Q"), "acknowledged": (136, "Q"), "speed": (144, "d"), "advanced": (152, "q"),
    "virtual": (160, "q"), "real": (168, "q"), "lapses": (176, "Q"), "turns": (184, "Q"), "refused": (192, "Q"),
    "queries": (200, "Q"),
}  # fmt: skip


class Library:
    """The library as the control block shows it. It takes its turns whenever its memory is looked at."""

    def __init__(self, **values: Any) -> None:
        self.block = bytearray(512)
        self.deaf = self.stopped = self.someone_beats = False
        self.heard, self.beat = time.monotonic(), 0
        self.lock = threading.RLock()  # the clock's own thread looks at it, too
        self.torn: Callable[[bytes], bytes] = bytes
        start = {"magic": b"SOULSPD1", "version": 2, "size": 512, "frequency": FREQUENCY, "installed": 63}
        for name, value in {**start, "limit_ms": 700, "speed": 1.0, "virtual": 5 * FREQUENCY, **values}.items():
            self[name] = value

    def __getitem__(self, name: str) -> Any:
        at, kind = FIELDS[name]
        return struct.unpack_from("<" + kind, self.block, at)[0]

    def __setitem__(self, name: str, value: Any) -> None:
        at, kind = FIELDS[name]
        struct.pack_into("<" + kind, self.block, at, value)

    def turn(self) -> None:
        with self.lock:
            self._turn()

    def _turn(self) -> None:
        if self.stopped:
            return
        self["turns"] += 1
        self["beat"] += self.someone_beats
        if self.beat != self["beat"]:
            self.heard = time.monotonic()
        self.beat = self["beat"]
        if self["owner"] and time.monotonic() - self.heard > self["limit_ms"] / 1000:
            self.lapse()
        if not self["owner"] and self["claim"]:
            self["owner"], self["claim"], self.heard = self["claim"], 0, time.monotonic()
        if not self.deaf:
            self.take()

    def lapse(self) -> None:
        self["owner"], self["speed"] = 0, 1.0
        self["lapses"] += 1

    def take(self) -> None:
        parts = [self[name] for name in ("token", "sequence", "wanted_speed", "advance", "flags")]
        token, sequence, speed, advance, flags = parts
        if sequence == self["acknowledged"] or token != self["owner"] or not token:
            return
        if packed_command(*parts)[-8:] != bytes(self.block[120:128]):
            return
        if advance < self["advanced"]:
            self["refused"] = sequence
            return
        self["virtual"] += advance - self["advanced"]
        self["advanced"], self["speed"] = advance, speed
        if flags & 2:  # as if that time passed at once
            self["virtual"] += flags >> 8
            self["speed"] = 0.0
        if flags & 1:
            self["owner"] = 0
        self["acknowledged"] = sequence


class FakeProcess:
    """A process of which nothing is there but the block."""

    def __init__(self, library: Library) -> None:
        self.library, self.pid, self.calls = library, 4711, 0
        self.gone = self.unmapped = False
        self.names = {"game.exe": 0x140000000, "souls_speed.dll": BASE - 0x1000}
        self.written: list[tuple[int, bytes]] = []

    def read_many(self, spans: Sequence[tuple[int, int]]) -> bytes:
        if self.gone:
            raise GameGone("the game (pid 4711) has ended: start it again.")
        if self.unmapped:
            raise ReadFailed(spans[0][0], "cannot be read")
        with self.library.lock:
            self.library.turn()
            return b"".join(bytes(self.library.block[at - BASE : at - BASE + size]) for at, size in spans)

    def prepare(self, spans: Sequence[tuple[int, int]]) -> Callable[[], bytes]:
        return lambda: self.read_many(spans)

    def write(self, address: int, data: bytes) -> None:
        if self.gone:
            raise GameGone("the game (pid 4711) has ended: start it again.")
        with self.library.lock:
            self.written.append((address - BASE, data))
            self.library.block[address - BASE : address - BASE + len(data)] = data

    def modules(self) -> dict[str, int]:
        return self.names

    def is_running(self) -> bool:
        return not self.gone

    def close(self) -> None:
        self.gone = True


class FakeMemory:
    """What the clock uses of ProcessMemory."""

    def __init__(self, process: FakeProcess) -> None:
        self.process = process
        self.image = b""

    def module(self, name: str) -> Any:
        if name not in self.process.names:
            raise GameNotFound(f"pid 4711 has not loaded {name}.")
        return SimpleNamespace(exports={"souls_control": BASE} if name == "souls_speed.dll" else {})

    def read(self, address: int, size: int) -> bytes:
        if address == 0x140000000:
            return self.image[:size]
        return self.process.read_many(((address, size),))


@pytest.fixture
def library() -> Library:
    return Library()


@pytest.fixture(autouse=True)
def no_lapse(monkeypatch: pytest.MonkeyPatch) -> None:
    """None but those that a test makes itself, however long this program is held up."""
    monkeypatch.setattr(clock_module, "LAPSE_S", 60.0)


@pytest.fixture
def process(library: Library) -> FakeProcess:
    return FakeProcess(library)


@pytest.fixture
def clock(process: FakeProcess) -> Iterator[Clock]:
    clock = opened(process)
    yield clock
    clock.close()


def opened(process: FakeProcess, **options: Any) -> Clock:
    return Clock(FakeMemory(process), **options)  # type: ignore[arg-type]


def commands(process: FakeProcess) -> list[tuple[float, int]]:
    return [struct.unpack_from("<dq", data, 16) for at, data in process.written if at == 80]


def test_layout_is_that_of_the_header_file() -> None:
    text = (SOURCES / "control.h").read_text()
    assert f'SOULS_MAGIC "{clock_module.MAGIC.decode()}"' in text
    assert f"SOULS_VERSION {clock_module.VERSION}u" in text
    assert f"sizeof(struct souls_control) == {clock_module.BLOCK_SIZE}" in text
    assert f"SOULS_MAX_SPEED {clock_module.MAX_SPEED:.1f}" in text
    assert re.search(r"SOULS_BEAT_LIMIT_MS (\d+)u", text)


def test_several_beats_come_before_a_lapse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert clock_module.LAPSE_S / 4 > clock_module.BEAT_EVERY_S
    assert clock_module.CLAIM_LIMIT_S > 2 * clock_module.LAPSE_S


def test_the_owner_says_when_it_counts_as_silent(process: FakeProcess, library: Library) -> None:
    assert library["limit_ms"] == 700
    clock = opened(process)
    assert library["limit_ms"] == 60_000
    clock.close()


def test_speed_is_set_and_told(clock: Clock, library: Library) -> None:
    assert clock.speed == 1.0
    clock.set_speed(2.5)
    assert (clock.speed, library["speed"]) == (2.5, 2.5)
    clock.pause()
    assert clock.speed == 0.0
    clock.resume()
    assert clock.speed == 1.0


@pytest.mark.parametrize("factor", [-0.5, float("nan"), float("inf"), 1000.5])
def test_impossible_speeds_are_refused_before_anything_is_sent(
    clock: Clock, process: FakeProcess, factor: float
) -> None:
    with pytest.raises(MisuseError, match="give 0 to 1000"):
        clock.set_speed(factor)
    assert commands(process) == []


def test_frequency_and_time_and_queries_are_those_of_the_game(clock: Clock, library: Library) -> None:
    library["queries"] = 77
    assert (clock.frequency, clock.now(), clock.queries) == (FREQUENCY, 5.0, 77)


@pytest.mark.parametrize("frequency", [10_000_000, 3_579_545, 2_594_321_007])
def test_sums_of_advances_are_exact_for_any_frequency(frequency: int) -> None:
    library = Library(frequency=frequency, advanced=12_345)
    clock = opened(FakeProcess(library))
    clock.pause()
    for number in range(1, 301):
        clock.advance()
        assert library["advanced"] - 12_345 == -(-number * frequency // 60)
    clock.close()


def test_advances_by_parts_of_a_tick_add_up_to_whole_ones(clock: Clock, library: Library) -> None:
    clock.pause()
    for _ in range(21):
        clock.advance(Fraction(1, 7))
    assert library["advanced"] == FREQUENCY * 3 // 60
    clock.advance(6)
    assert library["advanced"] == FREQUENCY * 9 // 60


def test_sum_goes_on_after_the_clock_has_run_in_between(clock: Clock, library: Library) -> None:
    clock.pause()
    clock.advance()
    clock.resume()
    clock.pause()
    clock.advance(2)
    assert library["advanced"] == FREQUENCY * 3 // 60


def test_sums_of_runs_are_exact_and_none_of_the_advances(clock: Clock, library: Library) -> None:
    clock.pause()
    begin = library["virtual"]
    for number in range(1, 50):
        clock.run(1, 3.0)
        assert library["virtual"] - begin == -(-number * FREQUENCY // 60)
        assert library["wanted_speed"] == 3.0
    assert library["advanced"] == 0
    assert clock.speed == 0.0


def test_run_needs_a_paused_clock_and_numbers_above_0(clock: Clock) -> None:
    with pytest.raises(MisuseError, match=r"runs at speed 1; pause\(\) it before run\(\)"):
        clock.run(6, 3.0)
    clock.pause()
    for ticks, speed in ((0, 1.0), (-1, 1.0), (6, 0.0), (6, float("inf"))):
        with pytest.raises(MisuseError, match="not possible; give numbers above 0"):
            clock.run(ticks, speed)


def test_advance_needs_a_paused_clock_and_a_future(clock: Clock) -> None:
    with pytest.raises(MisuseError, match="speed 1; pause"):
        clock.advance()
    clock.pause()
    with pytest.raises(MisuseError, match="-1 is not possible"):
        clock.advance(-1)


def test_game_that_takes_no_command_hangs(process: FakeProcess, library: Library) -> None:
    clock = opened(process, limit_s=0.05)
    library.deaf = True
    begin = time.monotonic()
    with pytest.raises(GameHung, match=r"pid 4711.*speed 3 within 0.05 s"):
        clock.set_speed(3.0)
    assert 0.05 <= time.monotonic() - begin < 60.0
    library.deaf = False
    clock.close()


def test_command_that_is_half_written_is_not_taken(clock: Clock, library: Library) -> None:
    clock.pause()
    whole = packed_command(library["token"], 99, 2.0, 5_000, 0)
    for cut in range(8, 48, 8):
        library.block[80:128] = whole[:cut] + bytes(library.block[80 + cut : 128])
        library.turn()
        assert library["speed"] == 0.0
    library.block[80:128] = whole
    library.turn()
    assert library["speed"] == 2.0


def test_game_that_has_ended_is_gone_and_closing_is_quiet(clock: Clock, process: FakeProcess) -> None:
    process.gone = True
    with pytest.raises(GameGone):
        clock.pause()
    clock.close()
    clock.close()


def test_other_controller_that_lives_keeps_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_module, "CLAIM_LIMIT_S", 0.1)
    library = Library(owner=99)
    library.someone_beats = True
    with pytest.raises(SpeedControlError, match="another program controls the clock"):
        opened(FakeProcess(library))
    assert (library["owner"], library["claim"]) == (99, 0)


def test_clock_of_a_controller_that_was_killed_is_taken_over() -> None:
    library = Library(owner=99, speed=0.0, limit_ms=100, sequence=41, acknowledged=41, advanced=600)
    clock = opened(FakeProcess(library))
    assert (clock.speed, library["lapses"], clock.lapses) == (1.0, 1, 0)
    clock.pause()
    clock.advance(60)
    assert library["advanced"] == 600 + FREQUENCY
    clock.close()


def test_a_claim_made_in_the_moment_of_its_granting_is_withdrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library(owner=99, limit_ms=60_000)
    process, word = FakeProcess(library), Clock._word

    def granted_just_before(clock: Clock, offset: int) -> int:
        found = word(clock, offset)
        if found == clock._token and library["owner"] == 99:  # now it is granted, and looks as if nobody had asked
            library.lapse()
            library.turn()
            return 0
        return found

    monkeypatch.setattr(Clock, "_word", granted_just_before)
    clock = opened(process)
    assert (library["owner"], library["claim"]) == (clock._token, 0)
    clock.close()
    library.turn()
    assert library["owner"] == 0


def test_clock_of_a_dead_controller_is_waited_for_where_the_game_hardly_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_module, "CLAIM_LIMIT_S", 0.05)
    library = Library(owner=99, beat=7, limit_ms=400)
    clock = opened(FakeProcess(library))
    assert library["lapses"] == 1
    clock.close()


def test_game_whose_library_does_not_move_hangs(monkeypatch: pytest.MonkeyPatch, library: Library) -> None:
    monkeypatch.setattr(clock_module, "CLAIM_LIMIT_S", 0.05)
    library.stopped = True
    with pytest.raises(GameHung, match="has not moved"):
        opened(FakeProcess(library))
    assert library["claim"] == 0


def test_lapse_is_counted_and_stops_advances_until_the_next_pause(clock: Clock, library: Library) -> None:
    clock.pause()
    clock.advance()
    library.lapse()
    assert (clock.lapses, clock.speed) == (1, 1.0)
    with pytest.raises(SpeedControlError, match=r"ran on by itself.*60 s; pause\(\) it again"):
        clock.advance()
    clock.pause()
    before = library["advanced"]
    clock.advance(3)
    assert library["advanced"] == before + FREQUENCY * 3 // 60


def test_lapse_while_a_command_is_on_its_way_is_told(process: FakeProcess, library: Library) -> None:
    clock = opened(process, limit_s=60.0)
    clock.pause()
    library.deaf = True
    threading.Timer(0.05, library.lapse).start()
    with pytest.raises(SpeedControlError, match="ran on by itself"):
        clock.advance()
    library.deaf = False
    clock.close()


def test_clock_that_someone_else_took_after_a_lapse_is_not_taken_back(
    clock: Clock, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock_module, "CLAIM_LIMIT_S", 0.05)
    library["owner"], library.someone_beats = 99, True
    with pytest.raises(SpeedControlError, match="another program"):
        clock.pause()


def test_beats_go_on_while_nothing_else_happens_and_stop_with_close(clock: Clock, library: Library) -> None:
    beats, begin = [library["beat"]], time.monotonic()
    while len(beats) < 5:
        assert time.monotonic() - begin < 60.0, f"no beat comes after {beats}"
        beats += {library["beat"]} - {beats[-1]}
        time.sleep(0.01)
    clock.close()
    assert library["beat"] - beats[1] < (time.monotonic() - begin) / clock_module.BEAT_EVERY_S
    after = library["beat"]
    time.sleep(0.15)
    assert library["beat"] == after


def test_ticks_trickle_in_a_long_pause_and_no_other_time(clock: Clock, library: Library) -> None:
    clock.set_speed(2.0)
    clock.trickle_after_s = 0.05
    time.sleep(0.5)
    assert (clock.trickled, library["advanced"]) == (0, 0)
    clock.pause()
    deadline = time.monotonic() + 60.0
    while clock.trickled < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    clock.trickle_after_s = float("inf")
    clock.advance(1)
    assert clock.trickled >= 3
    assert library["advanced"] == -(-(clock.trickled + 1) * FREQUENCY // 60)
    assert (library["speed"], library["lapses"]) == (0.0, 0)


def test_no_tick_trickles_for_a_while_after_the_clock_was_touched(clock: Clock) -> None:
    clock.pause()
    clock._touched -= 60.0
    clock.trickle_after_s = 30.0
    trickled = clock.touch()
    clock._trickle()
    assert clock.trickled == trickled
    clock._touched -= 60.0
    clock._trickle()
    assert clock.trickled == trickled + 1


def test_a_loop_that_hardly_gets_to_run_is_watched_for_longer(clock: Clock, library: Library) -> None:
    asked = iter((3, 9))

    def sleep(seconds: float) -> None:
        struct.pack_into("<2Q", library.block, 256, 11, next(asked))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock_module.time, "sleep", sleep)
        assert clock.find_loops() == 1
    assert clock.queries == 9


def test_questions_are_counted_by_the_threads_that_ask_all_the_time(
    clock: Clock, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sound asks often, the game's loop less often, and one thread hardly ever: the loop decides."""
    rows = [(11, 5), (12, 0), (13, 0)]

    def put() -> None:
        for number, (thread, asked) in enumerate(rows):
            struct.pack_into("<2Q", library.block, 256 + 16 * number, thread, asked)

    def sleep(seconds: float) -> None:
        rows[1], rows[2] = (12, 400), (13, 30)
        put()

    put()
    library["queries"] = 5
    assert clock.queries == 5
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock_module.time, "sleep", sleep)
        assert clock.find_loops() == 2
    assert clock.queries == 30
    rows[1] = (12, 900)
    put()
    assert clock.queries == 30
    rows[2] = (13, 31)
    put()
    assert clock.queries == 31
    assert clock.questions()[:3] == rows
    monkeypatch.setattr(clock_module, "SILENT_S", 0.05)
    deadline = time.monotonic() + 60.0  # the third thread has ended and must not be waited for
    while clock.queries != rows[1][1] and time.monotonic() < deadline:
        rows[1] = (12, rows[1][1] + 1)
        put()
        time.sleep(0.01)
    assert clock.queries == rows[1][1]


def test_nothing_trickles_unless_it_was_asked_for(clock: Clock, library: Library) -> None:
    clock.pause()
    time.sleep(0.3)
    assert library["advanced"] == 0


def test_nothing_is_written_into_a_program_that_has_no_such_owner(clock: Clock, process: FakeProcess) -> None:
    process.library["owner"], process.library.someone_beats = 0, True
    process.library.stopped = True
    process.written.clear()
    time.sleep(0.25)
    clock.close()
    assert process.written == []


def test_beating_thread_ends_with_the_game(clock: Clock, process: FakeProcess) -> None:
    process.unmapped = True
    clock._thread.join(60.0)
    assert not clock._thread.is_alive()
    process.unmapped = False


def test_failure_of_the_beating_thread_is_told_by_the_next_command(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise RuntimeError("a wire is cut")

    monkeypatch.setattr(clock, "_beat", fail)
    clock._thread.join(60.0)
    assert "a wire is cut" in caplog.text
    with pytest.raises(SpeedControlError, match="a wire is cut"):
        clock.pause()


def test_close_returns_the_game_to_its_own_speed_and_lets_go(clock: Clock, library: Library) -> None:
    clock.pause()
    clock.close()
    assert (library["speed"], library["owner"]) == (1.0, 0)
    with pytest.raises(MisuseError, match="closed"):
        clock.pause()
    with pytest.raises(MisuseError, match="closed"):
        clock.advance()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on Windows")
def test_fork_that_ends_leaves_the_clock_to_its_parent(clock: Clock, process: FakeProcess) -> None:
    clock.pause()
    before = len(commands(process))
    child = os.fork()
    if child == 0:
        clock.close()
        os._exit(len(commands(process)) - before)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_two_clocks_one_after_the_other_number_their_commands_on(process: FakeProcess, library: Library) -> None:
    for speed in (2.0, 3.0):
        clock = opened(process)
        clock.set_speed(speed)
        assert library["speed"] == speed
        clock.close()
    assert library["acknowledged"] == 4


def test_time_that_would_run_back_is_refused_by_the_library(clock: Clock, library: Library) -> None:
    clock.pause()
    library["advanced"] = FREQUENCY
    with pytest.raises(SpeedControlError, match="refused"):
        clock.advance()


def test_other_version_of_the_library_is_told() -> None:
    with pytest.raises(SpeedControlError, match=r"version 3 .* version 2 is needed"):
        opened(FakeProcess(Library(version=3)))
    with pytest.raises(SpeedControlError, match="make speed"):
        opened(FakeProcess(Library(size=264)))


def test_clocks_that_are_not_hooked_are_named() -> None:
    with pytest.raises(SpeedControlError, match="cannot control GetTickCount64, timeGetTime in"):
        opened(FakeProcess(Library(installed=0b111011, failed=0b001000)))
    opened(FakeProcess(Library(installed=0b101111, failed=0b010000))).close()


def test_library_that_is_not_there_or_not_ready_is_not_found(process: FakeProcess, library: Library) -> None:
    library["magic"] = b"\0" * 8
    assert find_block(FakeMemory(process)) is None  # type: ignore[arg-type]
    del process.names["souls_speed.dll"]
    process.names["dinput8.dll"] = 0x1000  # The system's own has no block.
    assert find_block(FakeMemory(process)) is None  # type: ignore[arg-type]
    with pytest.raises(SpeedControlError, match=r"has not loaded souls_speed\.dll"):
        opened(process)


def test_library_that_was_not_built_is_named(process: FakeProcess, tmp_path: Path) -> None:
    del process.names["souls_speed.dll"]
    with pytest.raises(SpeedControlError, match=r"souls_speed\.dll is not there; install the wheel.*`make speed`"):
        load_speed_control(ProcessInfo(4711, r"C:\game.exe"), headed(process, 0x8664), folder=tmp_path)


def test_32_bit_game_is_named(process: FakeProcess) -> None:
    del process.names["souls_speed.dll"]
    with pytest.raises(SpeedControlError, match=r"game\.exe \(pid 4711\) is a 32-bit program"):
        load_speed_control(ProcessInfo(4711, r"C:\Spiele\Game.exe"), headed(process, 0x14C))


def headed(process: FakeProcess, machine: int) -> Any:
    memory = FakeMemory(process)
    memory.image = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x80)
    memory.image = (memory.image.ljust(0x80, b"\0") + struct.pack("<4sH", b"PE\0\0", machine)).ljust(0x400, b"\0")
    return memory


def test_loaded_library_is_used_without_injection(process: FakeProcess, tmp_path: Path) -> None:
    clock = load_speed_control(ProcessInfo(4711, "game.exe"), FakeMemory(process), folder=tmp_path)  # type: ignore[arg-type]
    clock.set_speed(2.0)
    assert clock.speed == 2.0
    clock.close()


@pytest.mark.parametrize("says", [b"\0" * 8, clock_module.MAGIC], ids=["nothing", "that it is there"])
def test_library_whose_thread_does_not_start_is_named(
    process: FakeProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: bytes
) -> None:
    monkeypatch.setattr(clock_module, "LOAD_LIMIT_S", 0.02)
    process.library["magic"] = b"\0" * 8
    process.library.stopped = True
    monkeypatch.setattr(clock_module, "_inject", lambda *_: process.library.__setitem__("magic", says))
    with pytest.raises(SpeedControlError, match="did not start"):
        load_speed_control(ProcessInfo(4711, "game.exe"), headed(process, 0x8664), folder=tmp_path)
