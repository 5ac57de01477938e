"""The one supervisor of processes: it starts them, watches them, starts them again and ends them.

None outlives its parent. A Python function in a process of its own (`function`) sees a pipe close, and on Linux the
system kills it as well; many of a kind may be `forked` from a process that has loaded what all of them need. A program
(`Command`) sees its input end, or is ended by the system where it does not read any.
Linux ends a process with the thread that started it, so a supervisor's thread lives for as long as its processes do.
"""

from __future__ import annotations

import _thread
import atexit
import ctypes
import logging
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO, Any, cast

from soulsai.processes import orphan

LOOK_S = 0.1
"""Seconds between looks at the processes."""
SLOW_START_S = 120.0
"""Seconds until a process must have touched its clock for the first time, if that is longer than `hang_s`."""
TERMINATE_S = 2.0
KILL_S = 5.0
"""Seconds for a process to end after the system was asked to terminate it, and to kill it."""
LONGEST_WORD = 4096
"""Bytes of what a process says about its end."""
NICE = 5
"""Training comes before the processes beside it."""
NEW_GROUP: int = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
"""Windows' way to keep Ctrl-C away."""

log = logging.getLogger(__name__)
_spawn = multiprocessing.get_context("spawn")
CAN_FORK = sys.platform == "linux"


class Process:
    """A process that was started here and must be ended; a program or a function."""

    _handle: subprocess.Popen[bytes] | BaseProcess

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._handle.pid or 0

    def exit_code(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        return self._handle.exitcode if isinstance(self._handle, BaseProcess) else self._handle.poll()

    def wait(self, limit_s: float) -> bool:
        """Whether it has ended within the limit."""
        if isinstance(self._handle, BaseProcess):
            self._handle.join(limit_s)
        else:
            with suppress(subprocess.TimeoutExpired):
                self._handle.wait(limit_s)
        return self.exit_code() is not None

    def ask(self) -> bool:
        """Ask it to end; False if it cannot be asked."""
        return False

    def terminate(self) -> None:
        """Have the system ask it."""
        self._handle.terminate()

    def kill(self) -> None:
        """Have the system end it now."""
        self._handle.kill()

    def stop(self, polite_s: float, terminate_s: float = TERMINATE_S) -> None:
        """Ask it to end, then have the system end it, then kill it, each with its limit."""
        if self.ask() and self.wait(polite_s):
            return
        self.terminate()
        if not self.wait(terminate_s):
            self.kill()
            if not self.wait(KILL_S):
                log.error("process %d cannot be ended: look what it waits for", self.pid)

    def pulse(self) -> int:
        """Grows while it does not hang."""
        return 0

    def worked(self) -> bool:
        """Whether it has done anything useful yet."""
        return True

    def last_word(self) -> str:
        """What it said about its end, if anything."""
        return ""

    def close(self) -> None:
        """Release what is held here of a process that has ended."""


class Command(Process):
    """A program in a process apart from our terminal and its Ctrl-C.

    It is asked to end by the end of its input, or by `ask_with` if it reads none. `secrets` are environment variables;
    `private`: its files are for their owner alone.
    """

    _handle: subprocess.Popen[bytes]

    def __init__(self, words: Sequence[str | Path], *, stdout: int | IO[bytes] = subprocess.DEVNULL,
                 stderr: int | IO[bytes] = subprocess.DEVNULL, secrets: Mapping[str, str] | None = None,
                 folder: Path | None = None, private: bool = False,
                 ask_with: Callable[[], bool] | None = None) -> None:  # fmt: skip
        self._words, self._ask_with, self._private = [str(word) for word in words], ask_with, private
        self._given: dict[str, Any] = {"stdout": stdout, "stderr": stderr, "cwd": folder}
        self._secrets = secrets or {}

    @classmethod
    def module(cls, name: str, words: Sequence[str] = (), **settings: Any) -> Command:
        """A module of this package as a program."""
        return cls([sys.executable, "-m", name, *words], **settings)

    def start(self) -> Command:
        """Start it; OSError if it cannot be. One that reads no input ends with the thread that calls this, on Linux."""
        words = self._words
        apart: dict[str, Any] = {"creationflags": NEW_GROUP}
        if sys.platform == "linux" and self._ask_with:
            words = [sys.executable, "-I", "-S", orphan.__file__, str(os.getpid()), *words]
        if sys.platform != "win32":
            apart = {"start_new_session": True, "umask": 0o077 if self._private else -1}
        stdin = subprocess.DEVNULL if self._ask_with else subprocess.PIPE
        environment = {**os.environ, **self._secrets}
        self._handle = subprocess.Popen(words, stdin=stdin, env=environment, bufsize=0, **self._given, **apart)
        return self

    @property
    def stdin(self) -> IO[bytes]:
        """Its input."""
        return cast("IO[bytes]", self._handle.stdin)

    @property
    def stdout(self) -> IO[bytes]:
        """Its output, if that is a pipe, or else its errors."""
        return cast("IO[bytes]", self._handle.stdout or self._handle.stderr)

    def ask(self) -> bool:
        """End its input, or ask it otherwise."""
        if self._ask_with:
            return self._ask_with()
        with suppress(OSError):  # the other end may be gone
            self.stdin.close()
        return True

    def kill(self) -> None:
        """End it now, with everything that it has started itself."""
        with suppress(OSError):
            self._handle.kill() if sys.platform == "win32" else os.killpg(self.pid, signal.SIGKILL)

    def listen(self, say: Callable[[str], None]) -> None:
        """Give every line that it writes to `say`, until it writes no more; for a thread."""
        with suppress(OSError, ValueError):
            while line := self.stdout.readline(LONGEST_WORD):
                say(line.decode(errors="replace").strip())


class Control:
    """What a function in a process of its own knows of that process: its first argument."""

    def __init__(self, index: int, counts: Any, say: Callable[[str], None]) -> None:
        self.index = index
        self.say = say
        """Tell the parent why this process ends."""
        self._counts = counts
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._callbacks: list[Callable[[], None]] = []

    def touch(self) -> None:
        """Show that this process does not hang."""
        self._counts[0] += 1

    def work(self) -> None:
        """Show that it has done something useful: a failure after this may pass."""
        self._counts[1] = 1

    @property
    def stopping(self) -> bool:
        """Whether it was asked to stop."""
        return self._stop.is_set()

    def on_stop(self, callback: Callable[[], None]) -> None:
        """Have this called, by another thread, when the process is asked to stop; now, if it was already."""
        with self._lock:
            self._callbacks.append(callback)
            if not self._stop.is_set():
                return
        callback()

    def stop(self) -> None:
        """Ask it to stop."""
        with self._lock:
            if self._stop.is_set():
                return
            self._stop.set()
            callbacks = list(self._callbacks)
        for callback in callbacks:
            try:
                callback()
            except Exception:  # who calls this also watches the parent, and must live on
                log.exception("a process that was asked to stop cannot prepare for it")


def prepare_forks(module: str, settings: Mapping[str, str]) -> None:
    """Start the process that functions are `forked` from, if it does not run yet: it imports `module`, with these
    environment variables, and what it holds then exists once. On Linux; elsewhere this does nothing."""
    if not CAN_FORK:
        return
    from multiprocessing import forkserver

    before = {name: os.environ.get(name) for name in settings}
    forkserver.set_forkserver_preload(["__main__", module])
    os.environ.update(settings)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    _keep_interrupts_out()
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def function(
    target: Callable[..., None],
    arguments: Callable[[int], tuple[Any, ...]] = lambda index: (),
    *,
    forked: bool = False,
) -> Callable[[int], Process]:
    """How a supervisor starts `target(control, *arguments(index))`; pipes among the arguments are given away.

    One that is `forked` begins with what the process of `prepare_forks` has loaded.
    """
    if "<" in target.__qualname__:
        from soulsgym.errors import MisuseError

        raise MisuseError(f"{target.__qualname__} cannot run in another process: make it a function of a module")
    return lambda index: _Function(target, index, arguments(index), forked and CAN_FORK)


class _Function(Process):
    """A Python function that runs in a process of its own."""

    _handle: BaseProcess

    def __init__(self, target: Callable[..., None], index: int, arguments: tuple[Any, ...], forked: bool) -> None:
        self._counts = _spawn.RawArray(ctypes.c_uint64, 2)
        self._control, theirs = multiprocessing.Pipe()
        words = (0 if forked else os.getpid(), target, index, theirs, self._counts, arguments)
        context: Any = multiprocessing.get_context("forkserver") if forked else _spawn
        self._handle = context.Process(target=_call, args=words, name=f"{target.__name__} {index}")
        try:
            self._handle.start()
        except BaseException:
            self._control.close()
            raise
        finally:
            for argument in (theirs, *arguments):
                if isinstance(argument, Connection) or type(argument).__name__ == "PipeConnection":  # on Windows
                    argument.close()

    def pulse(self) -> int:
        return int(self._counts[0])

    def worked(self) -> bool:
        return bool(self._counts[1])

    def last_word(self) -> str:
        with suppress(OSError, EOFError):
            if self._control.poll():
                return self._control.recv_bytes(LONGEST_WORD).decode(errors="replace")
        return ""

    def ask(self) -> bool:
        with suppress(OSError):
            self._control.send_bytes(b"stop")
        if sys.platform != "win32":  # where this is a kill; elsewhere it ends one that cannot listen yet
            self._handle.terminate()
        return True

    def close(self) -> None:
        self._control.close()
        with suppress(ValueError):  # a process that even a kill did not end
            self._handle.close()


@dataclass(frozen=True)
class Pauses:
    """How long until a process is started again: twice as long each time, until one has lived well for a while."""

    first_s: float = 1.0
    longest_s: float = 30.0
    reset_after_s: float = 60.0


PAUSES = Pauses()


@dataclass(eq=False)
class _Place:
    """One of the processes that are to run: the one that does, or when the next is due."""

    index: int
    pause_s: float
    process: Process | None = None
    due_s: float = 0.0
    started_s: float = 0.0
    touched_s: float = 0.0
    seen: int = 0  # of its pulse
    lost: str = ""  # how the last one was lost
    failures: int = 0  # that ended with an error of their own, before any has done something useful
    has_worked: bool = False
    is_over: bool = False
    problem: str = ""  # why no more is started
    word: str = ""  # the last word of the last one
    told: str = ""  # why the last one could not be started


class Supervisor:
    """Keeps `count` processes running, in a thread of its own.

    `start(index)` starts one. One that ends with code 0 has finished and is not replaced; one that dies in any other
    way is, and so is one that does not touch its clock for `hang_s`. With `tries`, a place where so many have ended by
    an error of their own, and none has ever worked, is given up. The supervisor's thread calls `start` and `say`.
    """

    def __init__(self, start: Callable[[int], Process], count: int = 1, *, name: str = "worker {}",
                 hang_s: float = math.inf, start_s: float | None = None, pauses: Pauses = PAUSES,
                 tries: int | None = None, say: Callable[[str], None] = lambda text: None) -> None:  # fmt: skip
        self._start, self._name, self._pauses, self._tries = start, name, pauses, tries
        self._hang_s = hang_s
        self._start_s = max(hang_s, SLOW_START_S) if start_s is None else start_s
        self._tell_user = say
        self._lock = threading.Lock()
        self._places = [_Place(index, pauses.first_s) for index in range(count)]
        self._restarts: Counter[str] = Counter(died=0, hung=0)
        self._deadline_s = math.inf
        self._error: Exception | None = None
        self._terminate_s = TERMINATE_S
        self._all_tried = threading.Event()
        self._woken = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, *, wait: bool = False) -> None:
        """Start all processes. With `wait`, return when they were started, and raise what hinders the first ones."""
        atexit.register(self.stop, 0.0)  # before multiprocessing's own, which waits for a child for ever
        self._thread = threading.Thread(target=self._run, args=(wait,), daemon=True, name="supervisor")
        self._thread.start()
        while wait and not self._all_tried.wait(LOOK_S) and self._thread.is_alive():
            pass
        if self._error is not None:
            self.stop()
            raise self._error

    @property
    def stopping(self) -> bool:
        """Whether it was told to stop."""
        return self._deadline_s < math.inf

    @property
    def restarts(self) -> Mapping[str, int]:
        """Processes that were started again, by what became of the one before: died, hung, or failed to start."""
        with self._lock:
            return dict(self._restarts)

    def pids(self) -> Mapping[int, int]:
        """The process id of every process that runs, by index."""
        with self._lock:
            return {place.index: place.process.pid for place in self._places if place.process is not None}

    def ended(self) -> int:
        """Processes that have finished or were given up."""
        with self._lock:
            return sum(place.is_over for place in self._places)

    def problems(self) -> list[str]:
        """Why processes were given up."""
        with self._lock:
            return [place.problem for place in self._places if place.problem]

    def last_word(self, index: int) -> str:
        """What the last process of a place that has ended said about it, if anything."""
        return self._places[index].word

    def stop(self, patience_s: float = 5.0) -> None:
        """Ask all to stop, wait for so long at most, then end those that are left. Called again it can only hurry."""
        self._deadline_s = min(self._deadline_s, time.monotonic() + patience_s)
        self._terminate_s = min(self._terminate_s, patience_s)
        atexit.unregister(self.stop)
        self._woken.set()
        if self._thread is not None:
            self._thread.join(patience_s + TERMINATE_S + 2 * KILL_S)

    def _run(self, must_start: bool) -> None:
        _keep_interrupts_out()
        try:
            while not self.stopping and self._error is None:
                for place in self._places:
                    self._look_at(place, must_start)
                must_start = False
                self._all_tried.set()
                self._woken.wait(LOOK_S)
        finally:
            self._end()

    def _look_at(self, place: _Place, must_start: bool = False) -> None:
        process, now_s = place.process, time.monotonic()
        if process is None:
            if not place.is_over and now_s >= place.due_s and not self.stopping:
                self._begin(place, must_start)
            return
        if (pulse := process.pulse()) != place.seen:
            place.seen, place.touched_s = pulse, now_s
        if process.exit_code() is not None:
            self._bury(place, process, "died")
        elif now_s - place.touched_s > (self._hang_s if place.seen else self._start_s):
            process.kill()
            process.wait(KILL_S)
            self._bury(place, process, "hung")

    def _begin(self, place: _Place, must_start: bool) -> None:
        try:
            process = self._start(place.index)
        except Exception as error:  # whatever it is: the next try may succeed
            if must_start:
                self._error = error
            elif not self.stopping:
                again = self._again(place, "failed")
                if str(error) != place.told:
                    self._say(f"{self._title(place)} cannot be started ({_words(error)}): {again}")
                place.told = str(error)
            return
        with self._lock:
            place.process, place.seen, place.told = process, 0, ""
            place.started_s = place.touched_s = time.monotonic()
            if place.lost:
                self._restarts[place.lost] += 1

    def _bury(self, place: _Place, process: Process, how: str) -> None:
        """Let go of a process that has ended, and plan the next."""
        code, word, worked = process.exit_code(), process.last_word(), process.worked()
        process.close()
        if how == "died" and code is not None and code > 0 and not worked:
            place.failures += 1
        place.has_worked |= worked
        gives_up = self._tries is not None and place.failures >= self._tries and not place.has_worked
        with self._lock:
            place.process, place.word = None, word
            place.is_over = gives_up or (how == "died" and code == 0)
            place.problem = (word or _ending(code)) if gives_up else ""
        if self.stopping or (place.is_over and not gives_up):
            return
        if place.touched_s - place.started_s >= self._pauses.reset_after_s:
            place.pause_s = self._pauses.first_s
        what = "hung and was killed" if how == "hung" else f"ended: {word}" if word else f"died ({_ending(code)})"
        next_one = f"given up after {place.failures} tries" if gives_up else self._again(place, how)
        self._say(f"{self._title(place)} {what}: {next_one}")

    def _again(self, place: _Place, how: str) -> str:
        pause_s = place.pause_s
        place.due_s = time.monotonic() + pause_s
        place.pause_s = min(2 * pause_s, self._pauses.longest_s)
        place.lost = how
        return f"a new one starts in {pause_s:.3g} s"

    def _end(self) -> None:
        """End all processes, politely at first; who hurries may move the deadline meanwhile."""
        if not self.stopping:  # nobody asked for it: the first start has failed
            self._deadline_s = time.monotonic() + TERMINATE_S
        asked = [process.ask() for process in self._processes()]
        if any(asked):
            self._reap(lambda: self._deadline_s)
        for process in self._processes():
            process.terminate()
        terminate_s = time.monotonic() + self._terminate_s
        self._reap(lambda: terminate_s)
        for process in self._processes():
            process.kill()
        kill_s = time.monotonic() + KILL_S
        self._reap(lambda: kill_s)
        for process in self._processes():
            self._say(f"process {process.pid} cannot be ended: look what it waits for")

    def _reap(self, deadline_s: Callable[[], float]) -> None:
        """Let go of all processes that end before the deadline."""
        while self._processes() and (left_s := deadline_s() - time.monotonic()) > 0.0:
            time.sleep(min(left_s, LOOK_S / 2))
            for place in self._places:
                if place.process is not None and place.process.exit_code() is not None:
                    self._bury(place, place.process, "died")

    def _processes(self) -> list[Process]:
        return [place.process for place in self._places if place.process is not None]

    def _say(self, text: str) -> None:
        log.info(text)
        try:
            self._tell_user(text)
        except Exception:  # the processes are worth more than their news
            log.exception("this could not be told: %s", text)

    def _title(self, place: _Place) -> str:
        return self._name.format(place.index)


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        with suppress(ValueError):
            return signal.Signals(-code).name
    return f"exit code {code}"


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def _keep_interrupts_out() -> None:
    """Processes are born deaf to Ctrl-C, so that it cannot hit them before they can ignore it."""
    if sys.platform != "win32":
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()  # it opens the ears of the thread that starts it
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


# Within the processes


def _call(parent: int, target: Callable[..., None], index: int, control: Connection, counts: Any,
          arguments: tuple[Any, ...]) -> None:  # fmt: skip
    """All that the process of a function does; without a `parent` it was forked from one that ends with ours."""
    orphan.end_with_parent(parent or os.getppid(), signal.SIGKILL)
    me = Control(index, counts, lambda word: control.send_bytes(word.encode()[:LONGEST_WORD]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    # In another thread: locks are not for signal handlers.
    signal.signal(signal.SIGTERM, lambda number, frame: _thread.start_new_thread(me.stop, ()))
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_listen, args=(me, control), daemon=True, name="parent").start()
    try:
        target(me, *arguments)
    except Exception as error:
        from soulsgym.errors import SoulsError  # here, because it loads far more than many a process needs

        word = str(error) if isinstance(error, SoulsError) else f"{type(error).__name__}: {error}"
        me.say(word)  # to the user, whom the parent talks to
        if not isinstance(error, SoulsError):
            raise
        sys.exit(error.exit_code)


def _listen(me: Control, control: Connection) -> None:
    """Hear when this process is asked to stop, and end it when its parent is gone."""
    with suppress(EOFError, OSError):
        while control.recv_bytes(LONGEST_WORD):
            me.stop()
    os._exit(orphan.ORPHANED)


def when_input_ends(callback: Callable[[], None]) -> None:
    """Within a Command: have this called, by another thread, when the parent asks it to end or is gone."""
    has_ended, parent = threading.Event(), os.getppid()

    def read() -> None:
        with suppress(OSError):
            while os.read(0, 1024):
                pass
        has_ended.set()

    def wait() -> None:
        # Another process that the parent has forked may hold the other end of the input too, and still live.
        while not has_ended.wait(LOOK_S) and os.getppid() == parent:
            pass
        callback()

    for work in (read, wait):
        threading.Thread(target=work, daemon=True, name="parent").start()


def step_back(pid: int = 0) -> None:
    """Let all others go before this process, or another one that is beside a training."""
    if sys.platform != "win32":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid) + NICE)
