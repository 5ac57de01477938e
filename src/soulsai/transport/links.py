"""The two ends of a transport: experience goes from workers to the learner, policies come back.

A chunk of experience travels as a parcel. `sent = stored + dropped by reason + in flight` holds for every worker, in
rows, at every moment: whoever drops says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Parcel:
    """A frame of experience on its way. `worker` is one life of a worker process, `sequence` counts from 1 in it."""

    worker: str
    sequence: int
    rows: int
    frame: bytes


@dataclass(frozen=True)
class Delivery:
    """A parcel as the learner gets it; `ticket` is the link's own."""

    parcel: Parcel
    ticket: object
    sent_s: float  # wall clock of the transport when it was sent


@dataclass(frozen=True)
class Progress:
    """How a worker is doing, for its heartbeat."""

    state: str = "starting"  # starting, playing or waiting
    policy: int = 0
    steps: int = 0
    steps_per_s: float = 0.0
    episodes: int = 0
    wins: int = 0
    fights: int = 0  # episodes among which wins are counted
    restarts: int = 0  # of the environment


@dataclass(frozen=True)
class Account:
    """What became of the rows of one worker life."""

    worker: str
    sent: int = 0
    stored: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)

    @property
    def in_flight(self) -> int:
        """Rows that are neither stored nor dropped."""
        return self.sent - self.stored - sum(self.dropped.values())


class WorkerLink(Protocol):
    """The worker's end."""

    run: str
    worker: str
    is_near: bool
    """Whether the other end is on this machine, where bytes are cheap."""

    @property
    def stopping(self) -> bool:
        """Whether the worker was told to stop, or is no longer wanted."""

    def send(self, parcel: Parcel) -> bool:
        """Hand a parcel over. Where there is no room this waits, or drops the oldest, as the link was made.

        False if the link was told to stop while it waited.
        """

    def newest(self) -> bytes | None:
        """The frame of the newest policy, once; None if there is none newer. Never waits."""

    def report(self, progress: Progress) -> None:
        """What the next heartbeats say."""

    def close(self, patience_s: float = 5.0) -> None:
        """Send what is left, for so long at most, and say goodbye."""


class LearnerLink(Protocol):
    """The learner's end."""

    def receive(self, limit_s: float) -> Sequence[Delivery]:
        """Parcels that have come, in the order of each worker; waits for the first for `limit_s` at most."""

    def settle(self, stored: Sequence[Delivery], dropped: Sequence[tuple[Delivery, str]] = (),
               repeated: Sequence[Delivery] = ()) -> None:  # fmt: skip
        """Acknowledge, in one step with the accounts; of a drop the reason, a repeated one is counted nowhere."""

    def publish(self, version: int, frame: bytes) -> None:
        """Make a policy the newest."""

    def gate(self, *, is_open: bool) -> None:
        """Closed: workers that can wait do."""

    def describe(self, values: Mapping[str, int | float | str]) -> None:
        """What is told about the learner to those who look at the fleet."""

    def accounts(self) -> Sequence[Account]:
        """Of all worker lives of this run."""

    def workers(self) -> int:
        """Workers whose heart beats."""

    def close(self) -> None:
        """Release what it holds."""
