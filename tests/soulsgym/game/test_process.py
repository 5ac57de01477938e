"""Processes: memory of a real child on Linux, and the Windows backend over a Windows that is not there."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from soulsgym.errors import GameAccessDenied, GameError, GameGone, GameNotFound, ReadFailed
from soulsgym.game.linux import process as linux
from soulsgym.game.linux.process import IOV_MAX, LinuxProcess
from soulsgym.game.process import ProcessInfo, find_processes, is_called, open_process
from soulsgym.game.windows.api import ACCESS_DENIED, INVALID_PARAMETER, Kernel32
from soulsgym.game.windows.process import LARGEST_GAP, LARGEST_MERGED, WindowsProcess, grouped
from soulsgym.game.windows.process import find_processes as find_windows_processes

on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads a process of Linux")

CHILD = """
import ctypes, sys
buffer = (ctypes.c_ubyte * 65536)(*[n * 7 % 256 for n in range(65536)])
print(ctypes.addressof(buffer), flush=True)
for line in sys.stdin:
    if line == "show\\n":
        print(bytes(buffer[:16]).hex(), flush=True)
"""


@contextlib.contextmanager
def running_child():
    child = subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        child.address = int(child.stdout.readline())
        yield child
    finally:
        child.kill()
        child.communicate()


@pytest.fixture(scope="module")
def child():
    with running_child() as child:
        yield child


def expected(offset, size):
    return bytes(n * 7 % 256 for n in range(offset, offset + size))


# ---- both


@pytest.mark.parametrize(
    "path",
    [
        "DarkSoulsIII.exe",
        "Z:\\games\\DARK SOULS III\\Game\\DarkSoulsIII.exe",
        "/home/me/.steam/common/DARK SOULS III/Game/darksoulsiii.exe",
        "C:\\a/b\\DARKSOULSIII.EXE   ",
    ],
)
def test_a_path_is_called_by_its_last_part_whichever_way_it_is_written(path):
    assert is_called(path, "DarkSoulsIII.exe")


@pytest.mark.parametrize("path", ["", "notDarkSoulsIII.exe", "C:\\DarkSoulsIII.exe\\steam.exe", "DarkSoulsIII.ex"])
def test_other_paths_are_not(path):
    assert not is_called(path, "DarkSoulsIII.exe")


def test_other_systems_are_named(monkeypatch):
    monkeypatch.setattr(sys, "platform", "plan9")
    with pytest.raises(GameError, match="plan9"):
        open_process(1)
    with pytest.raises(GameError, match="plan9"):
        find_processes("game.exe")


# ---- Linux


@on_linux
def test_spans_come_in_the_order_they_were_asked_for(child):
    process = open_process(child.pid)
    spans = [(child.address + 500, 3), (child.address, 4), (child.address + 40000, 1), (child.address + 500, 3)]
    assert process.read_many(spans) == expected(500, 3) + expected(0, 4) + expected(40000, 1) + expected(500, 3)
    assert process.calls == 1


@on_linux
def test_a_prepared_read_sees_what_is_there_now(child):
    process = LinuxProcess(child.pid)
    read = process.prepare([(child.address + 100, 2), (child.address + 200, 2)])
    assert read() == expected(100, 2) + expected(200, 2)
    process.write(child.address + 100, b"\x01\x02")
    assert read() == b"\x01\x02" + expected(200, 2)
    process.write(child.address + 100, expected(100, 2))
    assert read() == expected(100, 2) + expected(200, 2)
    assert process.calls == 5


@on_linux
def test_the_program_itself_sees_what_was_written():
    with running_child() as child:
        LinuxProcess(child.pid).write(child.address + 1, b"\xaa\xbb")
        child.stdin.write("show\n")
        child.stdin.flush()
        assert bytes.fromhex(child.stdout.readline()) == b"\0\xaa\xbb" + expected(3, 13)


@on_linux
@pytest.mark.parametrize("count", [IOV_MAX - 1, IOV_MAX, IOV_MAX + 1, 3 * IOV_MAX + 5])
def test_more_spans_than_the_kernel_takes_at_once_are_one_batch(child, count):
    process = LinuxProcess(child.pid)
    spans = [(child.address + 3 * n, 2) for n in range(count)]
    assert process.read_many(spans) == b"".join(expected(3 * n, 2) for n in range(count))
    assert process.calls == 1
    assert process.reads == -(-count // IOV_MAX)


@on_linux
def test_no_span_is_no_bytes(child):
    assert LinuxProcess(child.pid).read_many([]) == b""


@on_linux
@pytest.mark.parametrize("place", [0, 1, 5, IOV_MAX, IOV_MAX + 3])
def test_the_span_that_cannot_be_read_is_named(child, place):
    process = LinuxProcess(child.pid)
    spans = [(child.address + n, 1) for n in range(place)] + [(0x1230, 4)] + [(child.address, 1)] * 2
    with pytest.raises(ReadFailed, match="0x1230: cannot be read") as caught:
        process.read_many(spans)
    assert caught.value.address == 0x1230
    assert process.read_many([(child.address, 2)]) == expected(0, 2), "a failure must not spoil the next read"


@on_linux
def test_an_address_that_no_program_has_is_a_failed_read(child):
    process = LinuxProcess(child.pid)
    for address in (0, 0x8000_0000_0000, 0xFFFF_FFFF_FFFF_FFF0):
        with pytest.raises(ReadFailed):
            process.read_many([(address, 8)])


@on_linux
def test_a_place_that_cannot_be_written_is_named(child):
    process = LinuxProcess(child.pid)
    with pytest.raises(ReadFailed, match="0x1230: cannot be written"):
        process.write(0x1230, b"1")
    code = next(base for name, base in process.modules().items() if name.startswith("python"))
    with pytest.raises(ReadFailed, match="cannot be written"):
        process.write(code, b"MZ")


@on_linux
def test_a_process_that_ended_is_gone_even_before_its_parent_looks():
    with running_child() as child:
        process = LinuxProcess(child.pid)
        read = process.prepare([(child.address, 4)])
        read()
        os.kill(child.pid, signal.SIGKILL)
        deadline = time.monotonic() + 60
        while process.is_running() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not process.is_running()
        assert os.path.exists(f"/proc/{child.pid}"), "it is a zombie now"
        for action in (read, lambda: process.write(child.address, b"1"), process.modules):
            with pytest.raises(GameGone, match=str(child.pid)):
                action()
        with pytest.raises(GameNotFound):
            LinuxProcess(child.pid)


@on_linux
def test_a_pid_that_was_given_to_another_program_is_not_it(child, monkeypatch):
    process = LinuxProcess(child.pid)
    assert process.is_running()
    monkeypatch.setattr(linux, "_start_time", lambda pid: process._started + 1)
    assert not process.is_running()


@on_linux
def test_a_pid_that_nothing_has_is_not_found():
    with pytest.raises(GameNotFound, match="4194305"):
        open_process(4194305)


@on_linux
def test_a_system_that_forbids_it_says_how_to_allow_it(child, monkeypatch):
    process = LinuxProcess(child.pid)

    def refused(*arguments):
        ctypes.set_errno(1)
        return -1

    libc = type("Refusing", (), {"process_vm_readv": staticmethod(refused), "process_vm_writev": staticmethod(refused)})
    monkeypatch.setattr(linux, "_libc", lambda: libc)
    with pytest.raises(GameAccessDenied, match=r"kernel\.yama\.ptrace_scope=0"):
        process.read_many([(child.address, 1)])
    with pytest.raises(GameAccessDenied, match=r"kernel\.yama\.ptrace_scope=0"):
        process.write(child.address, b"1")


@on_linux
def test_two_threads_with_their_own_reads_do_not_disturb_each_other(child):
    process, wrong = LinuxProcess(child.pid), []

    def hammer(offset):
        read = process.prepare([(child.address + offset, 64)])
        for _ in range(500):
            if read() != expected(offset, 64):
                wrong.append(offset)

    threads = [threading.Thread(target=hammer, args=(offset,)) for offset in (0, 1000, 2000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@on_linux
def test_modules_are_the_files_that_are_mapped(child):
    modules = LinuxProcess(child.pid).modules()
    libc = next(name for name in modules if name.startswith(("libc.so", "libc-")))
    assert LinuxProcess(child.pid).read_many([(modules[libc], 4)]) == b"\x7fELF"


MAPS = """\
140000000-140001000 r--p 00000000 08:01 11 /games/DARK SOULS III/Game/DarkSoulsIII.exe
140001000-140002000 r-xp 00000400 08:01 11 /games/DARK SOULS III/Game/DarkSoulsIII.exe
140400000-140800000 rw-p 00000000 00:00 0
150000000-150001000 r--p 00000000 08:01 12 /prefix/drive_c/windows/system32/dinput8.dll
160000000-160001000 r--p 00000000 08:01 13 /games/DARK SOULS III/Game/dinput8.dll
170000000-170001000 r--p 00002000 08:01 14 /usr/lib/x86_64-linux-gnu/wine/x86_64-windows/winmm.dll
16f000000-16f001000 r--p 00000000 08:01 14 /usr/lib/x86_64-linux-gnu/wine/x86_64-windows/winmm.dll
180000000-180001000 r--p 00000000 08:01 15 /tmp/old.dll (deleted)
190000000-190001000 rw-p 00000000 00:00 0 [heap]
"""


@on_linux
def test_a_module_begins_where_its_file_begins_and_the_games_own_counts(child, monkeypatch):
    process = LinuxProcess(child.pid)
    monkeypatch.setattr(process, "_maps", lambda: MAPS)
    assert process.modules() == {
        "darksoulsiii.exe": 0x140000000,
        "dinput8.dll": 0x160000000,
        "winmm.dll": 0x16F000000,
        "old.dll": 0x180000000,
    }


def fake_proc(folder, pid, *, argv, state="S", environ=b"DISPLAY=:1\0WINEPREFIX=/p x\0broken\0", name="x"):
    entry = folder / str(pid)
    entry.mkdir()
    (entry / "cmdline").write_bytes(argv)
    (entry / "environ").write_bytes(environ)
    (entry / "stat").write_text(f"{pid} ({name}) {state} " + " ".join(str(n) for n in range(4, 53)))


@pytest.fixture
def proc(tmp_path, monkeypatch):
    (tmp_path / "sys").mkdir()
    monkeypatch.setattr(linux, "PROC", tmp_path)
    return tmp_path


def test_games_are_found_by_their_first_argument(proc):
    fake_proc(proc, 300, argv=b"Z:\\games\\DarkSoulsIII.exe\0-windowed\0")
    fake_proc(proc, 20, argv=b"/games/DARK SOULS III/DarkSoulsIII.exe        \0")
    fake_proc(proc, 31, argv=b"python3\0proton\0waitforexitandrun\0/games/DarkSoulsIII.exe\0")
    fake_proc(proc, 32, argv=b"C:\\windows\\system32\\services.exe\0")
    fake_proc(proc, 33, argv=b"")
    assert linux.find_processes("DarkSoulsIII.exe") == [
        ProcessInfo(20, "/games/DARK SOULS III/DarkSoulsIII.exe", {"DISPLAY": ":1", "WINEPREFIX": "/p x"}),
        ProcessInfo(300, "Z:\\games\\DarkSoulsIII.exe", {"DISPLAY": ":1", "WINEPREFIX": "/p x"}),
    ]


def test_zombies_are_no_games_whatever_they_are_called(proc):
    fake_proc(proc, 1, argv=b"DarkSoulsIII.exe\0", state="Z")
    fake_proc(proc, 2, argv=b"DarkSoulsIII.exe\0", name=") S 1 (")
    assert [found.pid for found in linux.find_processes("DarkSoulsIII.exe")] == [2]


def test_a_process_whose_environment_is_secret_is_still_found(proc):
    fake_proc(proc, 1, argv=b"game.exe\0")
    (proc / "1" / "environ").unlink()
    assert linux.find_processes("GAME.exe") == [ProcessInfo(1, "game.exe", {})]


def test_a_process_that_ends_during_the_search_is_left_out(proc):
    (proc / "7").mkdir()
    fake_proc(proc, 8, argv=b"game.exe\0")
    (proc / "8" / "stat").unlink()
    assert linux.find_processes("game.exe") == []


@on_linux
def test_a_real_child_is_found_by_its_own_name():
    environment = {**os.environ, "WINEPREFIX": "/tmp/souls prefix"}
    command = ["Z:\\games\\SoulsTestGame.exe", "-c", "import sys; print(1, flush=True); sys.stdin.read()"]
    game = subprocess.Popen(command, executable=sys.executable, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            env=environment)  # fmt: skip
    try:
        game.stdout.readline()
        found = [one for one in find_processes("soulstestgame.exe") if one.pid == game.pid]
        assert [one.executable_path for one in found] == ["Z:\\games\\SoulsTestGame.exe"]
        assert found[0].environment["WINEPREFIX"] == "/tmp/souls prefix"
    finally:
        game.kill()
        game.communicate()


# ---- Windows


class FakeWindows:
    """Memory by ranges, and a list of what was asked."""

    def __init__(self):
        self.memory = {}
        self.asked = []
        self.running = True
        self.ending = False
        self.open_error = self.read_error = self.module_error = 0
        self.handles = set()
        self.refused = set()
        self.module_list = [("DarkSoulsIII.exe", 0x140000000), ("dinput8.dll", 5), ("DINPUT8.dll", 9)]
        self.process_list = [(12, "steam.exe"), (9, "DarkSoulsIII.exe"), (4, "darksoulsiii.EXE")]

    def open(self, pid, rights):
        if self.open_error:
            return 0, self.open_error
        self.handles.add(pid + 1000)
        return pid + 1000, 0

    def read(self, handle, address, buffer, size):
        assert handle in self.handles
        self.asked.append((address, size))
        if self.read_error or address in self.refused:
            return self.read_error or ACCESS_DENIED
        if any(at not in self.memory for at in range(address, address + size)):
            return 299
        ctypes.memmove(buffer, bytes(self.memory[at] for at in range(address, address + size)), size)
        return 0

    def write(self, handle, address, data):
        if address in self.refused:
            return ACCESS_DENIED
        if any(at not in self.memory for at in range(address, address + len(data))):
            return 998
        self.memory.update({address + n: byte for n, byte in enumerate(data)})
        return 0

    def is_running(self, handle, wait_ms=0):
        self.running = self.running and not (self.ending and wait_ms)
        return self.running

    def path(self, handle):
        return f"C:\\games\\{handle}.exe"

    def processes(self):
        return iter(self.process_list)

    def modules(self, pid):
        return ([], self.module_error) if self.module_error else (self.module_list, 0)

    def close(self, handle):
        self.handles.remove(handle)


@pytest.fixture
def windows():
    api = FakeWindows()
    api.memory = {0x1000 + n: n * 7 % 256 for n in range(8192)}
    return api


def test_spans_that_lie_together_are_read_by_one_call(windows):
    process = WindowsProcess(4, windows)
    spans = [(0x1100, 4), (0x1000, 2), (0x1080, 8), (0x2000, 4)]
    wanted = expected(0x100, 4) + expected(0, 2) + expected(0x80, 8) + expected(0x1000, 4)
    assert process.read_many(spans) == wanted
    assert windows.asked == [(0x1000, 0x104), (0x2000, 4)]
    assert (process.calls, process.reads) == (1, 2)


def test_a_gap_is_read_up_to_its_limit():
    assert len(grouped([(0, 4), (4 + LARGEST_GAP, 4)])) == 1
    assert len(grouped([(0, 4), (5 + LARGEST_GAP, 4)])) == 2


def test_a_group_does_not_grow_for_ever():
    groups = grouped([(n * 100, 4) for n in range(100)])
    assert all(group.size <= LARGEST_MERGED for group in groups)
    assert len(groups) == 3


def test_spans_within_each_other_and_twice_come_out_right(windows):
    spans = [(0x1000, 100), (0x1010, 4), (0x1000, 100), (0x1010, 4), (0x1064, 4)]
    wanted = expected(0, 100) + expected(16, 4) + expected(0, 100) + expected(16, 4) + expected(100, 4)
    assert WindowsProcess(4, windows).read_many(spans) == wanted


def test_a_span_that_is_wanted_first_and_last_is_read_first_and_last(windows):
    WindowsProcess(4, windows).read_many([(0x1800, 4), (0x1000, 8), (0x1804, 4), (0x1010, 4), (0x1800, 4)])
    assert windows.asked == [(0x1800, 4), (0x1000, 0x14), (0x1804, 4), (0x1800, 4)]


def test_a_hole_between_two_spans_does_not_make_them_unreadable(windows):
    del windows.memory[0x1050]
    process = WindowsProcess(4, windows)
    assert process.read_many([(0x1040, 4), (0x1060, 4)]) == expected(0x40, 4) + expected(0x60, 4)
    assert process.calls == 1


def test_the_span_on_windows_that_cannot_be_read_is_named(windows):
    del windows.memory[0x1060]
    with pytest.raises(ReadFailed, match=r"0x1060: cannot be read \(Windows error 299\)"):
        WindowsProcess(4, windows).read_many([(0x1040, 4), (0x1060, 4)])
    with pytest.raises(ReadFailed, match=r"0x5000: cannot be read"):
        WindowsProcess(4, windows).read_many([(0x5000, 4)])


def test_a_prepared_read_on_windows_sees_what_is_there_now(windows):
    process = WindowsProcess(4, windows)
    read = process.prepare([(0x1000, 2), (0x1004, 1)])
    process.write(0x1000, b"\xaa\xbb")
    assert read() == b"\xaa\xbb" + expected(4, 1)
    process.write(0x1004, b"\xcc")
    assert read() == b"\xaa\xbb\xcc"


def test_a_write_on_windows_that_fails_is_named(windows):
    with pytest.raises(ReadFailed, match="0x90: cannot be written"):
        WindowsProcess(4, windows).write(0x90, b"1")


def test_a_game_on_windows_that_ended_is_gone(windows):
    process = WindowsProcess(4, windows)
    windows.running, windows.read_error, windows.module_error = False, 299, 299
    with pytest.raises(GameGone):
        process.read_many([(0x1000, 1)])
    with pytest.raises(GameGone):
        process.modules()


def test_a_game_that_runs_as_administrator_says_what_to_do(windows):
    process = WindowsProcess(4, windows)
    windows.read_error = windows.module_error = ACCESS_DENIED
    with pytest.raises(GameAccessDenied, match="as administrator"):
        process.read_many([(0x1000, 1)])
    with pytest.raises(GameAccessDenied, match="as administrator"):
        process.modules()
    windows.open_error = ACCESS_DENIED
    with pytest.raises(GameAccessDenied, match="as administrator"):
        WindowsProcess(4, windows)


def test_a_game_that_is_about_to_end_is_gone_not_closed_to_us(windows):
    process = WindowsProcess(4, windows)
    windows.read_error = windows.module_error = ACCESS_DENIED
    windows.ending = True
    with pytest.raises(GameGone, match="has ended"):
        process.read_many([(0x1000, 1)])
    windows.running = True
    with pytest.raises(GameGone, match="has ended"):
        process.modules()


def test_one_place_that_windows_refuses_does_not_mean_that_all_are(windows):
    windows.module_list = [("game.exe", 0x1000)]
    windows.refused = {0x90}
    process = WindowsProcess(4, windows)
    with pytest.raises(ReadFailed, match="0x90: cannot be written"):
        process.write(0x90, b"1")
    with pytest.raises(ReadFailed, match="0x90: cannot be read"):
        process.read_many([(0x90, 4)])


def test_a_pid_that_windows_does_not_know_is_not_found(windows):
    windows.open_error = INVALID_PARAMETER
    with pytest.raises(GameNotFound, match="pid 4"):
        WindowsProcess(4, windows)


def test_a_process_that_has_ended_but_can_be_opened_is_not_found_and_no_handle_is_left(windows):
    windows.running = False
    with pytest.raises(GameNotFound):
        WindowsProcess(4, windows)
    assert windows.handles == set()


def test_handles_are_given_back_once(windows):
    process = WindowsProcess(4, windows)
    process.close()
    process.close()
    assert windows.handles == set()
    assert not process.is_running()


def test_modules_of_windows_are_in_lower_case_and_the_first_counts(windows):
    assert WindowsProcess(4, windows).modules() == {"darksoulsiii.exe": 0x140000000, "dinput8.dll": 5}


def test_games_on_windows_are_found_by_pid(windows):
    assert find_windows_processes("DarkSoulsIII.exe", windows) == [
        ProcessInfo(4, "C:\\games\\1004.exe"),
        ProcessInfo(9, "C:\\games\\1009.exe"),
    ]
    assert windows.handles == set()


def test_a_game_whose_path_is_secret_is_still_found(windows):
    windows.open_error = ACCESS_DENIED
    assert [found.executable_path for found in find_windows_processes("steam.exe", windows)] == ["steam.exe"]


@on_linux
def test_the_real_windows_is_only_on_windows():
    with pytest.raises(GameError, match="needs Windows"):
        Kernel32()
