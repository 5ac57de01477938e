"""The two ends of a transport: experience goes from workers to the learner, policies come back.

`sent = stored + dropped by reason + in flight` holds for every worker, in rows, at every moment: whoever drops says so.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple, Protocol

import msgspec

MOST_MARKS = 2000
"""Workers of one name whose marks are remembered; of those not heard of for longer nothing can still be on its way."""
MOST = 10**15
LONGEST_TEXT = 200
ROUND = 1 << 16
"""Sequence numbers of a round: where a worker is checked, each world that it makes begins with the first of one."""
ORDER = 1 << 32
"""Versions of the policy in one generation; a learner that is started again begins a new one, so none repeats."""

Text = Annotated[str, msgspec.Meta(max_length=LONGEST_TEXT)]
Count = Annotated[int, msgspec.Meta(ge=0, lt=MOST)]


class Played(NamedTuple):
    """What the receiver has found in a chunk; of standard fights the wins are counted."""

    steps: int
    episodes: int
    fights: int
    wins: int


@dataclass(frozen=True)
class Message:
    """A frame of experience on its way. `worker` is one life of a worker process, `sequence` counts from 1 in it.

    `rows` is what the sender says until it was opened; then it is known what was `played`. One that a checkpoint
    `is_held` by is to be counted, but not learned from once more.
    """

    worker: str
    sequence: int
    rows: int
    frame: bytes | memoryview
    sent_s: float = 0.0  # wall clock of the transport when it was sent
    played: Played | None = None
    is_held: bool = False


class Progress(msgspec.Struct, frozen=True):
    """How a worker is doing, for its heartbeat."""

    state: Text = "starting"  # starting, playing or waiting
    policy: Count = 0
    steps: Count = 0
    steps_per_s: float = 0.0
    episodes: Count = 0
    wins: Count = 0
    fights: Count = 0  # episodes among which wins are counted
    restarts: Count = 0  # of the environment


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


class Marks:
    """The highest sequence of every worker; of a name, the worker not heard of for longest is forgotten first."""

    def __init__(self, marks: Mapping[str, int] | None = None) -> None:
        self._marks: dict[str, dict[str, int]] = {}
        for worker, sequence in (marks or {}).items():
            self.move(worker, sequence)

    def get(self, worker: str) -> int:
        """The mark of a worker, 0 if there is none."""
        return self._marks.get(name_of(worker), {}).get(worker, 0)

    def move(self, worker: str, sequence: int) -> bool:
        """Move a mark up; False if the sequence is not above it, so a repeat."""
        marks = self._marks.setdefault(name_of(worker), {})
        before = marks.pop(worker, 0)
        marks[worker] = max(before, sequence)
        if len(marks) > MOST_MARKS:
            marks.pop(next(iter(marks)))
        return sequence > before

    def forget(self, name: str) -> None:
        """Nothing of a name is on its way any more."""
        self._marks.pop(name, None)

    def as_dict(self) -> dict[str, int]:
        """For a checkpoint."""
        return {worker: mark for marks in self._marks.values() for worker, mark in marks.items()}


class WorkerLink(Protocol):
    """The worker's end."""

    run: str
    worker: str
    is_near: bool
    """Whether the other end is on this machine, where bytes are cheap."""
    has_sent: bool
    """Whether anything was handed over yet."""

    @property
    def is_waiting(self) -> bool:
        """Whether someone waits to hand a message over."""

    @property
    def stopping(self) -> bool:
        """Whether the worker was told to stop, or is no longer wanted."""

    def send(self, message: Message) -> bool:
        """Hand a message over. Where there is no room this waits, or drops the oldest, as the link was made.

        False if the link was told to stop while it waited.
        """

    def newest(self) -> bytes | None:
        """The frame of the newest policy, once; None if there is none newer. Never waits."""

    def report(self, progress: Progress) -> None:
        """What the next heartbeats say."""

    def close(self, patience_s: float = 5.0) -> None:
        """Send what is left, for so long at most, and say goodbye."""


class LearnerLink(ABC):
    """The learner's end. Which messages are stored is remembered by its checkpoints."""

    has_invitations = False
    """Whether names are invited, so that `end` can end it."""

    def __init__(self) -> None:
        self._stored = Marks()

    def mark_stored(self, messages: Iterable[Message]) -> None:
        """These will be in the next checkpoint."""
        for message in messages:
            self._stored.move(message.worker, message.sequence)

    def marks(self) -> dict[str, int]:
        """The highest stored sequence of every worker, for a checkpoint."""
        return self._stored.as_dict()

    def restore(self, marks: Mapping[str, int]) -> None:
        """Go on from a checkpoint: what it holds counts as stored and does not come again."""
        self._stored = Marks(marks)

    @abstractmethod
    def receive(self, limit_s: float) -> Sequence[Message]:
        """New messages, in the order of each worker; waits for the first for `limit_s` at most."""

    @abstractmethod
    def settle(self, stored: Sequence[Message], dropped: Sequence[tuple[Message, str]] = ()) -> None:
        """Acknowledge, in one step with the accounts; of a drop the reason."""

    @abstractmethod
    def publish(self, version: int, frame: bytes) -> None:
        """Make a policy the newest."""

    @abstractmethod
    def gate(self, *, is_open: bool) -> None:
        """Closed: workers that can wait do."""

    @abstractmethod
    def describe(self, values: Mapping[str, int | float | str]) -> None:
        """What is told about the learner to those who look at the fleet."""

    @abstractmethod
    def accounts(self) -> Sequence[Account]:
        """Of all worker lives of this run."""

    @abstractmethod
    def workers(self) -> int:
        """Workers whose heart beats."""

    def end(self, name: str) -> str:
        """End the invitation of a name, with all its connections; why that failed, empty if it did not."""
        return "nobody is invited"

    @abstractmethod
    def close(self) -> None:
        """Release what it holds."""


def name_of(worker: str) -> str:
    """The name that a worker belongs to, such as alice of alice.1.5f3a9c."""
    return worker.partition(".")[0]


def round_of(sequence: int) -> tuple[int, int]:
    """The round that a chunk belongs to, and its place in it, from 0 on."""
    return divmod(sequence - 1, ROUND)


def version_of(generation: int, number: int) -> int:
    """The version of the policy published as number `number` by one start of the learner."""
    return generation * ORDER + number


def lag_of(newest: int, version: int) -> int:
    """How many versions a policy is old; of another generation, how far the two are apart."""
    return abs(newest % ORDER - version % ORDER)
