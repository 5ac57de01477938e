"""Waiting for a running game: never without a limit, and with a clock that tests can replace."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from soulsgym.errors import GameGone, GameHung, ReadFailed, StageFailed

SPIN_S = 0.0002
"""The last stretch of a precise sleep, in which the clock is watched: systems wake up late."""
NO_PULSE_S = 5.0
"""A program that does nothing at all for this long hangs; loading, it does much."""
LEAST_TURNS, LATEST_S = 30, 4.0
"""A wait does not end before the game has asked for the time so often, or so much later: it may hardly get to run."""


class TimeSource(Protocol):
    """Seconds of the real world, and how to let some pass."""

    def now(self) -> float:
        """Seconds since some moment."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let this time pass, or a little more."""
        ...


class RealTime:
    """The system's own time."""

    def now(self) -> float:
        """Seconds since some moment."""
        return time.perf_counter()

    def sleep(self, seconds: float) -> None:
        """Let this time pass, or a little more."""
        time.sleep(max(0.0, seconds))


REAL_TIME = RealTime()


def sleep_until(source: TimeSource, moment: float) -> None:
    """Sleep until a moment, exact to some microseconds."""
    left = moment - source.now()
    if left > SPIN_S:
        source.sleep(left - SPIN_S)
    while source.now() < moment:
        pass


class Waits:
    """All waits of one stage: each has a limit of its own, and the stage has one for all together.

    `pulse` is a number that changes as long as the game does anything, by which a game that hangs is told early.
    """

    def __init__(
        self,
        stage: str,
        limit_s: float,
        source: TimeSource,
        is_running: Callable[[], bool],
        pulse: Callable[[], int] | None = None,
    ) -> None:
        self._stage, self._time, self._is_running, self._pulse = stage, source, is_running, pulse
        self._end = source.now() + limit_s
        self._last_pulse, self._pulse_at = -1, source.now()

    def left_s(self) -> float:
        """How much of the stage's time is left."""
        return max(0.0, self._end - self._time.now())

    def sleep(self, seconds: float) -> None:
        """Let time pass; the stage fails if it has no more."""
        if self._time.now() + seconds > self._end:
            raise self.failed("it took too long altogether")
        self._time.sleep(seconds)

    def until(
        self,
        condition: Callable[[], bool],
        failure: str,
        *,
        limit_s: float = float("inf"),
        every_s: float = 0.01,
        unreadable: bool = False,
    ) -> None:
        """Ask again and again; `failure` says what did not come true. `unreadable` stands for a loading game."""
        if not self.comes_true(condition, limit_s=limit_s, every_s=every_s, unreadable=unreadable):
            raise self.failed(failure)

    def comes_true(
        self,
        condition: Callable[[], bool],
        *,
        limit_s: float = float("inf"),
        every_s: float = 0.01,
        unreadable: bool = False,
    ) -> bool:
        """Ask again and again; does it come true in time?"""
        end, turns = min(self._end, self._time.now() + limit_s), self._pulse() if self._pulse is not None else 0
        while True:
            try:
                if condition():
                    return True
            except ReadFailed:
                if not self._is_running():
                    raise GameGone("the game has ended; start it again") from None
                if not unreadable:
                    raise
            if self._time.now() >= end and not self._is_behind(turns, end):
                if not self._is_running():
                    raise GameGone("the game has ended; start it again")
                return False
            self._feel_pulse()
            self._time.sleep(every_s)

    def _is_behind(self, turns: int, end: float) -> bool:
        """Has the game had too few turns since a wait began, and is there time to give it more?"""
        latest = min(self._end, end + LATEST_S)
        return self._pulse is not None and self._pulse() - turns < LEAST_TURNS and self._time.now() < latest

    def _feel_pulse(self) -> None:
        if self._pulse is None:
            return
        now, pulse = self._time.now(), self._pulse()
        if pulse != self._last_pulse:
            self._last_pulse, self._pulse_at = pulse, now
        elif now - self._pulse_at > NO_PULSE_S:
            raise GameHung(f"the game has done nothing for {NO_PULSE_S:g} s; end it and start it again")

    def failed(self, reason: str) -> StageFailed:
        """The error of this stage."""
        return StageFailed(self._stage, reason)
