"""Events of a run worth a message: it wins, stalls, loses its workers or ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from soulsai.runs.stamps import utc_stamp
from soulsai.runs.status import GOING, KILLED

WON_AT = 0.9
STALL_S = 300.0
LUCK = 0.15
"""How far below the wanted win rate the interval may begin: 3 fights won of 3 do not count, 20 of 20 do."""
LONGEST_NAME = 100

ENDINGS = {
    "finished": "has finished",
    "stopped": "was stopped and saved",
    "failed": "has failed; its log.txt says why",
    KILLED: "was killed; continue from its last checkpoint with --resume",
}


@dataclass(frozen=True)
class Reading:
    """A run at one moment."""

    state: str
    step: int = 0
    steps: int = 0
    win_rate: float | None = None
    low: float | None = None
    high: float | None = None
    """Of the newest evaluation, with its 95 % interval."""
    workers: float | None = None
    """Live workers; None for a run without a fleet."""


@dataclass(frozen=True)
class Event:
    """A message."""

    event: str
    text: str
    step: int
    win_rate: float | None = None


class Watch:
    """Finds what is new in readings of a run. Each event is sent once per change of state."""

    def __init__(self, run: str, *, won_at: float = WON_AT, stall_s: float = STALL_S) -> None:
        self._run = "".join(each if each.isprintable() else " " for each in run)[:LONGEST_NAME]
        self._won_at, self._stall_s = won_at, stall_s
        self._won = self._stalled = self._ended = False
        self._had_workers = self._lost_workers = False
        self._step, self._moved_s = -1, 0.0

    def look(self, reading: Reading, now_s: float) -> list[Event]:
        """New events for this reading; `now_s` is a monotonic time."""
        if self._ended:
            return []
        found = [self._win(reading), self._stall(reading, now_s), self._workers(reading), self._end(reading)]
        return [
            Event(event, f"{self._run}: {text}", reading.step, reading.win_rate)
            for event, text in (each for each in found if each)
        ]

    def _win(self, reading: Reading) -> tuple[str, str] | None:
        """Won: the rate is reached and the interval is not so wide that it may be luck. Undone: clearly below."""
        rate, low, high = reading.win_rate, reading.low, reading.high
        if rate is None or low is None or high is None:
            return None
        if self._won:
            self._won = rate >= self._won_at - LUCK
            return None
        if rate < self._won_at or low < self._won_at - LUCK:
            return None
        self._won = True
        interval = f"95 % interval {100 * low:.1f} to {100 * high:.1f} %"
        return "won", f"won {100 * rate:.1f} % of its evaluation fights ({interval}) at step {reading.step:,}"

    def _stall(self, reading: Reading, now_s: float) -> tuple[str, str] | None:
        if reading.step != self._step or reading.state == "paused":
            moved = self._stalled and reading.step != self._step
            self._step, self._moved_s = reading.step, now_s
            if not moved:
                return None
            self._stalled = False
            return "going_on", f"continues, at step {reading.step:,}"
        if self._stalled or now_s - self._moved_s < self._stall_s:
            return None
        self._stalled = True
        return "stalled", f"stalls: no new steps for {self._stall_s:.0f} s, at step {reading.step:,}"

    def _workers(self, reading: Reading) -> tuple[str, str] | None:
        if reading.workers is None or reading.state not in GOING:
            return None
        if reading.workers > 0:
            self._had_workers, lost, self._lost_workers = True, self._lost_workers, False
            return (
                ("workers_back", f"has workers again ({reading.workers:.0f}), at step {reading.step:,}")
                if lost
                else None
            )
        if self._lost_workers or not self._had_workers:
            return None
        self._lost_workers = True
        return "workers_lost", f"has lost all of its workers, at step {reading.step:,}"

    def _end(self, reading: Reading) -> tuple[str, str] | None:
        if reading.state in GOING:
            return None
        self._ended = True
        of = f" of {reading.steps:,}" if reading.steps else ""
        rate = "" if reading.win_rate is None else f", winning {100 * reading.win_rate:.1f} %"
        how = ENDINGS.get(reading.state, "has ended")
        return reading.state, f"{how}, at step {reading.step:,}{of}{rate}"


def payload(run: str, event: Event) -> dict[str, Any]:
    """The message: "text" is what Slack and Mattermost show, "content" what Discord shows; the rest is for programs."""
    return {
        "text": event.text,
        "content": event.text,
        "run": run,
        "event": event.event,
        "step": event.step,
        "win_rate": event.win_rate,
        "time": utc_stamp(),
    }
