"""Threads that step their stretch of the fights the moment the first thread does.

Waking a sleeping thread takes as long as a tenth of a step of 1,024 fights. So a worker that has done its stretch
watches for the next one for a while, outside of the interpreter's lock, before it goes to sleep.
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

from soulsgym.errors import SoulsError
from soulsgym.sim.compiling import inner

LINE = 8
"""Flags are kept a cache line apart, so that threads do not slow each other down by writing side by side."""
TICKET, SKIP, CLOSED = 0, 1, 2
DONE, ASLEEP = 0, 1
WATCH = 400_000
"""How often a worker looks for work before it sleeps, about a millisecond."""
PATIENCE = 20_000_000_000
"""How often the first thread looks for the others before it gives up, more than ten seconds."""
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


@inner
def await_ticket(flags: Any, role: Any) -> Any:
    """Watch for a ticket this worker has not done; 0 if none comes for a while, or the work is over."""
    done = _load(flags, LINE * role + DONE)
    for _ in range(WATCH):
        ticket = _load(flags, TICKET)
        if _load(flags, CLOSED) != 0:
            return 0
        if ticket != done:
            return ticket
    return 0


@inner
def report(flags: Any, role: Any, ticket: Any) -> None:
    """Tell the first thread that the stretch is done."""
    _store(flags, LINE * role + DONE, ticket)


@inner
def all_done(flags: Any) -> Any:
    """Wait until every worker has reported; false if one never does."""
    ticket = _load(flags, TICKET)
    for role in range(1, len(flags) // LINE):
        looks = 0
        while _load(flags, LINE * role + DONE) != ticket:
            looks += 1
            if looks > PATIENCE:
                return False
    return True


class Crew:
    """Workers for the stretches 1, 2, ...; stretch 0 is the caller's own."""

    def __init__(self, step: Callable[..., bool], given: tuple[Any, ...], stretches: list[tuple[int, int]]) -> None:
        self._step, self._given, self._stretches = step, given, stretches
        self.flags: Flags = np.zeros(LINE * len(stretches), np.int64)
        self._bells = [threading.Event() for _ in stretches[1:]]
        for role, bell in enumerate(self._bells, start=1):
            work = (step, given, self.flags, stretches[role], role, bell)
            threading.Thread(target=_work, args=work, name=f"fights-{role}", daemon=True).start()
        self._dismiss = weakref.finalize(self, _dismiss, self.flags, self._bells)

    def step(self, skip: bool) -> None:
        """Step all stretches once."""
        self.flags[SKIP] = skip
        self.flags[TICKET] += 1
        for role, bell in enumerate(self._bells, start=1):
            if self.flags[LINE * role + ASLEEP]:
                bell.set()
        if not self._step(*self._given, self.flags, 0, *self._stretches[0]):
            raise SoulsError("a thread of the simulator stopped answering; make the environment anew, with threads=1")

    def close(self) -> None:
        """Send the workers home."""
        self._dismiss()


def _dismiss(flags: Flags, bells: list[threading.Event]) -> None:
    flags[CLOSED] = 1
    for bell in bells:
        bell.set()


def _work(
    step: Callable[..., bool],
    given: tuple[Any, ...],
    flags: Flags,
    stretch: tuple[int, int],
    role: int,
    bell: threading.Event,
) -> None:
    while not flags[CLOSED]:
        step(*given, flags, role, *stretch)
        flags[LINE * role + ASLEEP] = 1
        while flags[TICKET] == flags[LINE * role + DONE] and not flags[CLOSED]:
            # Not for ever: a ticket handed out in the moment of falling asleep rings no bell.
            bell.wait(NAP_S)
            bell.clear()
        flags[LINE * role + ASLEEP] = 0
