"""What comes from the workers: checked, told from what came before, and remembered until it is safe."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from soulsai.transport.experience import Layout, RolloutChunk, TransitionChunk, unpack
from soulsai.transport.frames import BadFrame, Header, Kind
from soulsai.transport.links import Delivery, LearnerLink

MOST_MARKS = 20_000
"""Worker lives remembered; of older ones nothing can still be on its way."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Arrival:
    """A chunk that may be learned from."""

    delivery: Delivery
    header: Header
    chunk: TransitionChunk | RolloutChunk


class Intake:
    """Takes chunks from the link. What is wrong with one is counted, said once per worker, and never stops a run."""

    def __init__(self, link: LearnerLink, layout: Layout, *, run: str, say: Callable[[str], None]) -> None:
        self._link, self._layout, self._run, self._say = link, layout, run, say
        self._kind = Kind.ROLLOUT if layout.rollout else Kind.TRANSITIONS
        self._seen: dict[str, int] = {}
        """The last sequence number of every worker life that came."""
        self._kept: dict[str, int] = {}
        """The same, of those that were stored: what a checkpoint remembers."""
        self._told: set[str] = set()
        self._ages_s: list[float] = []

    def take(self, limit_s: float) -> list[Arrival]:
        """Chunks that came and are good; waits for the first for `limit_s` at most."""
        arrivals: list[Arrival] = []
        dropped: list[tuple[Delivery, str]] = []
        repeated: list[Delivery] = []
        for delivery in self._link.receive(limit_s):
            parcel = delivery.parcel
            if parcel.sequence <= self._seen.get(parcel.worker, 0):
                repeated.append(delivery)
                continue
            self._seen[parcel.worker] = parcel.sequence
            try:
                arrivals.append(self._opened(delivery))
            except BadFrame as error:
                dropped.append((delivery, error.reason))
                self._tell(parcel.worker, error)
            self._ages_s.append(max(0.0, time.time() - delivery.sent_s))
        if dropped or repeated:
            self._link.settle((), dropped, repeated)
        return arrivals

    def kept(self, arrivals: Sequence[Arrival]) -> None:
        """These were stored or used, and will be in the next checkpoint."""
        for arrival in arrivals:
            self._kept[arrival.delivery.parcel.worker] = arrival.delivery.parcel.sequence
        for marks in (self._kept, self._seen):
            while len(marks) > MOST_MARKS:
                marks.pop(next(iter(marks)))

    def ages_s(self) -> list[float]:
        """How old chunks were when they came, since the last time asked."""
        ages, self._ages_s = self._ages_s, []
        return ages

    def notes(self) -> dict[str, Any]:
        """What a checkpoint has to remember, to know again what it holds."""
        return {"kept": dict(self._kept)}

    def restore(self, notes: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        self._kept = dict(notes["kept"])
        self._seen = dict(self._kept)

    def _opened(self, delivery: Delivery) -> Arrival:
        parcel = delivery.parcel
        header, chunk = unpack(parcel.frame, self._layout, run=self._run, kind=self._kind)
        if (header.worker, header.sequence, header.rows) != (parcel.worker, parcel.sequence, parcel.rows):
            raise BadFrame("invalid", "the frame is of another worker, sequence or size than its parcel says")
        return Arrival(delivery, header, chunk)

    def _tell(self, worker: str, error: BadFrame) -> None:
        if worker not in self._told:
            self._told.add(worker)
            self._say(f"a message of worker {worker} was dropped ({error}); further ones are only counted")
