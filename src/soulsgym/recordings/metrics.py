"""What a measurement of fidelity is, and what each should reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from soulsgym.recordings.departure import Departure


@dataclass(frozen=True)
class Goal:
    """One metric: its meaning, unit, what the simulator should reach, and what the recording itself allows."""

    id: str
    name: str
    unit: str
    meaning: str
    target: float | None
    floor: str
    higher_is_better: bool = False

    def met(self, value: float | None) -> bool | None:
        """Does a value reach the target? None where there is no value or no target."""
        if value is None or self.target is None:
            return None
        return value >= self.target if self.higher_is_better else value <= self.target


_ALL = (
    Goal("M1", "roll displacement", "m", "mean error of a free roll after its first step, 7 steps on", None, "0.21"),
    Goal("M2", "player, one step", "m", "mean error of the position one step on", 0.07, "0.046"),
    Goal("M3", "player, 10 steps", "m", "mean error of the position 10 steps on", 0.45, "0.35"),
    Goal("M4", "stamina, 10 steps", "SP", "mean error of the stamina 10 steps on", 1.5, "1.1"),
    Goal("M5", "mask, 10 steps", "%", "equal masks 10 steps on", 97.0, "97.8", True),
    Goal("M6", "player label, 10 steps", "%", "equal animations 10 steps on", 95.0, "96.3", True),
    Goal("M7", "player heading", "rad", "median error of the heading one step on, walking", None, "0.03"),
    Goal("M8", "boss root motion", "m", "rms of forward and right per step from a forced begin", 0.05, "0.02-0.03"),
    Goal("M9", "boss links", "s", "largest difference of the medians of link times", 0.05, "0.02"),
    Goal("M10", "hit time", "s", "largest difference of the moment of a hit", 0.03, "0.02"),
    Goal("M11", "boss speeds", "%", "larger difference of walking speed and saturated turn", 2.0, "1.7"),
)
GOALS = {goal.id: goal for goal in _ALL}


@dataclass(frozen=True)
class Metric:
    """A goal with what was measured; value None means that the recording holds nothing to measure it on."""

    goal: Goal
    value: float | None
    n: int
    details: Mapping[str, float] = field(default_factory=dict)
    fault: str = ""
    """Why the target is missed although the value reaches it, such as a wrong damage."""

    @property
    def ok(self) -> bool | None:
        """Is the target reached? None where there is nothing to compare."""
        met = self.goal.met(self.value)
        return False if met and self.fault else met


@dataclass(frozen=True)
class Fidelity:
    """The distance between a recording and the simulator."""

    source: str
    steps: int
    episodes: int
    unbound: tuple[str, ...]
    metrics: tuple[Metric, ...]
    departures: tuple[Departure, ...]
    """Of every fight where a replay without restarts leaves it."""
    exact: bool
    """Whether that replay is the whole fight from its seed, or the player beside the recorded boss."""
    note: str
    """Why a recording of the simulator is not replayed exactly."""

    def __getitem__(self, metric: str) -> Metric:
        return next(one for one in self.metrics if one.goal.id == metric)
