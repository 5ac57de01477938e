"""A recording as an engine: what was played is played again, whatever is pressed, so that parts can look at it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.actions import NOTHING, Controls
from soulsgym.engine import Snapshot
from soulsgym.errors import MisuseError
from soulsgym.recordings.recording import Recording
from soulsgym.state import FIGHT, Outcome

SUMS, BLOWS = ("damage_dealt", "damage_taken"), ("hit_by", "landed", "dodged")


class RecordedEngine:
    """The fights of a recording one after the other: each reset begins the next one."""

    missing_fields: tuple[str, ...] = ()

    def __init__(self, recording: Recording) -> None:
        self.fights = np.zeros(1, FIGHT)
        self._recording, self._bounds = recording, iter(recording.bounds())
        self._place, self._end = 0, 0

    @property
    def action(self) -> int:
        """The action that was played next."""
        return int(self._recording.actions[self._place + 1])

    @property
    def is_at_end(self) -> bool:
        """Whether nothing more was recorded of this fight."""
        return self._place + 1 >= self._end or bool(self.fights["outcome"][0] != Outcome.RUNNING)

    def reset(
        self, mask: npt.NDArray[np.bool_], starts: npt.NDArray[Any], seeds: npt.NDArray[np.uint64] | None
    ) -> None:
        """Begin the next fight of the recording."""
        self._place, self._end = next(self._bounds)
        self.fights[0] = self._recording.fights[self._place]

    def step(self, controls: Controls, *, skip: bool = False) -> None:
        """Go on to the next record, and with `skip` to the next one that left a choice, as simulator and game do."""
        if self.is_at_end:
            return
        fight = self.fights[0]
        self._next()
        while skip and self._is_forced():
            before = {name: fight[name].copy() for name in SUMS + BLOWS}
            self._next()
            for name in SUMS:
                fight[name] += before[name]
            for name in BLOWS:
                fight[name] = fight[name] if fight[name] >= 0 else before[name]

    def _next(self) -> None:
        self._place += 1
        self.fights[0] = self._recording.fights[self._place]

    def _is_forced(self) -> bool:
        return not self.is_at_end and not self.fights["action_mask"][0, :NOTHING].any()

    def check_starts(self, starts: npt.NDArray[Any]) -> None:
        """A recording begins where it began."""
        raise MisuseError("a recorded fight begins where it began; leave the start out")

    def snapshot(self) -> Snapshot:
        """A recording cannot be left and come back to."""
        raise MisuseError("a recording has no snapshots; repeat it from its beginning")

    def restore(self, snapshot: Snapshot) -> None:
        """Refused."""
        self.snapshot()

    def close(self) -> None:
        """Nothing is held."""
