"""What workers write to Redis, and how much of it is believed: sizes and numbers have limits, texts are plain.

An entry of experience is a small head and a frame. The worker, sequence and rows are those in the frame's header. The
head counts the rows that the worker has sent so far, this entry included, so that whoever reads the next entry knows
how many rows were lost before it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple

import msgspec

from soulsai.transport.frames import LARGEST_FRAME, BadFrame, peek
from soulsai.transport.links import LONGEST_TEXT, MOST, Count, Message, Progress, Text
from soulsai.transport.redis.keys import is_worker

HEAD = struct.Struct("<dQ")
"""When it was sent by the clock of Redis, and the rows sent so far."""
LARGEST_ENTRY = HEAD.size + LARGEST_FRAME
MOST_ROWS = 1 << 24
LARGEST_BEAT = 4096
EVERYONE = "*"
STOP = "stop"
LEFT = "left"
MOST_ABOUT = 16
MOST_COMMANDS = 64

BUFFER_FULL, OVERSIZED, UNSENT = WORKER_REASONS = ("buffer_full", "oversized", "unsent")
"""Why workers drop rows themselves; they may name no other reason."""

Reason = Annotated[str, msgspec.Meta(pattern=r"\A[a-z0-9_-]{1,40}\Z")]
Dropped = Annotated[dict[Reason, Count], msgspec.Meta(max_length=32)]


class Entry(NamedTuple):
    """An entry of experience that has a readable header."""

    worker: str
    sequence: int
    rows: int
    sent_s: float
    pushed: int
    """Rows that the worker says it has sent so far, with these."""


class Beat(Progress, frozen=True):
    """A heartbeat: how a worker is doing, and its side of the account."""

    still_s: float = 0.0
    """For how long the steps have not grown."""
    about: Annotated[dict[Text, Text], msgspec.Meta(max_length=MOST_ABOUT)] = msgspec.field(default_factory=dict)
    """Host, versions and the like."""
    time_s: float = 0.0
    """By the clock of Redis."""
    pushed: Count = 0
    """Rows in Redis for certain."""
    dropped: Dropped = msgspec.field(default_factory=dict)
    """Rows that the worker itself has dropped."""


class Command(msgspec.Struct, frozen=True, array_like=True):
    """For one worker or everyone of a name."""

    worker: Text
    what: Text
    time_s: float
    """By the clock of Redis."""


_commands = msgspec.msgpack.Decoder(list[Command])
_beats = msgspec.msgpack.Decoder(Beat)


def write_entry(message: Message, sent_s: float, pushed: int) -> bytes:
    """The bytes of a message; `pushed` are the rows sent with it so far."""
    return HEAD.pack(sent_s, pushed) + message.frame


def read_entry(name: str, data: bytes, most_rows: int = MOST_ROWS) -> Entry | None:
    """What an entry in the list of a name is, from its beginning; None if no worker of that name has written it."""
    if not HEAD.size < len(data) <= LARGEST_ENTRY:
        return None
    sent_s, pushed = HEAD.unpack_from(data)
    try:
        header = peek(memoryview(data)[HEAD.size :])
    except BadFrame:
        return None
    if not is_worker(header.worker, name) or not 0 < header.rows <= most_rows or not 0 < header.sequence < MOST:
        return None
    return Entry(
        header.worker, header.sequence, header.rows, sent_s if math.isfinite(sent_s) else 0.0, min(pushed, MOST - 1)
    )


def write_beat(progress: Progress, state: str, still_s: float, about: Mapping[str, str], *, time_s: float = 0.0,
               pushed: int = 0, dropped: Mapping[str, int] | None = None) -> bytes:  # fmt: skip
    """The bytes of a heartbeat."""
    texts = {key[:LONGEST_TEXT]: str(value)[:LONGEST_TEXT] for key, value in list(about.items())[:MOST_ABOUT]}
    told = msgspec.structs.asdict(progress) | {"state": state, "still_s": still_s, "about": texts, "time_s": time_s}
    return msgspec.msgpack.encode(Beat(**told, pushed=pushed, dropped=dict(dropped or {})))


def read_beat(data: bytes) -> Beat | None:
    """A heartbeat with nothing in its texts that a terminal would obey; None if no worker has written it."""
    try:
        beat = _beats.decode(data)
    except (ValueError, msgspec.MsgspecError):
        return None
    is_finite = all(map(math.isfinite, (beat.steps_per_s, beat.still_s, beat.time_s)))
    if not is_finite or not beat.dropped.keys() <= set(WORKER_REASONS):
        return None
    about = {_plain(key): _plain(value) for key, value in beat.about.items()}
    return msgspec.structs.replace(beat, state=_plain(beat.state), about=about)


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def write_commands(commands: Sequence[Command]) -> bytes:
    """The bytes of all commands for a name; only the newest are kept."""
    return msgspec.msgpack.encode(list(commands)[-MOST_COMMANDS:])


def read_commands(data: bytes | None) -> list[Command]:
    """Commands for a name; none if they cannot be read."""
    try:
        return _commands.decode(data) if data else []
    except (ValueError, msgspec.MsgspecError):
        return []
