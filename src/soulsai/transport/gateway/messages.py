"""What a worker and a gateway say to each other: a list of commands, and a list with an answer to each.

Only what a worker needs can be said. Every length has a limit, and nothing names a key: the gateway knows the run and
the name from the address and the credentials of the connection.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from soulsai.transport.redis.entries import LARGEST_BEAT
from soulsai.transport.redis.keys import Keys

MOST_COMMANDS = 16
MOST_ENTRIES = 32
WHAT = ("welcome", "policy", "version", "gate", "to")
REFUSED, LATER = 4401, 4429
"""Why a gateway hangs up: the name is not invited, or has sent too much and may come again later."""

Worker = Annotated[str, msgspec.Meta(max_length=64)]
BeatData = Annotated[bytes, msgspec.Meta(max_length=LARGEST_BEAT)]


class Push(msgspec.Struct, tag="push", array_like=True, frozen=True, forbid_unknown_fields=True):
    """Entries of experience; answered with how many wait for the learner."""

    entries: Annotated[list[bytes], msgspec.Meta(min_length=1, max_length=MOST_ENTRIES)]


class SendBeat(msgspec.Struct, tag="beat", array_like=True, frozen=True, forbid_unknown_fields=True):
    """A heartbeat."""

    worker: Worker
    data: BeatData


class Waiting(msgspec.Struct, tag="waiting", array_like=True, frozen=True, forbid_unknown_fields=True):
    """How many entries of this name wait for the learner."""


class Get(msgspec.Struct, tag="get", array_like=True, frozen=True, forbid_unknown_fields=True):
    """Something that the learner has published, or said to this name."""

    what: Literal["welcome", "policy", "version", "gate", "to"]


class Clock(msgspec.Struct, tag="time", array_like=True, frozen=True, forbid_unknown_fields=True):
    """What time it is at the learner: seconds and microseconds."""


class Failure(msgspec.Struct, frozen=True):
    """An answer: it was not done, and why."""

    why: str


Command: TypeAlias = Push | SendBeat | Waiting | Get | Clock
Answer: TypeAlias = int | bytes | tuple[int, int] | Failure | None

requests = msgspec.msgpack.Decoder(Annotated[list[Command], msgspec.Meta(min_length=1, max_length=MOST_COMMANDS)])
answers = msgspec.msgpack.Decoder(list[Answer])


def key_of(keys: Keys, name: str, what: str) -> str:
    """Where Redis holds what can be asked for."""
    return keys.to(name) if what == "to" else str(getattr(keys, what))
