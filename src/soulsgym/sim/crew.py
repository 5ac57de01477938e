"""Threads that step the fights together with the caller.

The fights are cut into chunks, and every thread takes the next one that is left: whoever is held up takes fewer, and
nobody waits for a thread that sleeps. Waking one takes a tenth of a step of 1,024 fights, so a worker watches for the
next step for a while, outside of the interpreter's lock, before it goes to sleep.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from soulsgym.compiling import inner
from soulsgym.errors import SoulsError

LINE = 8
"""Flags are kept a cache line apart, so that threads do not slow each other by writing side by side."""
TICKET, NEXT, FINISHED, SKIP, CLOSED, SEEN = (LINE * line for line in range(6))
"""Steps handed out; the next chunk to take; chunks done; how to step; the end; from here on, a line per worker: the
last ticket it saw, and whether it sleeps."""
ASLEEP = 1
CHUNK = 64
WATCH = 400_000
"""How often a worker looks for work before it sleeps, about a millisecond."""
PATIENCE = 20_000_000_000
"""How often the caller looks for the last chunks before it gives up, more than ten seconds."""
NAP_S = 0.1

Flags = npt.NDArray[np.int64]
_intrinsic: Any = intrinsic


@_intrinsic
def _load(typing: Any, flags: Any, index: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        return builder.load_atomic(builder.gep(array.data, [args[1]]), ordering="seq_cst", align=8)

    return types.int64(flags, types.intp), build


@_intrinsic
def _store(typing: Any, flags: Any, index: Any, value: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        value = builder.sext(args[2], ir.IntType(64)) if args[2].type.width < 64 else args[2]
        builder.store_atomic(value, builder.gep(array.data, [args[1]]), ordering="seq_cst", align=8)
        return context.get_dummy_value()

    return types.void(flags, types.intp, types.int64), build


@_intrinsic
def _next(typing: Any, flags: Any, index: Any) -> Any:
    """Add one, and give the number before."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        one = ir.Constant(ir.IntType(64), 1)
        return builder.atomic_rmw("add", builder.gep(array.data, [args[1]]), one, "seq_cst")

    return types.int64(flags, types.intp), build


@inner
def hand_out(flags: Any) -> None:
    """Begin a step. Everything a thread needs for it must be in place: one that is late may take a chunk at once."""
    _store(flags, FINISHED, 0)
    _store(flags, NEXT, 0)
    _store(flags, TICKET, _load(flags, TICKET) + 1)


@inner
def await_ticket(flags: Any, role: Any) -> Any:
    """Watch for a ticket this worker has not seen; false if none comes for a while, or the work is over."""
    seen = SEEN + LINE * (role - 1)
    for _ in range(WATCH):
        ticket = _load(flags, TICKET)
        if _load(flags, CLOSED) != 0:
            return False
        if ticket != _load(flags, seen):
            _store(flags, seen, ticket)
            return True
    return False


@inner
def take_chunk(flags: Any) -> Any:
    """The first fight of the next chunk; beyond the last one when none is left."""
    return CHUNK * _next(flags, NEXT)


@inner
def finish_chunk(flags: Any) -> None:
    """Count a chunk as done."""
    _next(flags, FINISHED)


@inner
def all_finished(flags: Any, chunks: Any) -> Any:
    """Wait for the chunks that other threads are still at; false if one never comes."""
    looks = 0
    while _load(flags, FINISHED) < chunks and looks < PATIENCE:
        looks += 1
    return looks < PATIENCE


class Crew:
    """The caller and `threads - 1` workers."""

    def __init__(self, step: Callable[..., bool], given: tuple[Any, ...], threads: int) -> None:
        self._step, self._given = step, given
        self.flags: Flags = np.zeros(SEEN + LINE * threads, np.int64)
        self._bells = [threading.Event() for _ in range(threads - 1)]
        for role, bell in enumerate(self._bells, start=1):
            work = (step, given, self.flags, role, bell)
            threading.Thread(target=_work, args=work, name=f"fights-{role}", daemon=True).start()
        self._dismiss = weakref.finalize(self, _dismiss, self.flags, self._bells)

    def step(self, skip: bool) -> None:
        """Step all fights once."""
        self.flags[SKIP] = skip
        for role, bell in enumerate(self._bells):
            if self.flags[SEEN + LINE * role + ASLEEP]:
                bell.set()
        if not self._step(*self._given, self.flags, 0):
            raise SoulsError("a thread of the simulator stopped answering; make the environment anew, with threads=1")

    def close(self) -> None:
        """Send the workers home."""
        self._dismiss()


def _dismiss(flags: Flags, bells: list[threading.Event]) -> None:
    flags[CLOSED] = 1
    for bell in bells:
        bell.set()


def _work(step: Callable[..., bool], given: tuple[Any, ...], flags: Flags, role: int, bell: threading.Event) -> None:
    seen = SEEN + LINE * (role - 1)
    while not flags[CLOSED]:
        step(*given, flags, role)
        flags[seen + ASLEEP] = 1
        while flags[TICKET] == flags[seen] and not flags[CLOSED]:
            # Not for ever: a step that begins in the moment of falling asleep may ring no bell.
            bell.wait(NAP_S)
            bell.clear()
        flags[seen + ASLEEP] = 0
