"""The library that controls a clock, in a real process under Wine."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import soulsgym.game.clock as clock_module
from soulsgym.errors import GameGone, GameHung, SpeedControlError
from soulsgym.game.clock import SPEED_BIN, Clock, find_block, packed_command
from soulsgym.game.linux.inject import inject, windows_pid
from soulsgym.game.process import find_processes

pytestmark = [
    pytest.mark.wine,
    pytest.mark.usefixtures("no_lapse"),
    pytest.mark.skipif(sys.platform == "win32", reason="the probe is started by Wine on Linux"),
]

TICK = 10_000_000 / 60
LAPSE_S = clock_module.LAPSE_S
"""As controllers have it that are programs of their own; here it is longer (`no_lapse`)."""
CONTROLLER = """
import sys, time
from soulsgym.game.clock import Clock
from soulsgym.game.memory import ProcessMemory
from soulsgym.game.process import open_process
clock = Clock(ProcessMemory(open_process(int(sys.argv[1]))))
clock.pause()
time.sleep(1.0)
print(clock.lapses, flush=True)
time.sleep(60)
"""
UNITS = {"ticks": 60, "counter": 10_000_000, "tick": 1000, "tick64": 1000, "time": 1000}
TRIES = 60
"""What is measured is measured again if it is not as wanted: one may be held up for a moment."""


def assert_runs_at(probe: Any, speed: float, units: dict[str, float] = UNITS, rel: float = 0.1) -> None:
    """The probe's clocks run at a speed: 1 is real time."""
    wanted = pytest.approx(dict.fromkeys(units, speed), rel=rel, abs=0.03)
    for _ in range(TRIES):
        first, begin = probe.look(), time.perf_counter()
        time.sleep(0.5)
        last, passed = probe.look(), time.perf_counter() - begin
        rates = {name: (getattr(last, name) - getattr(first, name)) / unit / passed for name, unit in units.items()}
        if rates == wanted:
            break
    assert rates == wanted


def clocks(seen: Any) -> tuple[int, ...]:
    return seen.ticks, seen.counter, seen.tick, seen.tick64, seen.time


def settled(probe: Any) -> Any:
    """What the probe sees after its loop has begun again: no longer what it was about to do before a pause."""
    turns = probe.look().turns
    return probe.wait(lambda seen: seen.turns > turns + 2)


@pytest.fixture
def proxied(start_probe: Callable[..., Any], probe_exe: Path, speed_bin: Path, tmp_path: Path) -> Any:
    """A probe that has loaded the library itself, as dinput8.dll of its own folder."""
    shutil.copy(probe_exe, tmp_path / "probe.exe")
    shutil.copy(speed_bin / "souls_speed.dll", tmp_path / "dinput8.dll")
    return start_probe(executable=tmp_path / "probe.exe")


def test_all_clocks_run_at_the_speed_that_was_set(probe: Any) -> None:
    clock = probe.clock()
    assert clock.frequency == probe.look().frequency
    for speed in (0.5, 3.0, 10.0, 1.0):
        clock.set_speed(speed)
        assert_runs_at(probe, speed)


def test_paused_clock_stands_exactly_while_the_program_goes_on(probe: Any) -> None:
    clock = probe.clock()
    clock.pause()
    before = settled(probe)
    for turns in range(2, 42, 2):
        assert clocks(probe.wait(lambda seen, turns=turns: seen.turns > before.turns + turns)) == clocks(before)
        time.sleep(0.02)
    assert clock.now() == before.counter / clock.frequency
    assert clock.queries > 0


def test_300_advances_are_exactly_300_ticks(probe: Any) -> None:
    assert_exact_ticks(probe, probe.clock())


def test_proxy_is_found_and_gives_exact_ticks_and_direct_input_too(proxied: Any) -> None:
    clock = Clock(proxied.memory)
    proxied.clocks.append(clock)
    assert "souls_speed.dll" not in proxied.memory.process.modules()
    assert proxied.look().direct_input == 0
    assert_exact_ticks(proxied, clock)


def assert_exact_ticks(probe: Any, clock: Clock) -> None:
    clock.pause()
    first = settled(probe)
    for number in range(1, 301):
        clock.advance()
        probe.wait(lambda seen, wanted=first.ticks + number: seen.ticks >= wanted)
    time.sleep(0.05)
    last = probe.look()
    assert last.ticks - first.ticks == 300
    assert last.counter - first.counter == 300 * TICK
    assert abs(last.tick64 - first.tick64 - 5000) <= 1
    assert abs(last.time - first.time - 5000) <= 1


@pytest.mark.parametrize("speed", [0.5, 3.0, 100.0])
def test_a_run_ends_by_itself_after_exactly_its_time(probe: Any, speed: float) -> None:
    clock = probe.clock()
    clock.pause()
    settled(probe)
    before = probe.look()
    for number in range(1, 6):
        begin = time.perf_counter()
        clock.run(6, speed)
        while clock.speed != 0.0:
            assert time.perf_counter() - begin < 60.0
            time.sleep(0.02)  # nobody needs to be there when it ends
        assert time.perf_counter() - begin >= 0.1 / speed
        seen = settled(probe)
        # A tick may lie on the edge, since nothing was aligned; time itself is exact.
        assert abs(seen.ticks - before.ticks - 6 * number) <= 1
    assert clocks(settled(probe)) == clocks(seen)


def test_a_run_can_be_broken_off(probe: Any) -> None:
    clock = probe.clock()
    clock.pause()
    begin = clock.now()
    clock.run(3600, 1.0)
    time.sleep(0.2)
    clock.pause()
    assert 0.1 < clock.now() - begin < 50.0
    clock.advance(6)
    settled(probe)
    clock.resume()
    assert_runs_at(probe, 1.0)


def test_library_that_is_there_as_proxy_is_not_started_twice(proxied: Any, speed_bin: Path) -> None:
    address = find_block(proxied.memory)
    (found,) = (found for found in find_processes("probe.exe") if found.pid == proxied.pid)
    inject(found, proxied.memory, speed_bin / "inject.exe")
    assert "souls_speed.dll" in proxied.memory.process.modules()
    assert find_block(proxied.memory) == address
    clock = proxied.clock()
    clock.set_speed(3.0)
    assert_runs_at(proxied, 3.0)


def test_no_clock_runs_back_in_any_thread_while_speeds_change(start_probe: Callable[..., Any]) -> None:
    probe = start_probe(hammers=4)
    probe.wait(lambda seen: seen.hammered > 1000)
    clock = probe.clock()  # The hooks are set while all threads ask for the time.
    for speed in (0.0, 10.0, 0.5, 0.0, 3.0, 1.0):
        clock.set_speed(speed)
        time.sleep(0.05)
    for number in range(40):
        clock.pause()
        clock.run(1, 5.0)
        time.sleep(0.005 * (number % 3))  # it has ended by itself, or is broken off
    probe.put(token=clock._token)
    probe.put(control=clock._address)
    seen = probe.wait(lambda seen: seen.changes > 20_000 and seen.hammered > 100_000, 300.0)
    assert (seen.counter_back, seen.tick_back, seen.tick64_back, seen.time_back, seen.apart) == (0, 0, 0, 0, 0)


def test_sleeping_takes_as_long_as_the_game_thinks(probe: Any) -> None:
    clock = probe.clock()
    for speed, tolerance in ((1.0, 0.15), (4.0, 0.25)):
        clock.set_speed(speed)
        assert_runs_at(probe, speed, {"naps": 20}, rel=tolerance)
        assert_runs_at(probe, speed, {"naps_ex": 20}, rel=2 * tolerance)


def test_command_is_taken_also_when_the_game_asks_for_no_time(probe: Any) -> None:
    clock = probe.clock()
    probe.put(hang=1)
    assert_runs_at(probe, 0.0, {"turns": 1})
    queries, before = clock.queries, clock.now()
    clock.pause()
    clock.advance(600)
    assert clock.queries == queries
    assert clock.now() - before >= 10.0
    probe.put(hang=0)


def test_command_of_which_a_part_is_missing_is_not_taken(probe: Any) -> None:
    clock = probe.clock()
    clock.pause()
    command = clock._address + 80
    whole = packed_command(clock._token, clock._sequence + 1, 7.0, 0, 0)
    clock._sequence += 1
    probe.memory.write(command, whole[:-8])
    time.sleep(0.05)
    assert clock.speed == 0.0
    probe.memory.write(command, whole)
    probe.wait(lambda _: clock.speed == 7.0)


def test_killed_controller_leaves_the_game_at_its_own_speed_within_a_second(probe: Any) -> None:
    probe.clock().close()  # The library is there.
    for _ in range(TRIES):
        lapses, after_s = frozen_by_a_killed_controller(probe)
        if not lapses and after_s > 0.3:  # else it was held up, so that its last beat was long ago
            break
    assert lapses == 0
    assert after_s > 0.3
    assert LAPSE_S < 1.0  # the limit that the library keeps; to see that it is over may take longer
    assert_runs_at(probe, 1.0)
    clock = probe.clock()
    assert (clock.speed, clock.lapses) == (1.0, 0)


def frozen_by_a_killed_controller(probe: Any) -> tuple[int, float]:
    """How often its clock ran on while it lived, for longer than the limit; how long it stood after its end."""
    command = [sys.executable, "-c", CONTROLLER, str(probe.pid)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as controller:
        try:
            assert controller.stdout is not None
            lapses, ticks = int(controller.stdout.readline()), probe.look().ticks
        finally:
            controller.kill()
            killed = time.perf_counter()
    probe.wait(lambda seen: seen.ticks > ticks)
    return lapses, time.perf_counter() - killed


def test_stopped_controller_notices_that_the_game_ran_on(probe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_module, "LAPSE_S", 0.7)
    clock = probe.clock()
    clock.pause()
    monkeypatch.setattr(clock, "_beat", lambda: None)
    probe.wait(lambda _: clock.lapses == 1)
    assert clock.speed == 1.0
    with pytest.raises(SpeedControlError, match="ran on by itself"):
        clock.advance()
    monkeypatch.undo()
    clock.pause()
    clock.advance()
    assert clock.speed == 0.0


def test_only_one_controls_a_clock(probe: Any) -> None:
    first = probe.clock()
    first.set_speed(3.0)
    with pytest.raises(SpeedControlError, match="another program controls"):
        probe.clock()
    assert first.speed == 3.0
    first.close()
    second = probe.clock()
    second.set_speed(2.0)
    assert second.speed == 2.0


def test_two_programs_of_one_name_and_prefix_are_told_apart(start_probe: Callable[..., Any]) -> None:
    probes = start_probe(), start_probe()
    found = {found.pid: found for found in find_processes("probe.exe")}
    assert len({windows_pid(found[probe.pid], probe.memory) for probe in probes}) == 2
    fast, slow = (probe.clock() for probe in probes)
    fast.set_speed(3.0)
    slow.set_speed(0.5)
    assert_runs_at(probes[0], 3.0)
    assert_runs_at(probes[1], 0.5)
    slow.pause()
    assert (fast.speed, slow.speed) == (3.0, 0.0)


def test_library_is_loaded_from_a_folder_of_any_name(probe: Any, speed_bin: Path, tmp_path: Path) -> None:
    folder = tmp_path / "Spiele \u00e9\u4e16\u754c & co"
    shutil.copytree(speed_bin, folder)
    clock = probe.clock(folder=folder)
    clock.set_speed(2.0)
    assert clock.speed == 2.0


def test_file_that_is_no_library_is_named(probe: Any, speed_bin: Path, tmp_path: Path) -> None:
    shutil.copy(speed_bin / "inject.exe", tmp_path)
    (tmp_path / "souls_speed.dll").write_bytes(b"MZ")
    with pytest.raises(SpeedControlError, match=r"cannot be loaded into pid \d+: the program refused"):
        probe.clock(folder=tmp_path)


def test_program_that_stands_still_hangs_and_goes_on_later(probe: Any) -> None:
    clock = probe.clock()
    os.kill(probe.pid, signal.SIGSTOP)
    try:
        wait_until_stopped(probe.pid)
        with pytest.raises(GameHung, match="did not take speed 3"):
            clock.set_speed(3.0)
    finally:
        os.kill(probe.pid, signal.SIGCONT)
    clock.set_speed(2.0)
    assert clock.speed == 2.0
    assert clock.lapses == 0


def wait_until_stopped(pid: int) -> None:
    """The signal is only on its way when kill() returns: every thread stops when it next gets to run."""
    deadline = time.monotonic() + 60.0
    while any(
        stat.read_text().rpartition(")")[2].split()[0] != "T" for stat in Path(f"/proc/{pid}/task").glob("*/stat")
    ):
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_program_that_ended_is_gone(probe: Any) -> None:
    clock = probe.clock()
    probe.process.kill()
    probe.process.wait()
    with pytest.raises(GameGone):
        clock.pause()
    clock.close()


def test_program_that_is_not_under_wine_is_named(probe: Any) -> None:
    (found,) = (found for found in find_processes("probe.exe") if found.pid == probe.pid)
    other = type(found)(found.pid, "another.exe", found.environment)
    with pytest.raises(SpeedControlError, match="does not look like a program under Wine"):
        windows_pid(other, probe.memory)


def test_answer_comes_soon_and_hooks_cost_little(probe: Any, record_property: Callable[[str, object], None]) -> None:
    plain = measured_call_ns(probe)
    clock = probe.clock()
    hooked = measured_call_ns(probe)
    clock.pause()
    waits = []
    for _ in range(100):
        begin = time.perf_counter()
        clock.advance()
        waits.append(time.perf_counter() - begin)
    waits.sort()
    record_property("call_ns", (plain, hooked))
    record_property("answer_us", [round(1e6 * waits[at]) for at in (50, 90, 99)])
    assert waits[10] < 0.1  # the best of a hundred; how long it takes by itself is for benchmarks/game.py
    assert hooked < 50 * plain


def test_functions_that_cannot_be_hooked_safely_are_left_alone(wine: Any, tmp_path: Path) -> None:
    sources = [Path(__file__).parent / "refusals.c", SPEED_BIN.parent / "hook.c"]
    flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{SPEED_BIN.parent}"]
    target = tmp_path / "refusals.exe"
    subprocess.run(["x86_64-w64-mingw32-gcc", *flags, *sources, "-o", target, "-lntdll"], check=True)
    done = wine.prefix().run([str(target)])
    assert done.stdout.split() == [
        "plain=hooked", "jumps=hooked", "shared=refused", "outer=hooked", "inner=refused", "tiny=refused",
        "told=refused", "absent=left", "calls=3,3,9,7",
    ]  # fmt: skip


def measured_call_ns(probe: Any) -> float:
    """The best of some: the others tell what else the machine had to do."""
    best = float("inf")
    for _ in range(5):
        probe.put(measure=1)
        best = min(best, probe.wait(lambda seen: not seen.measure).call_ps / 1000)
    return best
