"""The Windows backend's own parts, run by a Windows Python: memory of a child, its modules, keys, window, injection."""

from __future__ import annotations

import ctypes
import os
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
from soulsgym.game.keyboard import load_bindings, open_keys
from soulsgym.game.memory import ProcessMemory
from soulsgym.game.process import ProcessInfo, find_processes, open_process
from soulsgym.game.window import open_window
from soulsgym.game.windows.inject import inject
from soulsgym.game.windows.keys import virtual_key

pytestmark = [pytest.mark.wine, pytest.mark.usefixtures("no_lapse")]

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
        self.program.wait(60)


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
    keys.send([(key, False) for key in load_bindings("darksouls3").values()])
    keys.close()


def test_every_bound_key_is_seen_by_every_way_to_ask_for_keys(standin, window, keys):
    window.activate()
    for action, key in load_bindings("darksouls3").items():
        for down in (True, False):
            keys.send([(key, down)])
            for source in range(len(standin_kit.SOURCES)):

                def arrived(block, source=source, key=key, down=down):
                    return bool(block.held[source][virtual_key(key)]) == down

                try:
                    standin.wait_for(arrived)
                except standin_kit.StandinError:
                    pytest.fail(f"{action} ({key}): {standin_kit.SOURCES[source]} did not see down={down}")


def test_keys_sent_together_keep_their_order(standin, window, keys):
    window.activate()
    before = standin.look().event_count
    keys.send([("W", True), ("A", True), ("W", False), ("A", False)])
    standin.wait_for(lambda block: block.ups[0] >= 2 and not block.held[0][ord("A")])
    seen = [(vk, down) for source, vk, down, _ in standin.look().seen() if source == "messages"]
    assert standin.look().event_count > before
    assert seen[-4:] == [(ord("W"), True), (ord("A"), True), (ord("W"), False), (ord("A"), False)]


@pytest.fixture
def process_of_standin(found):
    process = open_process(found.pid)
    yield process
    process.close()


@pytest.fixture
def clock(found, process_of_standin):
    clock = load_speed_control(found, ProcessMemory(process_of_standin))
    yield clock
    clock.close()


def rate(clock, wanted):
    """How many seconds of the game pass in a real one."""
    return standin_kit.rate_of(clock.now, wanted, rel=0.2, seconds=0.3)


def test_the_clock_of_a_running_game_is_taken_over(standin, process_of_standin, clock):
    assert "souls_speed.dll" in process_of_standin.modules()
    clock.set_speed(3.0)
    assert rate(clock, 3.0) == pytest.approx(3.0, rel=0.2)
    clock.pause()
    stopped = standin.wait_turns()  # one that had begun may still make ticks
    assert rate(clock, 0.0) == 0.0
    for _ in range(30):
        clock.advance(1)
    standin.wait_for(lambda block: block.ticks >= stopped + 30)
    assert standin.wait_turns() == stopped + 30
    clock.resume()
    assert rate(clock, 1.0) == pytest.approx(1.0, rel=0.2)
    standin.wait_ticks(10)


def test_a_clock_that_is_let_go_runs_by_itself(standin, clock):
    clock.pause()
    clock.close()
    standin.wait_ticks(10)


class Intruder:
    """A window of our own that takes the focus."""

    TITLE = "intruder"
    VISIBLE_WITH_FRAME = 0x10CF0000

    def __init__(self):
        self.user32, self.gdi32 = ctypes.WinDLL("user32"), ctypes.WinDLL("gdi32")
        for call in (self.user32.CreateWindowExW, self.user32.GetDC, self.gdi32.CreateSolidBrush):
            call.restype = ctypes.c_void_p
        place = (200, 200, 300, 200)
        self.handle = ctypes.c_void_p(
            self.user32.CreateWindowExW(
                0, "STATIC", self.TITLE, self.VISIBLE_WITH_FRAME, *place, None, None, None, None
            )
        )
        self.come_forward()

    def come_forward(self):
        self.user32.SetForegroundWindow(self.handle)
        self.answer()

    def answer(self):
        """Do what Windows asks of the window, which puts on the screen what was painted too."""
        message = (ctypes.c_ubyte * 64)()
        remove = 1
        while self.user32.PeekMessageW(message, None, 0, 0, remove):
            self.user32.DispatchMessageW(message)

    def paint(self, colour):
        """Fill the client area with red + 256 green + 65536 blue; its size."""
        area = (ctypes.c_int32 * 4)()
        self.user32.GetClientRect(self.handle, area)
        context = ctypes.c_void_p(self.user32.GetDC(self.handle))
        self.user32.FillRect(context, area, ctypes.c_void_p(self.gdi32.CreateSolidBrush(colour)))
        self.gdi32.GdiFlush()
        self.user32.ReleaseDC(self.handle, context)
        self.answer()
        return area[2], area[3]

    def close(self):
        self.user32.DestroyWindow(self.handle)


@pytest.fixture(scope="module")
def intruder():
    """Only one, as Wine takes two seconds to close a window that no window manager looks after."""
    intruder = Intruder()
    yield intruder
    intruder.close()


def test_a_window_comes_back_to_the_front(window, intruder):
    window.activate()
    assert window.has_focus()
    intruder.come_forward()
    deadline = time.monotonic() + standin_kit.WAIT_LIMIT_S
    while window.has_focus() and time.monotonic() < deadline:
        time.sleep(0.01)
        intruder.answer()
    assert not window.has_focus()
    window.activate()
    assert window.has_focus()


def test_a_picture_has_the_colours_of_the_client_area_and_nothing_else(intruder):
    window = open_window(ProcessInfo(os.getpid(), ""), Intruder.TITLE)
    intruder.come_forward()
    deadline = time.monotonic() + standin_kit.WAIT_LIMIT_S
    while True:
        width, height = intruder.paint(30 + 256 * 120 + 65536 * 210)
        picture = window.grab()
        if (picture == (30, 120, 210)).all() or time.monotonic() > deadline:
            break
    assert window.client_size() == (width, height)
    assert picture.shape == (height, width, 3)
    assert np.unique(picture.reshape(-1, 3), axis=0).tolist() == [[30, 120, 210]]
    window.close()


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
    def watch():
        deadline = time.monotonic() + standin_kit.WAIT_LIMIT_S
        while time.monotonic() < deadline:  # it goes a moment after its program
            window.grab()

    standin.stop()
    with pytest.raises(GameNotFound, match="DARK SOULS III"):
        watch()
