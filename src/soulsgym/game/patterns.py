"""Byte patterns such as "48 8B ?? 05": what code in an executable looks like, and finding it there."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable

from soulsgym.errors import ReadFailed

DISPLACEMENT_AT, INSTRUCTION_LENGTH = 3, 7
"""A pattern of a base begins with `mov reg, [rip+d]` or `lea reg, [rip+d]`: REX, opcode, ModRM, then d."""
CHUNK_BYTES = 1 << 22
PAGE = 0x1000
LONGEST_PATTERN = 4096


class Pattern:
    """Bytes, each given or any."""

    def __init__(self, text: str) -> None:
        self.text = " ".join(text.split()).upper()
        self.parts = tuple(_part(word) for word in self.text.split(" "))
        if not any(part is not None for part in self.parts) or len(self.parts) > LONGEST_PATTERN:
            raise ValueError(f"must hold 1 to {LONGEST_PATTERN} bytes, not all of them ??")
        wanted = b"".join(b"." if part is None else re.escape(bytes([part])) for part in self.parts)
        self._matcher = re.compile(wanted, re.DOTALL)

    def __len__(self) -> int:
        return len(self.parts)

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and other.parts == self.parts

    def __hash__(self) -> int:
        return hash(self.parts)

    def offsets(self, data: bytes) -> list[int]:
        """Where it begins in `data`; matches that overlap count too."""
        found: list[int] = []
        match = self._matcher.search(data)
        while match is not None:
            found.append(match.start())
            match = self._matcher.search(data, match.start() + 1)
        return found


def _part(word: str) -> int | None:
    if word in ("?", "??"):
        return None
    if not re.fullmatch(r"[0-9A-F]{2}", word):
        raise ValueError(f"{word!r} is neither ?? nor a byte in two hexadecimal digits")
    return int(word, 16)


def scan(
    patterns: Iterable[Pattern],
    read: Callable[[int, int], bytes],
    ranges: Iterable[tuple[int, int]],
    *,
    chunk_bytes: int = CHUNK_BYTES,
) -> dict[Pattern, list[int]]:
    """Addresses at which each pattern begins in the ranges (address, size); pages that cannot be read are skipped."""
    found: dict[Pattern, list[int]] = {pattern: [] for pattern in patterns}
    overlap = max((len(pattern) for pattern in found), default=1) - 1
    for begin, size in ranges:
        tail, at, end = b"", begin, begin + size
        while at < end:
            piece = _readable(read, at, min(chunk_bytes, end - at))
            if not piece:
                tail, at = b"", (at // PAGE + 1) * PAGE
                continue
            data, start = tail + piece, at - len(tail)
            for pattern, addresses in found.items():
                # A match within the bytes that were looked at before has been counted already.
                old = len(tail) - len(pattern)
                addresses += [start + offset for offset in pattern.offsets(data) if offset > old]
            tail = data[max(len(data) - overlap, 0) :] if overlap else b""
            at += len(piece)
    return found


def _readable(read: Callable[[int, int], bytes], at: int, size: int) -> bytes:
    """What can be read from there on, at most `size` bytes; nothing if the page there cannot be read."""
    rest_of_page = PAGE - at % PAGE
    while True:
        try:
            return read(at, size)
        except ReadFailed:
            if size <= rest_of_page:
                return b""
            size = rest_of_page + max(0, size // 2 - rest_of_page) // PAGE * PAGE


def rip_target(match: int, instruction: bytes) -> int:
    """The address that the instruction at `match` means: its displacement counts from the next instruction."""
    (displacement,) = struct.unpack_from("<i", instruction, DISPLACEMENT_AT)
    return int(match + INSTRUCTION_LENGTH + displacement)
