"""What a worker tells about itself with each heartbeat, and what the operator can tell it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec

from soulsai.transport.links import Progress

EVERYONE = "*"
STOP = "stop"
LEFT = "left"
MOST_ABOUT = 16
LONGEST_TEXT = 200
MOST_COMMANDS = 64

Text = Annotated[str, msgspec.Meta(max_length=LONGEST_TEXT)]
Count = Annotated[int, msgspec.Meta(ge=0, lt=10**15)]


class Beat(msgspec.Struct, frozen=True):
    """One heartbeat."""

    state: Text = "starting"
    policy: Count = 0
    steps: Count = 0
    steps_per_s: float = 0.0
    episodes: Count = 0
    wins: Count = 0
    fights: Count = 0
    restarts: Count = 0
    still_s: float = 0.0
    """For how long the steps have not grown."""
    about: Annotated[dict[Text, Text], msgspec.Meta(max_length=MOST_ABOUT)] = msgspec.field(default_factory=dict)
    """Host, versions and the like."""


class Command(msgspec.Struct, frozen=True, array_like=True):
    """For one worker or everyone of a name."""

    worker: Text
    what: Text
    time_s: float
    """By the clock of the server."""


_commands = msgspec.msgpack.Decoder(list[Command])
_beats = msgspec.msgpack.Decoder(Beat)


def write_beat(progress: Progress, state: str, still_s: float, about: Mapping[str, str]) -> bytes:
    """The bytes of a heartbeat."""
    texts = {key[:LONGEST_TEXT]: str(value)[:LONGEST_TEXT] for key, value in list(about.items())[:MOST_ABOUT]}
    beat = Beat(
        state, progress.policy, progress.steps, progress.steps_per_s, progress.episodes, progress.wins,
        progress.fights, progress.restarts, still_s, texts,
    )  # fmt: skip
    return msgspec.msgpack.encode(beat)


def read_beat(data: bytes) -> Beat | None:
    """A heartbeat with nothing in its texts that a terminal would obey; None if it is none."""
    try:
        beat = _beats.decode(data)
    except (ValueError, msgspec.MsgspecError):
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
