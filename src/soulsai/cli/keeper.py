"""Keeps the run's own Redis running while the learner learns."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from soulsai.transport.redis.server import OwnServer

LOOK_EVERY_S = 0.5
LONGEST_PAUSE_S = 30.0
STOP_S = 30.0


class Keeper:
    """A thread that starts a server, starts it again whenever it has ended, and stops it.

    The thread does all of it, because a server ends with the thread that has started it.
    """

    def __init__(self, start: Callable[[], OwnServer], say: Callable[[str], None]) -> None:
        self._start, self._say = start, say
        self._server: OwnServer | None = None
        self._error: BaseException | None = None
        self._begun, self._ending = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True, name="redis keeper")

    def __enter__(self) -> OwnServer:
        self._thread.start()
        try:
            self._begun.wait()  # as long as starting it takes, which has limits of its own
        except BaseException:
            self._ending.set()
            raise
        if self._error is not None:
            raise self._error
        assert self._server is not None
        return self._server

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join(STOP_S)

    def _keep(self) -> None:
        try:
            self._server = self._start()
        except BaseException as error:
            self._error = error
            return
        finally:
            self._begun.set()
        try:
            self._watch(self._server)
        finally:
            self._server.stop()

    def _watch(self, server: OwnServer) -> None:
        pause_s, told = LOOK_EVERY_S, ""
        while not self._ending.wait(pause_s):
            try:
                if server.revive():
                    self._say("the run's Redis had ended and was started again")
                pause_s, told = LOOK_EVERY_S, ""
            except Exception as error:  # whatever it is: the next try may succeed, and without Redis nothing goes on
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                if str(error) != told:
                    told = str(error)
                    self._say(f"the run's Redis has ended and cannot be started: {error}; trying again")
