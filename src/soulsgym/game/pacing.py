"""Pacers: they let the game run for one step and no further."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

from soulsgym.errors import GameHung, MisuseError, SpeedControlError
from soulsgym.game.waits import REAL_TIME, TimeSource, sleep_until

log = logging.getLogger(__name__)

TICKS_PER_S = 60
MS_PER_TICK = 1000 / TICKS_PER_S
STEPPINGS = ("auto", "ticks", "speed")
HANG_S = 2.0
"""Without a tick for this long, a game hangs."""
POLL_S = 0.0002
"""Between two looks for the next tick: short beside a tick, long beside a read."""
SETTLE_S = 0.0001
"""What a tick may still need after its counter moved; it counts somewhere within its work. The next shows it."""
TICK_QUERIES = 2
"""Questions for the time after which the last tick is over: one may be part of it, the other begins another turn."""
LOOP_S, LOOP_QUERIES = 0.01, 4
"""After a stretch of time the game's loop has turned when this passed and it asked for the time this often."""
PROBE_TICKS = 12
PROBE_STILL_S, PROBE_STEPS = 0.05, 4
OWN_TIME_LOOKS, OWN_TIME_RATE = 3, 0.5
"""Play time that passes at least so fast in each of some looks at a stopped game passes by itself."""
ONE_TICK = 0.5 / TICKS_PER_S, 1.5 / TICKS_PER_S
"""By how many seconds an animation goes on in one tick, with room for games that round."""
FRAMES_PER_S = 90.0
"""Fewer ticks a second, one by one, are those of a game that waits for the screen."""
ENOUGH, SURELY_FASTER = 0.9, 1.3
SEVERAL = (2, 3, 6)
"""How many ticks may be given at a time: each divides a step, and the first ends where a tapped key is let go."""
GOES_ON = "its time keeps running while its clock is stopped"
OWN_TIME = "its play time keeps running while the game is stopped, so ticks are counted by its clock"
QUARTER, HALF = Fraction(1, 4), Fraction(1, 2)
ALIGN_QUARTERS = 16
FASTEST = 3.0
"""The speed for steps by speed when none is asked for: beyond, a step overshoots by whole ticks."""
ACT_SPEEDS = (1.0, 0.25, 0.1)
"""Speeds of a tick in which keys are pressed: so slow that a press arrives within it, and no slower than needed."""
SPEED_POLL_S = 0.001
"""So often the game is looked at while it runs."""


class Tick(Protocol):
    """What a pacer must see of the game after a tick."""

    @property
    def time_ms(self) -> int:
        """The game's own time."""
        ...


class GameClock(Protocol):
    """What a pacer needs of the control of a game's clock."""

    @property
    def queries(self) -> int:
        """How often the game has asked for the time."""
        ...

    def touch(self) -> int:
        """Ticks that have passed in long pauses; none does for a while from now on."""
        ...

    def now(self) -> float:
        """The game's own time in seconds, exact while it stands."""
        ...

    @property
    def speed(self) -> float:
        """How fast the game's time passes now."""
        ...

    def pause(self) -> None:
        """Stop the game's time."""
        ...

    def set_speed(self, factor: float) -> None:
        """Let the game's time run at this speed."""
        ...

    def advance(self, seconds_times_60: Fraction | int = 1) -> None:
        """Move the stopped time on by ticks."""
        ...

    def run(self, seconds_times_60: Fraction | int, factor: float) -> None:
        """Let the stopped time pass at a speed for so many ticks; then it stands again by itself."""
        ...


@dataclass(frozen=True)
class PacedRun:
    """How far a run went."""

    ticks: int
    game_s: float
    overshoot_s: float


Animated = Callable[[], tuple[float, ...]]
"""For how many seconds the animations of both fighters have played: these stand when the game stands."""


class Pacer(Protocol):
    """Lets the game run for a number of ticks."""

    stepping: str
    reason: str
    act_speed: float
    """How fast time passes while something is done after a tick; 0: it stands. Some games then use keys up."""

    def begin(self) -> None:
        """Stop the game and get ready for the first run."""
        ...

    def run(self, ticks: int, on_tick: Callable[[int, Tick], None], acts: Mapping[int, Callable[[], None]]) -> PacedRun:
        """Let `ticks` pass, tell of each one seen, and do what is to be done after a certain one; 0 is before all."""
        ...


def ticks_between(before_ms: int, after_ms: int) -> int:
    """Ticks that passed between two readings of the game's time. Going back, as a new game does, counts as one."""
    return 1 if after_ms < before_ms else round((after_ms - before_ms) / MS_PER_TICK)


class TickPacer:
    """Moves the stopped clock on by one tick at a time, and waits until the game has made it: exact."""

    stepping = "ticks"
    act_speed = 0.0

    def __init__(
        self,
        clock: GameClock,
        glance: Callable[[], Tick],
        *,
        game_speed: float = math.inf,
        source: TimeSource = REAL_TIME,
        limit_s: float = HANG_S,
        reason: str = "asked for",
        animated: Animated | None = None,
    ) -> None:
        self.reason = reason
        self._clock, self._glance, self._time, self._limit_s = clock, glance, source, limit_s
        self._animated = animated  # given if glances have the clock's time, which does not show whether a tick was made
        self.set_speed(game_speed)
        self.ticks_per_frame = 1
        """How many ticks are given at a time: more than one where the game shows few frames a second."""
        self.ticks_per_s = math.inf
        """How fast they came when they were tried."""
        self._counter, self._trickled = 0, clock.touch()
        self._due = -math.inf

    def set_speed(self, game_speed: float) -> None:
        """Let ticks follow each other as fast as at this speed of the game."""
        self._tick_s = 1.0 / (TICKS_PER_S * game_speed)

    def begin(self) -> None:
        """Stop the clock half a tick before the next tick, so that no rounding puts one on the edge."""
        self._clock.pause()
        before, played = self._at_rest().time_ms, self.played()
        for _ in range(ALIGN_QUARTERS):
            self._advance(QUARTER)
            now = self._at_rest().time_ms
            if self.played() != played if self._animated else ticks_between(before, now) >= 1:
                break
        else:
            raise GameHung(f"the game made no tick in {ALIGN_QUARTERS / 4:g} ticks' time; is it loading or in a menu?")
        self._advance(HALF)
        self._counter = self._at_rest().time_ms

    def run(self, ticks: int, on_tick: Callable[[int, Tick], None], acts: Mapping[int, Callable[[], None]]) -> PacedRun:
        """Let `ticks` pass one by one."""
        passed, pending = 0, dict(acts)
        if self._trickled != (trickled := self._clock.touch()):
            # What passed in a long pause is no part of this run.
            self._trickled, self._counter = trickled, self._at_rest().time_ms
        while passed < ticks:
            self._due = max(self._time.now(), self._due + self._tick_s)
            number = self._next_number(passed, ticks, pending)
            if self.act_speed > 0.0 and any(at <= passed for at in pending):
                number = 1
                self._advance_with([pending.pop(at) for at in sorted(pending) if at <= passed])
            else:
                _do(pending, passed)
                self._advance(number)
            tick = self._next_tick(number, last=number >= ticks - passed)
            passed += ticks_between(self._counter, tick.time_ms)
            self._counter = tick.time_ms
            on_tick(passed, tick)
            if self.act_speed == 0.0 or passed >= ticks:
                _do(pending, passed)
            if self._tick_s > 0.0:
                sleep_until(self._time, self._due)
        return PacedRun(passed, passed / TICKS_PER_S, (passed - ticks) / TICKS_PER_S)

    def measure(self) -> bool:
        """Try some ticks; do exactly those come that are given, and how fast?"""
        try:
            return not self.fault()
        except GameHung:
            return False

    def fault(self) -> str:
        """Try some ticks: what came instead of those that were given, or nothing; and note how fast they came."""
        self.begin()
        if self.goes_on():
            return GOES_ON
        took = []
        for number in range(1, PROBE_TICKS // self.ticks_per_frame + 1):
            played, begun = self.played(), self._time.now()
            ticks = self.run(self.ticks_per_frame, lambda _tick, _glance: None, {}).ticks
            took.append(self._time.now() - begun)
            if ticks != self.ticks_per_frame:
                return f"tick {number} of {PROBE_TICKS} was {ticks} ticks"
            if self._animated and self.ticks_per_frame == 1 and not _is_one_tick(played, self.played()):
                return f"tick {number} of {PROBE_TICKS} did not move the animations on by one tick"
        # By those that were not held up: a busy machine is not a game that waits for the screen.
        self.ticks_per_s = self.ticks_per_frame / max(sorted(took)[len(took) // 4], 1e-9)
        # A game that uses up what it is given bit by bit has stood still before, but does not after a tick.
        return GOES_ON if self.goes_on() else ""

    def played(self) -> tuple[float, ...]:
        """What the animations have played, where that tells of ticks."""
        return self._animated() if self._animated else ()

    def goes_on(self) -> bool:
        """Does the game go on although its clock stands?"""
        before = self._glance().time_ms, self.played()
        self._time.sleep(PROBE_STILL_S)
        return (self._glance().time_ms, self.played()) != before

    def _next_number(self, passed: int, ticks: int, pending: Mapping[int, object]) -> int:
        """How many ticks may be given at once before something is to be done."""
        borders = [at for at in (*pending, ticks) if at > passed]
        return min(self.ticks_per_frame, min(borders) - passed)

    def _advance_with(self, acts: list[Callable[[], None]]) -> None:
        """Let a tick pass, and do something while it does."""
        self._clock.run(1, self.act_speed)
        for act in acts:
            act()
        end = self._time.now() + self._limit_s
        while self._clock.speed != 0.0:
            if self._time.now() > end:
                raise SpeedControlError("the clock did not stop at the end of a tick: it kept running")
            self._time.sleep(POLL_S)

    def _advance(self, ticks: Fraction | int) -> None:
        try:
            self._clock.advance(ticks)
        except MisuseError as error:  # we paused it, so it has begun to run by itself
            raise SpeedControlError(str(error)) from error

    def _next_tick(self, number: int, *, last: bool) -> Tick:
        """What is seen after the next ticks, and when no more are wanted, after all of their work."""
        end = self._time.now() + self._limit_s
        while (came := ticks_between(self._counter, self._glance().time_ms)) < number:
            if self._time.now() > end:
                raise GameHung(f"the game made no tick for {self._limit_s:g} s; it hangs, loads or shows a menu")
            self._time.sleep(POLL_S)
        if came <= number and not last and not self._animated:
            self._time.sleep(SETTLE_S)
        else:
            await_queries(self._clock, self._time, TICK_QUERIES, limit_s=self._limit_s)
        return self._glance()

    def _at_rest(self) -> Tick:
        """What is seen when the game has used all the time it was given: it may have to make many ticks in one turn."""
        end = self._time.now() + self._limit_s
        last = self._glance().time_ms, self.played()
        while True:
            tick = after_a_turn(self._clock, self._glance, self._time, limit_s=self._limit_s)
            now = tick.time_ms, self.played()
            if now == last or self._time.now() > end:
                return tick
            last = now


def _do(pending: dict[int, Callable[[], None]], passed: int) -> None:
    for at in sorted(at for at in pending if at <= passed):
        pending.pop(at)()


def await_queries(clock: GameClock, source: TimeSource, count: int, *, limit_s: float = HANG_S) -> None:
    """Wait until the game has asked for the time so often from now on."""
    enough, end = clock.queries + count, source.now() + limit_s
    while clock.queries < enough:
        if source.now() > end:
            raise GameHung(f"the game has not asked for the time {count} times in {limit_s:g} s; it hangs or loads")
        source.sleep(POLL_S)


def after_a_turn(
    clock: GameClock,
    glance: Callable[[], Tick],
    source: TimeSource,
    at_least_s: float = LOOP_S,
    *,
    limit_s: float = HANG_S,
) -> Tick:
    """What is seen once the game's loop has had the chance to use what the clock gave it."""
    begin = source.now()
    await_queries(clock, source, LOOP_QUERIES, limit_s=limit_s)
    source.sleep(begin + at_least_s - source.now())
    return glance()


class SpeedPacer:
    """Lets the game run at a speed for the time of a step: for games that do not tick one by one by our clock."""

    stepping = "speed"
    act_speed = 0.0

    def __init__(
        self,
        clock: GameClock,
        glance: Callable[[], Tick],
        *,
        game_speed: float = 1.0,
        source: TimeSource = REAL_TIME,
        limit_s: float = HANG_S,
        reason: str = "asked for",
    ) -> None:
        self.reason = reason
        self._clock, self._glance, self._time, self._limit_s = clock, glance, source, limit_s
        self._speed = min(game_speed, FASTEST) if math.isinf(game_speed) else game_speed

    def begin(self) -> None:
        """Stop the game."""
        self._clock.pause()

    def run(self, ticks: int, on_tick: Callable[[int, Tick], None], acts: Mapping[int, Callable[[], None]]) -> PacedRun:
        """Let the time of `ticks` pass; the clock stops by itself, so that it does not matter when we are woken."""
        begin = last = self._glance().time_ms
        seen, pending = 0, dict(acts)
        if self.act_speed == 0.0:
            _do(pending, 0)

        def tell(tick: Tick) -> None:
            nonlocal begin, seen, last
            if tick.time_ms < begin:  # the game counts again, as after it was loaded
                begin = tick.time_ms
            last = tick.time_ms
            passed = max(seen, round((last - begin) / MS_PER_TICK))
            if passed > seen:
                seen = passed
                on_tick(seen, tick)
            for at in [at for at in pending if at <= seen]:
                pending.pop(at)()

        run_s = ticks / TICKS_PER_S / self._speed
        end = self._time.now() + run_s + self._limit_s
        try:
            while last == begin:  # a game that loads may let some time pass before it goes on
                self._clock.run(ticks, self._speed)
                _do(pending, 0)
                stands_by = self._time.now() + run_s + self._limit_s
                while self._clock.speed != 0.0:
                    if self._time.now() > stands_by:
                        raise SpeedControlError("the clock did not stop at the end of the step: it kept running")
                    self._time.sleep(SPEED_POLL_S)
                    tell(self._glance())
                tell(after_a_turn(self._clock, self._glance, self._time, SPEED_POLL_S))
                if last == begin and self._time.now() > end:
                    raise GameHung(
                        f"the game's time stood still for {self._limit_s:g} s; it hangs, loads or shows a menu"
                    )
        except BaseException:
            self._clock.pause()
            raise
        for act in pending.values():
            act()
        game_s = (last - begin) / 1000
        return PacedRun(round(game_s * TICKS_PER_S), game_s, game_s - ticks / TICKS_PER_S)

    def measure(self) -> float:
        """Ticks a second of some steps; leaves the game stopped."""
        self.begin()
        begun, ticks = self._time.now(), 0
        for _ in range(PROBE_STEPS):
            ticks += self.run(6, lambda _tick, _glance: None, {}).ticks
        return ticks / max(self._time.now() - begun, 1e-9)


def choose_pacer(
    clock: GameClock,
    glance: Callable[[], Tick],
    *,
    stepping: str = "auto",
    game_speed: float = 1.0,
    source: TimeSource = REAL_TIME,
    animated: Animated | None = None,
) -> Pacer:
    """The exact pacer if the game obeys its clock, found out by trying; else the other. Leaves the game stopped.

    Ticks are counted by play time, or by the clock if play time passes by itself while the `animated` stand.
    """
    if stepping not in STEPPINGS:
        raise MisuseError(f"stepping {stepping!r} is not known; give {', '.join(STEPPINGS)}")
    glance, animated = tick_source(clock, glance, source, animated)
    if stepping == "speed":
        by_speed = SpeedPacer(clock, glance, game_speed=game_speed, source=source)
        by_speed.begin()
        return by_speed
    exact = TickPacer(clock, glance, source=source, animated=animated)
    if stepping == "ticks":
        exact.set_speed(game_speed)
        exact.begin()
        return exact
    fault = probe(exact)  # as fast as it goes
    if not fault:
        exact.reason = f"{PROBE_TICKS} of {PROBE_TICKS} ticks came one by one"
        if animated:
            exact.reason += f"; {OWN_TIME}"
        wanted = TICKS_PER_S * min(game_speed, FASTEST)
        if exact.ticks_per_s < min(ENOUGH * wanted, FRAMES_PER_S):
            rough = SpeedPacer(clock, glance, game_speed=game_speed, source=source)
            if not _stays_exact(exact, wanted, rough):
                return rough
        exact.set_speed(game_speed)
        return exact
    log.warning("steps are not exact to the tick, since %s; the game is run and stopped instead", fault)
    rough = SpeedPacer(clock, glance, game_speed=game_speed, source=source, reason=fault)
    rough.begin()
    return rough


def _stays_exact(exact: TickPacer, wanted: float, rough: SpeedPacer) -> bool:
    """For a game of few frames a second: give several ticks a frame if it makes them; else is it faster by speed?"""
    best = one_s, _ = exact.ticks_per_s, 1
    seen = f"the game makes {one_s:.0f} frames a second (is vertical sync on?)"
    for exact.ticks_per_frame in SEVERAL:
        if best[0] < ENOUGH * wanted and exact.measure():
            best = max(best, (exact.ticks_per_s, exact.ticks_per_frame))
    exact.ticks_per_s, exact.ticks_per_frame = best
    if best[0] < ENOUGH * wanted and (by_speed := rough.measure()) > SURELY_FASTER * best[0]:
        rough.reason = f"{seen}: {by_speed / 6:.1f} steps a second by speed, {best[0] / 6:.1f} tick by tick"
        log.warning("steps are not exact to the tick, since %s", rough.reason)
        return False
    exact.begin()
    number = f"{exact.ticks_per_frame} ticks" if exact.ticks_per_frame > 1 else "one tick"
    exact.reason = f"{seen}: {number} at a time, {exact.ticks_per_s / 6:.1f} steps a second"
    log.warning("%s; how to switch it off is said in the documentation of the real game", exact.reason)
    return True


def tick_source(
    clock: GameClock, glance: Callable[[], Any], source: TimeSource, animated: Animated | None
) -> tuple[Callable[[], Any], Animated | None]:
    """What to count ticks by, and what else shows them: play time alone, unless it passes while the game stands."""
    if animated is None or not _passes_by_itself(clock, glance, source) or _moves(animated, source):
        return glance, None
    log.info("%s", OWN_TIME)
    return lambda: replace(glance(), time_ms=round(1000 * clock.now())), animated


def _passes_by_itself(clock: GameClock, glance: Callable[[], Tick], source: TimeSource) -> bool:
    clock.pause()
    for _ in range(OWN_TIME_LOOKS):
        before, begun = glance().time_ms, source.now()
        source.sleep(PROBE_STILL_S)
        if glance().time_ms - before < 1000 * OWN_TIME_RATE * (source.now() - begun):
            return False
    return True


def _moves(animated: Animated, source: TimeSource) -> bool:
    before = animated()
    source.sleep(PROBE_STILL_S)
    return animated() != before


def _is_one_tick(before: tuple[float, ...], after: tuple[float, ...]) -> bool:
    low, high = ONE_TICK
    return any(low < now - then < high for then, now in zip(before, after, strict=True))


def probe(pacer: TickPacer) -> str:
    """Why the game cannot be stepped tick by tick; empty if it can."""
    fault = ""
    for _ in range(2):  # a machine that is busy for a moment has the same faults, but not again
        try:
            fault = pacer.fault()
        except GameHung as error:
            fault = str(error)
        if not fault:
            break
    return fault
