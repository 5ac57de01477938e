"""Writing several things to Redis in one step, also to one that is full.

A transaction with a command that takes memory is refused as a whole by a Redis that has none left, and then nothing
could be acknowledged to make room. A script may go on with anything once it has begun to write.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

Word = str | bytes | int
Command = Sequence[Word]
MOST_WORDS = 1000
"""Ids in one command: a script cannot hand over many thousands."""

SCRIPT = """
redis.call('DEL', KEYS[1])
local at = 1
while at <= #ARGV do
    local words = tonumber(ARGV[at])
    redis.call(unpack(ARGV, at + 1, at + words))
    at = at + words + 1
end
"""
"""The first command frees memory, if anything; so it is allowed, and all others after it are too."""


def write_at_once(client: Any, scratch: str, commands: Sequence[Command]) -> None:
    """Run the commands in one step; `scratch` is a key of ours that nobody uses."""
    words: list[Word] = []
    for command in commands:
        words += [len(command), *command]
    client.eval(SCRIPT, 1, scratch, *words)


def in_pieces(ids: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """The ids, a bearable number at a time."""
    for begin in range(0, len(ids), MOST_WORDS):
        yield ids[begin : begin + MOST_WORDS]
