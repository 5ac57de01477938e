"""Where the time of a loop goes."""

from __future__ import annotations

from collections import defaultdict
from time import perf_counter

OTHER = "other"
"""The phase of time spent outside of all phases."""
TELEMETRY = "telemetry"
"""The phase of metrics and recordings."""


class Phase:
    """Time inside its `with` block counts for its name, minus that of nested phases."""

    __slots__ = ("_clock", "_name")

    def __init__(self, clock: LoopClock, name: str) -> None:
        self._clock = clock
        self._name = name

    def __enter__(self) -> None:
        self._clock._turn()
        self._clock._stack.append(self._name)

    def __exit__(self, *_: object) -> None:
        self._clock._turn()
        self._clock._stack.pop()


class LoopClock:
    """Adds up the seconds spent in each phase; every moment counts for exactly one."""

    def __init__(self) -> None:
        self._phases: dict[str, Phase] = {}
        self._stack = [OTHER]
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._mark_s = perf_counter()

    def phase(self, name: str) -> Phase:
        """Use as `with clock.phase("act"): ...`."""
        phase = self._phases.get(name)
        if phase is None:
            phase = self._phases[name] = Phase(self, name)
        return phase

    def _turn(self) -> None:
        now_s = perf_counter()
        self._seconds[self._stack[-1]] += now_s - self._mark_s
        self._mark_s = now_s

    @property
    def total(self) -> float:
        """Seconds since the start or the last `take`."""
        self._turn()
        return sum(self._seconds.values())

    def shares(self) -> dict[str, float]:
        """Share of the total by phase; they sum to 1."""
        total_s = self.total
        return {name: seconds / total_s if total_s else 0.0 for name, seconds in self._seconds.items()}

    def take(self) -> dict[str, float]:
        """Seconds by phase, and begin again."""
        self._turn()
        taken = dict(self._seconds)
        self._seconds.clear()
        return taken
