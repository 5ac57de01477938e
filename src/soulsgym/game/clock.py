"""Clock: the speed at which a game's time passes, controlled through souls_speed.dll in the game's own process."""

from __future__ import annotations

import atexit
import contextlib
import logging
import math
import os
import secrets
import struct
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from soulsgym.errors import GameError, GameGone, GameHung, GameNotFound, MisuseError, ReadFailed, SpeedControlError
from soulsgym.game.memory import ProcessMemory
from soulsgym.game.process import ProcessInfo

log = logging.getLogger(__name__)

SPEED_BIN = Path(__file__).parent / "speed" / "bin"
LIBRARY, INJECTOR, PROXY = "souls_speed.dll", "inject.exe", "dinput8.dll"
SYMBOL = "souls_control"
TICKS_PER_S = 60
MAX_SPEED = 1000.0
BEAT_EVERY_S = 0.1
LAPSE_S = 0.7
"""Without a beat for this long, the library returns the game to speed 1."""
CLAIM_LIMIT_S = 2.0
"""Longer than a controller that was killed keeps the clock, and so long that two who wait for it both can be told."""
LONGEST_CLAIM_S = 20.0
"""For a clock that nobody has, in a game that hardly gets to run."""
BEATS_OF_A_RIVAL = 5
LOAD_LIMIT_S = 10.0
LOOPS_S, LOOP_PER_S, SILENT_S = 0.25, 25.0, 1.0
"""Threads are watched for so long, and one that asks so often a second may be the game's loop."""
LOOP_LOOKS, SELDOM = 4, 0.25
"""One that asks less often, but not seldom, is watched again so often: the machine may be busy."""
SPIN_S, SHORT_S, SHORT_SLEEP_S, SLEEP_S = 0.0002, 0.01, 0.00002, 0.001
"""An answer is waited for without a pause at first, then with short ones, then with longer ones."""

MAGIC, VERSION = b"SOULSPD1", 2
FUNCTIONS = ("QueryPerformanceCounter", "GetTickCount", "GetTickCount64", "timeGetTime", "Sleep", "SleepEx")
LET_GO, RUN, RUN_SHIFT = 1, 2, 8
BLOCK_SIZE, THREADS = 512, 15
_HEADER = struct.Struct("<8sIIqIII")
_LIMIT_AT, _CLAIM_AT, _BEAT_AT, _COMMAND_AT, _STATUS_AT, _TURNS_AT, _THREADS_AT = 32, 64, 72, 80, 128, 184, 256
_STATUS = struct.Struct("<QQdqqqQQQ6Q")
_THREADS = struct.Struct(f"<{2 * (THREADS + 1)}Q")
_WORD = struct.Struct("<Q")
_HALF = struct.Struct("<I")
_MIXED = struct.Struct("<5Q")
_UNCHECKED = struct.Struct("<QQdqQ")
_MASK = (1 << 64) - 1
_FACTOR = 0x9E3779B97F4A7C15
_I386 = 0x14C


class _Header(NamedTuple):
    """What the library says about itself once."""

    magic: bytes
    version: int
    size: int
    frequency: int
    installed: int
    failed: int
    limit_ms: int


class _Status(NamedTuple):
    """What the library says about the clock now."""

    owner: int
    acknowledged: int
    speed: float
    advanced: int
    virtual: int
    real: int
    lapses: int
    turns: int
    refused: int
    queries: int


def packed_command(token: int, sequence: int, speed: float, advance: int, flags: int) -> bytes:
    """A command with the check by which the library sees that all of it has arrived."""
    plain = _UNCHECKED.pack(token, sequence, speed, advance, flags)
    check = 0
    for value in _MIXED.unpack(plain):
        check = ((check ^ value) * _FACTOR + 1) & _MASK
    return plain + _WORD.pack(check)


class Clock:
    """The clock of one game, of which this is the only controller until it is closed.

    A thread tells the library all the time that this program lives; when it does not, the library returns the game to
    speed 1 by itself and counts a lapse.
    """

    def __init__(self, memory: ProcessMemory, *, limit_s: float = 3.0) -> None:
        address = find_block(memory)
        if address is None:
            raise SpeedControlError(
                f"the game (pid {memory.process.pid}) has not loaded {LIBRARY}; "
                "inject it, or put it into the game's folder as dinput8.dll and start the game again"
            )
        self._process, self._address, self._limit_s = memory.process, address, limit_s
        header = self._checked_header(memory)
        self.frequency = header.frequency
        self.unhooked = tuple(
            name for bit, name in enumerate(FUNCTIONS) if not header.installed & ~header.failed & 1 << bit
        )
        """Functions of the system that the library could not take over; none of the clocks is among them."""
        self._lapse_s = LAPSE_S
        self._read_status = self._process.prepare(((address + _STATUS_AT, _STATUS.size),))
        self._read_threads = self._process.prepare(((address + _THREADS_AT, _THREADS.size),))
        self._loops: tuple[int, ...] = ()
        self._heard: dict[int, tuple[int, float]] = {}
        self._read_owner = self._process.prepare(((address + _STATUS_AT, _WORD.size),))
        self._token = secrets.randbits(63) | 1
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._closed, self._owner_pid = False, os.getpid()
        self._failure: Exception | None = None
        self._beats = secrets.randbits(32)
        self._sequence = self._base = self._lapses_before = 0
        self.trickle_after_s = math.inf
        """A clock that nobody has touched for so long while it stands moves on by a tick, again and again."""
        self.trickled = 0
        """Ticks that passed so; see `touch`."""
        self._touched = time.monotonic()
        self._ticks: Fraction | int = 0
        self._run_ticks: Fraction | int = 0
        self._claim()
        self._lapses_before = self._status().lapses
        self._thread = threading.Thread(target=self._keep_beating, name=f"clock of {self._process.pid}", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    @property
    def speed(self) -> float:
        """How many seconds of the game pass in a real second now."""
        return self._status().speed

    @property
    def lapses(self) -> int:
        """How often the game returned to speed 1 by itself because nothing was heard of this program."""
        return self._status().lapses - self._lapses_before

    @property
    def was_abandoned(self) -> bool:
        """Did a controller before this one die without letting go?"""
        return self._lapses_before > 0

    @property
    def queries(self) -> int:
        """How often the game has asked QueryPerformanceCounter since the library was loaded.

        Once `find_loops` has seen which threads ask all the time, it is the count of the one that asked least: then its
        loop has asked, whichever of them that is.
        """
        if not self._loops:
            return self._status().queries
        asked, now = self.questions(), time.monotonic()
        for row in self._loops:
            if self._heard.get(row, (-1, 0.0))[0] != asked[row][1]:
                self._heard[row] = asked[row][1], now
        alive = tuple(row for row in self._loops if now - self._heard[row][1] < SILENT_S)
        self._loops = alive or self._loops  # a thread may have ended, but not all of them
        return min(asked[row][1] for row in self._loops)

    def questions(self) -> list[tuple[int, int]]:
        """Number and questions of every thread that has asked for the time; the last row is of all further ones."""
        with self._lock:
            words = _THREADS.unpack(self._read_threads())
        return [(words[at], words[at + 1]) for at in range(0, len(words), 2)]

    def find_loops(self, seconds: float = LOOPS_S) -> int:
        """See which threads ask for the time all the time now, and count by them from now on; how many are there?

        A thread of sound or loading that asks as well must not make a tick look over that the game's loop still makes.
        """
        self._loops, self._heard = (), {}
        before, least = self.questions(), LOOP_PER_S * seconds
        for _ in range(LOOP_LOOKS):
            time.sleep(seconds)
            asked = [new[1] - old[1] for old, new in zip(before, self.questions(), strict=True)][:THREADS]
            if not any(SELDOM * least < count < least for count in asked):
                break  # else a thread may be a loop that hardly gets to run: watch on
        self._loops = tuple(row for row, count in enumerate(asked) if count >= least)
        return len(self._loops)

    def touch(self) -> int:
        """How many ticks have passed in long pauses; from now on none passes until the next long one."""
        with self._lock:
            self._touched = time.monotonic()
            return self.trickled

    def now(self) -> float:
        """The game's own time in seconds: exact while paused, else as of at most some milliseconds ago."""
        return self._status().virtual / self.frequency

    def set_speed(self, factor: float) -> None:
        """Let the game's time pass `factor` times as fast as real time, from when this returns."""
        if not 0.0 <= factor <= MAX_SPEED:
            raise MisuseError(f"speed {factor} is not possible; give 0 to {MAX_SPEED:g}")
        with self._lock:
            self._check_open()
            if self._status().owner != self._token:
                self._claim()
            self._send(factor)

    def pause(self) -> None:
        """Let the game's time stand still."""
        self.set_speed(0.0)

    def resume(self) -> None:
        """Let the game run at its own speed."""
        self.set_speed(1.0)

    def advance(self, seconds_times_60: Fraction | int = 1) -> None:
        """Move the time of a paused game on by exactly so many 60ths of a second.

        Only whole units of the game's counter can be given, so each sum of advances is rounded up to one: the next
        begins from the exact sum. One that ends in GameHung is part of the sum and may still be applied.
        """
        if seconds_times_60 < 0:
            raise MisuseError(f"advance by {seconds_times_60} is not possible: time does not run back; give 0 or more")
        with self._lock:
            self._check_paused("advance()")
            self._ticks += seconds_times_60
            self._send(0.0)

    def run(self, seconds_times_60: Fraction | int, factor: float) -> None:
        """Let the time of a paused game pass at a speed for exactly so many 60ths of a second.

        Then it stands by itself, however late this program is. This returns at once: `speed` is 0 when it stands.
        """
        if seconds_times_60 <= 0 or not 0.0 < factor <= MAX_SPEED:
            raise MisuseError(f"{seconds_times_60} ticks at speed {factor} are not possible; give numbers above 0")
        with self._lock:
            self._check_paused("run()")
            before = self._units(self._run_ticks)
            self._run_ticks += seconds_times_60
            self._send(factor, RUN | (self._units(self._run_ticks) - before) << RUN_SHIFT)

    def close(self) -> None:
        """Return the game to its own speed and let go of it. Safe to call again, also when the game is gone."""
        if os.getpid() != self._owner_pid:
            return  # A fork that ends: the clock is its parent's.
        with self._lock:
            if self._closed:
                return
            self._closed = True
        atexit.unregister(self.close)
        self._stop.set()
        self._thread.join(self._limit_s)
        # What fails here is made good by the library itself, which hears nothing of us from now on.
        with self._lock, contextlib.suppress(GameError):
            if self._status().owner == self._token:
                self._send(1.0, LET_GO)

    def _checked_header(self, memory: ProcessMemory) -> _Header:
        header = _Header(*_HEADER.unpack(memory.read(self._address, _HEADER.size)))
        if (header.version, header.size) != (VERSION, BLOCK_SIZE):
            raise SpeedControlError(
                f"the game (pid {self._process.pid}) has loaded version {header.version} of {LIBRARY} and version "
                f"{VERSION} is needed; build it again with `make speed` and start the game again"
            )
        # Without Sleep a game only polls more slowly; without one of the clocks its time would come apart.
        missing = [name for bit, name in enumerate(FUNCTIONS[:4]) if not header.installed & ~header.failed & 1 << bit]
        if missing:
            raise SpeedControlError(
                f"{LIBRARY} cannot control {', '.join(missing)} in the game (pid {self._process.pid}); "
                "another program has changed them (an overlay, a cheat tool): start the game without it"
            )
        return header

    def _status(self) -> _Status:
        with self._lock:
            return _Status(*_STATUS.unpack(self._read_status())[:10])

    def _check_open(self) -> None:
        if self._closed:
            raise MisuseError("the clock is closed; attach to the game again")
        if self._failure is not None:
            raise SpeedControlError(
                f"the clock of the game (pid {self._process.pid}) is no longer kept: {self._failure}; attach again"
            ) from self._failure

    def _check_paused(self, what: str) -> None:
        self._check_open()
        status = self._status()
        if status.owner != self._token:
            raise self._lapsed()
        if status.speed != 0.0:
            raise MisuseError(f"the clock runs at speed {status.speed:g}; pause() it before {what}")

    def _units(self, ticks: Fraction | int) -> int:
        """Units of the game's counter in so many ticks, rounded up."""
        return math.ceil(ticks * Fraction(self.frequency, TICKS_PER_S))

    def _lapsed(self) -> SpeedControlError:
        return SpeedControlError(
            f"the clock of the game (pid {self._process.pid}) ran on by itself, as nothing was heard of this program "
            f"for {self._lapse_s:g} s; pause() it again"
        )

    def _claim(self) -> None:
        """Become the owner. The library decides: of several who ask at a time one gets the clock."""
        begin, first, first_beat = time.monotonic(), self._status(), self._word(_BEAT_AT)
        status, waited_s = first, 0.0
        while status.owner != self._token:
            hangs = status.turns == first.turns
            # Few beats: who had it is gone, or it was ours and has lapsed while this program was held up.
            rival = status.owner != 0 and (self._word(_BEAT_AT) - first_beat) & _MASK >= BEATS_OF_A_RIVAL
            if waited_s > (CLAIM_LIMIT_S if hangs or rival else LONGEST_CLAIM_S):
                raise self._refused(waited_s, rival=rival)
            waited_s = time.monotonic() - begin  # and looked at once more: we may have been held up
            if self._word(_CLAIM_AT) == 0:
                self._process.write(self._address + _CLAIM_AT, _WORD.pack(self._token))
            time.sleep(SLEEP_S)
            status = self._status()
        # Perhaps asked for again in the moment of its granting: else it would be granted once more when it is let go.
        self._withdraw()
        self._process.write(self._address + _LIMIT_AT, _HALF.pack(round(1000 * self._lapse_s)))
        self._base, self._ticks = status.advanced, 0
        (pending,) = _WORD.unpack_from(self._process.read_many(((self._address + _COMMAND_AT + 8, 8),)))
        self._sequence = max(status.acknowledged, pending)

    def _refused(self, waited_s: float, *, rival: bool) -> GameError:
        self._withdraw()
        pid = self._process.pid
        if rival:
            return SpeedControlError(f"another program controls the clock of the game (pid {pid}); close it first")
        return GameHung(f"the game (pid {pid}) has not moved for {waited_s:.0f} s; end it and start it again")

    def _withdraw(self) -> None:
        if self._word(_CLAIM_AT) == self._token:
            self._process.write(self._address + _CLAIM_AT, _WORD.pack(0))

    def _word(self, offset: int) -> int:
        return int.from_bytes(self._process.read_many(((self._address + offset, _WORD.size),)), "little")

    def _send(self, speed: float, flags: int = 0) -> None:
        # The owner's token was just read in the block: the pid is not that of another program by now.
        self._sequence += 1
        self._touched = time.monotonic()
        total = self._base + self._units(self._ticks)
        command = packed_command(self._token, self._sequence, speed, total, flags)
        self._process.write(self._address + _COMMAND_AT, command)
        begin = time.perf_counter()
        while (status := self._status()).acknowledged != self._sequence:
            waited = time.perf_counter() - begin
            if status.refused == self._sequence:
                raise SpeedControlError(f"{LIBRARY} refused speed {speed} and time {total}; attach to the game again")
            if status.owner != self._token:
                raise self._lapsed()
            if waited > self._limit_s:
                raise GameHung(
                    f"the game (pid {self._process.pid}) did not take speed {speed:g} within {self._limit_s:g} s: "
                    "it hangs; end it and start it again"
                )
            _pause(waited)

    def _keep_beating(self) -> None:
        while not self._stop.wait(BEAT_EVERY_S):
            try:
                self._beat()
                self._trickle()
            except (GameGone, ReadFailed):
                return  # Every other call says so too.
            except Exception as error:
                self._failure = error
                log.error("the clock of pid %d is no longer kept: %s", self._process.pid, error)
                return

    def _beat(self) -> None:
        # The token proves that this is still the game: its pid may be another program's by now.
        if int.from_bytes(self._read_owner(), "little") != self._token:
            return
        self._beats += 1
        self._process.write(self._address + _BEAT_AT, _WORD.pack(self._beats & _MASK))

    def _trickle(self) -> None:
        """Let a tick pass in a long pause: a game whose time stands may not answer its window's messages.

        Windows calls a window that is silent for 5 s "not responding" and takes the focus away from it.
        """
        if time.monotonic() - self._touched < self.trickle_after_s:
            return
        with self._lock:
            status = self._status()
            if self._closed or status.owner != self._token or status.speed != 0.0:
                return
            if time.monotonic() - self._touched < self.trickle_after_s:
                return  # somebody was faster
            self._ticks += 1
            self.trickled += 1
            # Not waited for: the next beat must not be late. The next command finds it done, or does it too.
            self._sequence += 1
            self._touched = time.monotonic()
            command = packed_command(self._token, self._sequence, 0.0, self._base + self._units(self._ticks), 0)
            self._process.write(self._address + _COMMAND_AT, command)


def _pause(waited_s: float) -> None:
    """Between two looks for an answer. The game may need this core to give it."""
    if waited_s > SHORT_S:
        time.sleep(SLEEP_S)
    elif waited_s > SPIN_S or sys.platform == "win32":
        time.sleep(SHORT_SLEEP_S)
    else:
        os.sched_yield()


def find_block(memory: ProcessMemory) -> int | None:
    """Address of the control block in the game; None as long as no library there has one that is ready."""
    modules = memory.process.modules()
    for name in (LIBRARY, PROXY):
        if name not in modules:
            continue
        try:
            address = memory.module(name).exports.get(SYMBOL)
            if address is not None and memory.read(address, len(MAGIC)) == MAGIC:
                return address
        except (GameNotFound, ReadFailed):  # It is just being loaded.
            continue
    return None


def load_speed_control(found: ProcessInfo, memory: ProcessMemory, *, folder: Path = SPEED_BIN) -> Clock:
    """The clock of a game, into which the library is loaded if it is not there yet."""
    if find_block(memory) is None:
        _check_64_bit(found, memory)
        _inject(found, memory, folder)
        _wait_for_block(memory)
    return Clock(memory)


def _check_64_bit(found: ProcessInfo, memory: ProcessMemory) -> None:
    name = found.executable_path.replace("\\", "/").rpartition("/")[2].lower()
    base = memory.process.modules().get(name)
    if base is None:
        return
    head = memory.read(base, 0x400)
    (start,) = struct.unpack_from("<I", head, 0x3C)
    if start + 6 <= len(head) and struct.unpack_from("<H", head, start + 4)[0] == _I386:
        raise SpeedControlError(
            f"{name} (pid {found.pid}) is a 32-bit program and only 64-bit games are supported; start the 64-bit one"
        )


def _inject(found: ProcessInfo, memory: ProcessMemory, folder: Path) -> None:
    linux = sys.platform.startswith("linux")
    for file in (folder / LIBRARY, *((folder / INJECTOR,) if linux else ())):
        if not file.is_file():
            raise SpeedControlError(
                f"{file} is not there; install the wheel of a release, which has it, or build it with `make speed` in "
                "the repository and install from there"
            )
    if linux:
        from soulsgym.game.linux.inject import inject as inject_by_wine

        inject_by_wine(found, memory, folder / INJECTOR)
    else:
        from soulsgym.game.windows.inject import inject

        inject(found.pid, folder / LIBRARY)


def _wait_for_block(memory: ProcessMemory) -> None:
    deadline = time.monotonic() + LOAD_LIMIT_S
    # It is ready once its own thread turns, which can only begin when the game has loaded whatever else it loads.
    while (address := find_block(memory)) is None or not any(memory.read(address + _TURNS_AT, _WORD.size)):
        if time.monotonic() > deadline:
            raise SpeedControlError(
                f"{LIBRARY} was loaded into the game (pid {memory.process.pid}) but did not start within "
                f"{LOAD_LIMIT_S:g} s; start the game again"
            )
        time.sleep(SLEEP_S)
