"""Processes that are kept running: one that dies or hangs is replaced, and none outlives its parent.

A thread of the crew starts its processes and watches them. It is their parent for Linux, which ends a process with the
thread that started it, so it lives for as long as they do.
"""

from __future__ import annotations

import atexit
import ctypes
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

LOOK_S = 0.5
"""Seconds between looks at the clocks of the children, at most; a death is seen at once."""
SLOW_START_S = 120.0
"""Seconds until a child must have touched its clock for the first time, if that is longer than `hang_s`."""
KILL_S = 5.0
"""Seconds for the system to end a process that was killed."""
LONGEST_WORD = 4096
"""Bytes of what a child says about its end."""
ORPHANED = 70
"""Exit code of a child whose parent is gone."""
PR_SET_PDEATHSIG = 1

log = logging.getLogger(__name__)
_spawn = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Pauses:
    """How long a place in the crew stays empty: twice as long each time, until one lived well for a while."""

    first_s: float = 1.0
    longest_s: float = 30.0
    reset_after_s: float = 60.0


PAUSES = Pauses()


class Life:
    """What a child knows of itself: the first argument of its target."""

    def __init__(self, index: int, pulse: ctypes.c_uint64) -> None:
        self.index = index
        self._pulse = pulse
        self._lock = threading.Lock()
        self._told = threading.Event()
        self._callbacks: list[Callable[[], None]] = []

    def touch(self) -> None:
        """Show that this process does not hang."""
        self._pulse.value += 1

    @property
    def stopping(self) -> bool:
        """Whether it was asked to stop."""
        return self._told.is_set()

    def on_stop(self, callback: Callable[[], None]) -> None:
        """Have this called, by another thread, when the process is asked to stop; now, if it was already."""
        with self._lock:
            self._callbacks.append(callback)
            if not self._told.is_set():
                return
        callback()

    def wait(self, limit_s: float) -> bool:
        """Sleep until it is asked to stop, for so long at most; whether it was."""
        return self._told.wait(limit_s)

    def tell(self) -> None:
        """Ask it to stop."""
        with self._lock:
            if self._told.is_set():
                return
            self._told.set()
            callbacks = list(self._callbacks)
        for callback in callbacks:
            try:
                callback()
            except Exception:  # who calls this also watches the parent, and must live on
                log.exception("a process that was asked to stop cannot prepare for it")


@dataclass(eq=False)
class _Child:
    """A running process and what was last seen of it."""

    process: BaseProcess
    pid: int
    control: Connection
    pulse: ctypes.c_uint64
    started_s: float
    touched_s: float
    seen: int = 0

    def look(self) -> None:
        """Note whether it has touched its clock since."""
        pulse = self.pulse.value
        if pulse != self.seen:
            self.seen, self.touched_s = pulse, time.monotonic()

    def last_word(self) -> str:
        """What it said about its end, if anything."""
        with suppress(OSError, EOFError):
            if self.control.poll():
                return self.control.recv_bytes(LONGEST_WORD).decode(errors="replace")
        return ""


@dataclass(eq=False)
class _Place:
    """A place in the crew: its child, or when the next one is due."""

    index: int
    pause_s: float
    due_s: float = 0.0
    child: _Child | None = None
    lost: str = ""  # how the last child was lost
    finished: bool = False


class Crew:
    """Keeps `count` processes running `target(life, *arguments(index))`, in a thread of its own.

    A child whose target returns has finished and is not replaced; one that dies in any other way is, and so is one that
    does not touch its clock for `hang_s`. `arguments` and `say` are called by the crew's thread, `arguments` for every
    start; pipes among them belong to the child and are closed here.
    """

    def __init__(self, target: Callable[..., None], count: int, *, arguments: Callable[[int], tuple[Any, ...]],
                 hang_s: float, say: Callable[[str], None] = log.warning, start_s: float | None = None,
                 pauses: Pauses = PAUSES) -> None:  # fmt: skip
        if "<" in target.__qualname__:
            from soulsgym.errors import MisuseError

            raise MisuseError(f"{target.__qualname__} cannot run in another process: make it a function of a module")
        self._target = target
        self._arguments = arguments
        self._hang_s = hang_s
        self._start_s = max(hang_s, SLOW_START_S) if start_s is None else start_s
        self._tell_user = say
        self._pauses = pauses
        self._lock = threading.Lock()
        self._places = [_Place(index, pauses.first_s) for index in range(count)]
        self._restarts: Counter[str] = Counter(died=0, hung=0)
        self._deadline_s = 0.0
        self._stopping = False
        self._ear, self._mouth = multiprocessing.Pipe(duplex=False)
        self._thread = threading.Thread(target=self._run, daemon=True, name="crew")

    def start(self) -> None:
        """Start all children; does not wait until they run."""
        atexit.register(self.stop, 0.0)  # before multiprocessing's own, which waits for a child for ever
        self._thread.start()

    @property
    def restarts(self) -> Mapping[str, int]:
        """Children that were started again, by what became of the one before: died, hung, or failed to start."""
        with self._lock:
            return dict(self._restarts)

    def alive(self) -> int:
        """Children that run."""
        with self._lock:
            return sum(place.child is not None for place in self._places)

    def finished(self) -> int:
        """Children whose target has returned."""
        with self._lock:
            return sum(place.finished for place in self._places)

    def pids(self) -> Mapping[int, int]:
        """The process id of every child that runs, by index."""
        with self._lock:
            return {place.index: place.child.pid for place in self._places if place.child is not None}

    def begin_stop(self, patience_s: float = 5.0) -> None:
        """Like `stop`, without waiting for it: `alive` tells when it is done."""
        deadline_s = time.monotonic() + patience_s
        with self._lock:
            self._deadline_s = min(self._deadline_s, deadline_s) if self._stopping else deadline_s
            self._stopping = True
        with suppress(OSError):
            self._mouth.send_bytes(b"stop")

    def stop(self, patience_s: float = 5.0) -> None:
        """Ask all children to stop, wait for so long at most, then kill those that are left."""
        self.begin_stop(patience_s)
        if self._thread.ident is not None:
            self._thread.join(patience_s + 2 * KILL_S)
        atexit.unregister(self.stop)

    def _run(self) -> None:
        _keep_interrupts_out()
        try:
            while not self._stopping:
                for place in self._places:
                    self._look_at(place)
                connection.wait([self._ear, *self._sentinels()], self._sleep_s())
        finally:
            self._end()
            self._mouth.close()
            self._ear.close()

    def _say(self, text: str) -> None:
        try:
            self._tell_user(text)
        except Exception:  # the children are worth more than their news
            log.exception("news of the crew could not be told: %s", text)

    def _sentinels(self) -> list[int]:
        return [place.child.process.sentinel for place in self._places if place.child is not None]

    def _sleep_s(self) -> float:
        due_s = min(
            (place.due_s for place in self._places if not (place.child or place.finished)), default=float("inf")
        )
        return max(min(LOOK_S, self._hang_s / 4, due_s - time.monotonic()), 0.0)

    def _look_at(self, place: _Place) -> None:
        child = place.child
        if child is None:
            if not place.finished and time.monotonic() >= place.due_s:
                self._begin(place)
            return
        child.look()
        if not child.process.is_alive():
            self._bury(place, child, "died")
        elif time.monotonic() - child.touched_s > (self._hang_s if child.seen else self._start_s):
            child.process.kill()
            child.process.join(KILL_S)
            self._bury(place, child, "hung")

    def _begin(self, place: _Place) -> None:
        arguments: tuple[Any, ...] = ()
        control, theirs = multiprocessing.Pipe()
        try:
            arguments = self._arguments(place.index)
            pulse = _spawn.RawValue(ctypes.c_uint64, 0)
            life = (self._target, place.index, theirs, pulse, arguments)
            process = _spawn.Process(target=_live, args=life, name=f"worker {place.index}")
            process.start()
        except Exception as error:  # anything the system, or who makes the arguments, may come up with
            control.close()
            self._say(f"worker {place.index} cannot be started ({error!r}): {self._next_try(place, 'failed')}")
            return
        finally:
            _close_pipes(theirs, *arguments)
        now_s = time.monotonic()
        with self._lock:
            place.child = _Child(process, process.pid or 0, control, pulse, now_s, now_s)
            if place.lost:
                self._restarts[place.lost] += 1

    def _bury(self, place: _Place, child: _Child, how: str) -> None:
        """Let go of a child that has ended, and plan the next."""
        code, word = child.process.exitcode, child.last_word()
        child.control.close()
        with suppress(ValueError):  # a process that even a kill did not end
            child.process.close()
        with self._lock:
            place.child = None
            place.finished = how == "died" and code == 0
        if place.finished or self._stopping:
            return
        if child.touched_s - child.started_s >= self._pauses.reset_after_s:
            place.pause_s = self._pauses.first_s
        what = "hung and was killed" if how == "hung" else f"ended: {word}" if word else f"died ({_ending(code)})"
        self._say(f"worker {place.index} {what}: {self._next_try(place, how)}")

    def _next_try(self, place: _Place, how: str) -> str:
        pause_s = place.pause_s
        place.due_s = time.monotonic() + pause_s
        place.pause_s = min(2 * pause_s, self._pauses.longest_s)
        place.lost = how
        return f"a new one starts in {pause_s:.3g} s"

    def _end(self) -> None:
        """End all children, kindly at first."""
        for child in self._children():
            with suppress(OSError):
                child.control.send_bytes(b"stop")
            if sys.platform != "win32":  # where this is a kill
                child.process.terminate()
        self._reap_until(lambda: self._deadline_s)
        for child in self._children():
            child.process.kill()
        deadline_s = time.monotonic() + KILL_S
        self._reap_until(lambda: deadline_s)
        for child in self._children():
            self._say(f"process {child.pid} cannot be ended: look what it waits for")

    def _children(self) -> list[_Child]:
        return [place.child for place in self._places if place.child is not None]

    def _reap_until(self, deadline_s: Callable[[], float]) -> None:
        """Let go of all children that end before the deadline, which may be moved meanwhile."""
        while self._children() and (left_s := deadline_s() - time.monotonic()) > 0.0:
            if self._ear in connection.wait([self._ear, *self._sentinels()], left_s):
                self._ear.recv_bytes(LONGEST_WORD)
            for place in self._places:
                if place.child is not None and not place.child.process.is_alive():
                    self._bury(place, place.child, "died")


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        with suppress(ValueError):
            return signal.Signals(-code).name
    return f"exit code {code}"


def _close_pipes(*arguments: object) -> None:
    for argument in arguments:
        if isinstance(argument, Connection) or type(argument).__name__ == "PipeConnection":  # the latter on Windows
            argument.close()  # type: ignore[attr-defined]


def _keep_interrupts_out() -> None:
    """Children are born deaf to Ctrl-C, so that it cannot hit them before they can ignore it."""
    if sys.platform != "win32":
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()  # it opens the ears of the thread that starts it
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _live(target: Callable[..., None], index: int, control: Connection, pulse: ctypes.c_uint64,
          arguments: tuple[Any, ...]) -> None:  # fmt: skip
    """The whole life of a child."""
    life = Life(index, pulse)
    _die_with_parent()
    ear, mouth = multiprocessing.Pipe(duplex=False)

    def ask(number: int, frame: object) -> None:
        if not life.stopping:
            mouth.send_bytes(b"stop")  # to the other thread: locks are not for signal handlers

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    signal.signal(signal.SIGTERM, ask)
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_watch_parent, args=(life, control, ear), daemon=True, name="parent watch").start()
    try:
        target(life, *arguments)
    except Exception as error:
        from soulsgym.errors import SoulsError  # here, because it loads far more than many a child needs

        if not isinstance(error, SoulsError):
            raise
        control.send_bytes(str(error).encode()[:LONGEST_WORD])  # a sentence for the user, whom the parent talks to
        sys.exit(error.exit_code)


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if parent is not None and os.getppid() != parent.pid:  # it was too late for that
            os._exit(ORPHANED)


def _watch_parent(life: Life, control: Connection, ear: Connection) -> None:
    """The thread of a child that ends it when its parent is gone, and hears when it is asked to stop."""
    parent = multiprocessing.parent_process()
    assert parent is not None  # this is a child
    while True:
        for ready in connection.wait([parent.sentinel, control, ear]):
            if ready is not control and ready is not ear:
                os._exit(ORPHANED)
            try:
                (control if ready is control else ear).recv_bytes(LONGEST_WORD)
            except (EOFError, OSError):
                os._exit(ORPHANED)
            life.tell()
