"""The Windows backend's own parts, run by a Windows Python: memory of a child, its modules, keys, window, injection."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import standin_kit

from soulsgym.errors import GameGone, GameNotFound, ReadFailed, SpeedControlError
from soulsgym.game.clock import load_speed_control
from soulsgym.game.keyboard import load_keys, open_keys
from soulsgym.game.memory import ProcessMemory
from soulsgym.game.process import find_processes, open_process
from soulsgym.game.window import open_window
from soulsgym.game.windows.inject import inject

pytestmark = pytest.mark.wine

CHILD = """
import ctypes, sys
held = ctypes.create_string_buffer(bytes(range(256)) * 32)
print(ctypes.addressof(held), flush=True)
for line in sys.stdin:
    print(held.raw[:64].hex(), flush=True)
"""


class Child:
    """Another Python with 8192 known bytes; it tells the first 64 of them as it sees them itself."""

    def __init__(self):
        self.program = subprocess.Popen(
            [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.address = int(self.program.stdout.readline())

    def seen(self):
        self.program.stdin.write("\n")
        self.program.stdin.flush()
        return bytes.fromhex(self.program.stdout.readline())

    def end(self):
        self.program.kill()
        self.program.wait(10)


@pytest.fixture
def child():
    child = Child()
    yield child
    child.end()


@pytest.fixture
def process(child):
    process = open_process(child.program.pid)
    yield process
    process.close()


def test_this_is_windows():
    assert sys.platform == "win32"
    assert ctypes.sizeof(ctypes.c_void_p) == 8


def test_spans_come_in_the_order_asked_for(child, process):
    spans = [(child.address + 5000, 2), (child.address, 3), (child.address + 256, 4), (child.address + 1, 1)]
    assert process.read_many(spans) == bytes([136, 137, 0, 1, 2, 0, 1, 2, 3, 1])
    assert process.calls == 1


def test_what_is_written_is_seen_by_the_child_and_by_a_prepared_read(child, process):
    read = process.prepare([(child.address + 2, 4), (child.address + 63, 1)])
    assert read() == bytes([2, 3, 4, 5, 63])
    process.write(child.address + 3, b"\xaa\xbb")
    assert read() == bytes([2, 0xAA, 0xBB, 5, 63])
    assert child.seen()[:6] == bytes([0, 1, 2, 0xAA, 0xBB, 5])


def test_memory_that_is_not_there_is_named(child, process):
    with pytest.raises(ReadFailed, match="0x10"):
        process.read_many([(0x10, 4)])
    with pytest.raises(ReadFailed, match="0x10"):
        process.read_many([(child.address, 4), (0x10, 4)])
    with pytest.raises(ReadFailed, match="0x10"):
        process.write(0x10, b"1")


def test_memory_of_a_program_that_ended_is_gone(child, process):
    child.end()
    assert not process.is_running()
    with pytest.raises(GameGone):
        process.read_many([(child.address, 4)])


def test_a_pid_that_nobody_has_is_not_found(child):
    child.end()
    with pytest.raises(GameNotFound):
        open_process(child.program.pid)


def test_modules_are_known_by_name_and_begin_with_their_header(process):
    modules = process.modules()
    assert {"python.exe", "python311.dll", "kernel32.dll"} <= set(modules)
    assert all(process.read_many([(base, 2)]) == b"MZ" for base in modules.values())
    assert process.is_running()


def test_programs_are_found_by_file_name(child):
    found = {program.pid: program for program in find_processes("PYTHON.exe")}
    assert child.program.pid in found
    assert Path(found[child.program.pid].executable_path).name.lower() == "python.exe"
    assert find_processes("nobody.exe") == []


def test_a_library_is_loaded_into_a_running_program(child, process, tmp_path):
    library = tmp_path / "Bücher größer.dll"
    shutil.copy(Path(sys.executable).with_name("sqlite3.dll"), library)
    assert library.name.lower() not in process.modules()
    inject(child.program.pid, library)
    assert library.name.lower() in process.modules()
    assert child.seen()[:4] == bytes([0, 1, 2, 3])


def test_a_library_that_cannot_be_loaded_is_named(child, tmp_path):
    with pytest.raises(SpeedControlError, match=r"missing\.dll"):
        inject(child.program.pid, tmp_path / "missing.dll")


def test_a_library_is_not_loaded_into_a_program_that_ended(child, tmp_path):
    child.end()
    with pytest.raises(GameGone):
        inject(child.program.pid, tmp_path / "missing.dll")


@pytest.fixture
def found(standin):
    return next(one for one in find_processes(standin_kit.EXECUTABLE) if one.pid == standin.pid)


@pytest.fixture
def window(found):
    window = open_window(found, "DARK SOULS III")
    yield window
    window.close()


@pytest.fixture
def keys(found):
    keys = open_keys(found)
    yield keys
    keys.send([(binding.key, False) for binding in load_keys("darksouls3").values()])
    keys.close()


def test_every_bound_key_is_seen_by_every_way_to_ask_for_keys(standin, window, keys):
    window.activate()
    for action, binding in load_keys("darksouls3").items():
        for down in (True, False):
            keys.send([(binding.key, down)])
            for source in range(len(standin_kit.SOURCES)):

                def arrived(block, source=source, vk=binding.vk, down=down):
                    return bool(block.held[source][vk]) == down

                try:
                    standin.wait_for(arrived, 3.0)
                except standin_kit.StandinError:
                    pytest.fail(f"{action} ({binding.key}): {standin_kit.SOURCES[source]} did not see down={down}")


def test_keys_sent_together_keep_their_order(standin, window, keys):
    window.activate()
    before = standin.look().event_count
    keys.send([("W", True), ("A", True), ("W", False), ("A", False)])
    standin.wait_for(lambda block: block.ups[0] >= 2 and not block.held[0][ord("A")])
    seen = [(vk, down) for source, vk, down, _ in standin.look().seen() if source == "messages"]
    assert standin.look().event_count > before
    assert seen[-4:] == [(ord("W"), True), (ord("A"), True), (ord("W"), False), (ord("A"), False)]


@pytest.fixture
def clock(found):
    process = open_process(found.pid)
    clock = load_speed_control(found, ProcessMemory(process))
    yield clock
    clock.close()
    process.close()


def ticks_in(standin, seconds):
    """How many ticks the stand-in makes in so many real seconds."""
    first, begin = standin.ticks, time.perf_counter()
    time.sleep(seconds)
    return (standin.ticks - first) / (time.perf_counter() - begin) * seconds


def test_the_clock_of_a_running_game_is_taken_over(standin, clock):
    assert "souls_speed.dll" in open_process(standin.pid).modules()
    clock.set_speed(3.0)
    assert ticks_in(standin, 0.5) == pytest.approx(90, rel=0.2)
    clock.pause()
    time.sleep(0.1)  # a tick that had begun may still end
    stopped = standin.ticks
    assert ticks_in(standin, 0.3) == 0
    for _ in range(30):
        clock.advance(1)
    standin.wait_for(lambda block: block.ticks >= stopped + 30)
    assert ticks_in(standin, 0.3) == 0
    assert standin.ticks == stopped + 30
    clock.resume()
    assert ticks_in(standin, 0.5) == pytest.approx(30, rel=0.3)


def test_a_clock_that_is_let_go_runs_by_itself(standin, clock):
    clock.pause()
    clock.close()
    assert ticks_in(standin, 0.5) == pytest.approx(30, rel=0.3)


class Intruder:
    """A window of our own that takes the focus."""

    def __init__(self):
        self.user32 = ctypes.WinDLL("user32")
        self.user32.CreateWindowExW.restype = ctypes.c_void_p
        place = (200, 200, 300, 200)
        self.handle = self.user32.CreateWindowExW(
            0, "STATIC", "intruder", 0x10CF0000, *place, None, None, None, None
        )  # visible, overlapped, with a frame
        self.user32.SetForegroundWindow(ctypes.c_void_p(self.handle))

    def close(self):
        self.user32.DestroyWindow(ctypes.c_void_p(self.handle))


def test_a_window_comes_back_to_the_front(window):
    window.activate()
    intruder = Intruder()
    try:
        deadline = time.monotonic() + 3.0
        while window.has_focus() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not window.has_focus()
        window.activate()
        assert window.has_focus()
    finally:
        intruder.close()


def test_a_picture_shows_the_client_area_of_its_moment(standin, window):
    width, height = window.client_size()
    before = standin.ticks
    picture = window.grab()
    assert picture.shape == (height, width, 3)
    assert picture.dtype == np.uint8
    dates = [standin_kit.date_of(window.grab()) for _ in range(20)]
    whole = [date for date in dates if date is not None]
    assert whole, "every picture was torn"
    assert before - 60 <= whole[-1] <= standin.ticks
    assert whole == sorted(whole)


def test_a_window_that_is_gone_is_named(standin, window):
    standin.stop()
    with pytest.raises(GameNotFound, match="DARK SOULS III"):
        window.grab()
