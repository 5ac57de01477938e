"""The binary form of everything that crosses a process boundary: a prefix, a header, and arrays of numbers.

Nothing in a frame is trusted: sizes are compared with limits before memory is taken, and nothing is unpickled. The
layout is described in docs/message-format.md.
"""

from __future__ import annotations

import ctypes
import math
import struct
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal

import lz4.block  # type: ignore[import-untyped]
import msgspec
import numpy as np
import numpy.typing as npt
import xxhash

from soulsai.errors import TransportError
from soulsgym.errors import MisuseError

PROTOCOL = 4
"""Version of the layout and of what the kinds hold; only equal ones understand each other."""
MAGIC = b"SOUL"
MIB = 1 << 20
LARGEST_FRAME = 16 * MIB
"""Bytes of a frame as it travels."""
LARGEST_BODY = 64 * MIB
"""Bytes of all arrays of a frame, unpacked; also of a whole frame with a policy, which hardly shrinks."""
LARGEST_UNSQUEEZED = 8 * MIB
"""Bytes of all arrays above which they are packed in any case."""
LARGEST_HEADER = 4096
MOST_ARRAYS = 32
MOST_DIMENSIONS = 4
WHOLE = (1 << 63) - 1
"""Largest whole number in a header."""

ALIGNED = 8
"""The body, and every array in it, begins at a multiple of so many bytes."""
WORTH_PACKING = 7 / 8
"""A body that does not shrink to this share travels as it is, and is read without a copy."""
HURRY = 8
"""How much LZ4 hurries: a third less work for a few percent more bytes, measured on encoded fights."""
MOST_EXPANSION = 255
"""Bytes that a byte of LZ4 can become, at most."""
LARGEST_FREED = 32 * MIB
"""Freed bytes that a process may keep for later; glibc allows no more for a block."""
MOST_FREED = 256 * MIB
"""All together in a learner, which unpacks many frames at once."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Of glibc's mallopt: freed bytes beyond which memory is given back, and from which a block is its own mapping."""

PREFIX = struct.Struct("<4sHH")
"""The magic word, the protocol, and the length of the header."""
CHECKSUM = struct.Struct("<Q")
HEADER_AT = PREFIX.size + CHECKSUM.size

Array = npt.NDArray[Any]
Reason = Literal["malformed", "version", "foreign", "invalid"]
Count = Annotated[int, msgspec.Meta(ge=0, le=WHOLE)]
Word = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9._-]{1,80}\Z")]
WordOrNone = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9._-]{0,80}\Z")]
ArrayName = Annotated[str, msgspec.Meta(pattern=r"\A[a-z][a-z_]{0,31}\Z")]
Dimension = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_BODY)]
Shape = Annotated[tuple[Dimension, ...], msgspec.Meta(max_length=MOST_DIMENSIONS)]


class Kind(StrEnum):
    """What a frame is about."""

    CHUNK = "chunk"
    POLICY = "policy"
    WELCOME = "welcome"


class BadFrame(Exception):
    """Bytes that are no frame this side can use; `reason` says why in one word."""

    def __init__(self, reason: Reason, text: str) -> None:
        self.reason: Reason = reason
        super().__init__(f"{reason}: {text}")


class ArrayEntry(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One array of the body."""

    name: ArrayName
    dtype: Literal["f4", "f8", "u1", "u2", "i4", "i8", "b1"]
    shape: Shape


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a frame says about itself. `steps` are environment steps; `packed`: the body is a block of LZ4."""

    kind: Kind
    run: Word
    worker: WordOrNone
    sequence: Count
    policy: Count
    rows: Count
    steps: Count
    packed: bool
    arrays: Annotated[tuple[ArrayEntry, ...], msgspec.Meta(max_length=MOST_ARRAYS)]


@dataclass(frozen=True)
class Frame:
    """A frame that was read; the arrays are views that cannot be written to."""

    header: Header
    arrays: dict[str, Array]


_headers = msgspec.msgpack.Decoder(Header)
_DTYPES = {code: np.dtype(f"<{code}") for code in ("f4", "f8", "u1", "u2", "i4", "i8", "b1")}


def encode(
    kind: Kind,
    *,
    run: str,
    worker: str = "",
    sequence: int = 0,
    policy: int = 0,
    rows: int = 0,
    steps: int = 0,
    arrays: Mapping[str, Array],
    squeeze: bool = True,
) -> bytes:
    """A frame of these arrays; TransportError if it is too large to travel.

    Without `squeeze` only a large one is packed: within one machine bytes are cheaper than the work.
    """
    plain = {name: _plain(name, array) for name, array in arrays.items()}
    body: list[Any] = [piece for array in plain.values() for piece in (array, bytes(-array.nbytes % ALIGNED))]
    size = sum(_align(array.nbytes) for array in plain.values())
    _check_fits(size, LARGEST_BODY)
    packed = False
    if (size and squeeze) or size > LARGEST_UNSQUEEZED:
        block = lz4.block.compress(b"".join(body), mode="fast", acceleration=HURRY, store_size=False)
        packed = len(block) < WORTH_PACKING * size
        body = [block] if packed else body
    entries = tuple(ArrayEntry(name, array.dtype.str[1:], array.shape) for name, array in plain.items())  # type: ignore[arg-type]
    header = msgspec.msgpack.encode(Header(kind, run, worker, sequence, policy, rows, steps, packed, entries))
    try:
        _read_header(header)
    except BadFrame as error:
        raise MisuseError(f"a frame cannot say this about itself: {error}") from error
    prefix, gap = PREFIX.pack(MAGIC, PROTOCOL, len(header)), bytes(-(HEADER_AT + len(header)) % ALIGNED)
    frame = b"".join((prefix, CHECKSUM.pack(_checksum(prefix, header, gap, *body)), header, gap, *body))
    _check_fits(len(frame), _largest(kind))
    return frame


def decode(data: bytes | memoryview, kind: Kind, check: Callable[[Header], None] = lambda header: None) -> Frame:
    """Read a frame of this kind; BadFrame, whatever is wrong with it.

    `check` may refuse it by its header, before anything is unpacked: a few bytes can become very many.
    """
    protocol = protocol_of(data)
    if protocol is not None and protocol != PROTOCOL:
        raise BadFrame("version", f"it was made for protocol {protocol}, this side has {PROTOCOL}")
    header = peek(data)
    if len(data) > _largest(header.kind):
        raise BadFrame("malformed", "it is larger than allowed")
    view = memoryview(data)
    if _checksum(view[: PREFIX.size], view[HEADER_AT:]) != CHECKSUM.unpack_from(data, PREFIX.size)[0]:
        raise BadFrame("malformed", "the checksum does not match")
    if header.kind is not kind:
        raise BadFrame("invalid", f"a frame of kind {header.kind} does not belong here")
    check(header)
    stored = view[_align(HEADER_AT + PREFIX.unpack_from(data)[2]) :]
    sizes = [_size(entry) for entry in header.arrays]
    body = _body(stored, sum(map(_align, sizes)), packed=header.packed)
    arrays, at = {}, 0
    for entry, size in zip(header.arrays, sizes, strict=True):
        arrays[entry.name] = _view(body[at : at + size], entry)
        at += _align(size)
    return Frame(header, arrays)


def protocol_of(data: bytes | memoryview) -> int | None:
    """The protocol that a frame was made for, which is at the same place in all of them; None if it is no frame."""
    if len(data) < PREFIX.size:
        return None
    magic, protocol, _ = PREFIX.unpack_from(data)
    return int(protocol) if magic == MAGIC else None


def peek(data: bytes | memoryview) -> Header:
    """What a frame says about itself, from its beginning alone; BadFrame if that cannot be read."""
    if protocol_of(data) != PROTOCOL:
        raise BadFrame("malformed", "it does not begin like a frame")
    return _read_header(memoryview(data)[HEADER_AT:][: PREFIX.unpack_from(data)[2]])


def keep_freed_memory(most: int = LARGEST_FREED) -> bool:
    """Let the C library keep this much freed memory for the next frames; for processes that read many of them.

    A frame is unpacked into fresh memory. Where that goes back to the system and is fetched again for every frame, the
    pages cost three times the unpacking. True where the library (glibc) can be told.
    """
    if sys.platform != "linux":
        return False
    try:
        tell = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return bool(tell(M_TRIM_THRESHOLD, most) and tell(M_MMAP_THRESHOLD, LARGEST_FREED))


def _plain(name: str, given: Array) -> Array:
    """The array as it lies in a body."""
    code = given.dtype.str[1:]
    if code not in _DTYPES:
        raise MisuseError(f"{name} has the dtype {given.dtype}: frames carry {', '.join(_DTYPES)}")
    return np.ascontiguousarray(given, _DTYPES[code])


def _checksum(*pieces: Any) -> int:
    sums = xxhash.xxh3_64()
    for piece in pieces:
        sums.update(piece)
    return int(sums.intdigest())


def _check_fits(size: int, largest: int) -> None:
    if size > largest:
        raise TransportError(
            f"a message of {size / MIB:.1f} MiB is larger than the {largest // MIB} MiB that can travel; lower "
            f"fleet.chunk_rows or fleet.number, or the widths of network.hidden if it is the policy"
        )


def _largest(kind: Kind) -> int:
    return LARGEST_BODY if kind is Kind.POLICY else LARGEST_FRAME


def _align(size: int) -> int:
    return -(-size // ALIGNED) * ALIGNED


def _read_header(data: bytes | memoryview) -> Header:
    if len(data) > LARGEST_HEADER:
        raise BadFrame("malformed", "the header is larger than allowed")
    try:
        header = _headers.decode(data)
    except (ValueError, RecursionError) as error:  # of msgspec, and of text that is no UTF-8
        raise BadFrame("malformed", f"the header cannot be read: {error}") from error
    if len({entry.name for entry in header.arrays}) != len(header.arrays):
        raise BadFrame("malformed", "an array is named twice")
    return header


def _size(entry: ArrayEntry) -> int:
    itemsize = _DTYPES[entry.dtype].itemsize
    # Also of an array without elements the other dimensions have to be ones that an array can have.
    if itemsize * math.prod(max(size, 1) for size in entry.shape) > LARGEST_BODY:
        raise BadFrame("malformed", f"{entry.name} is larger than allowed")
    return itemsize * math.prod(entry.shape)


def _body(stored: memoryview, size: int, *, packed: bool) -> memoryview:
    """The arrays, which take so many bytes together."""
    if size > LARGEST_BODY or size > len(stored) * (MOST_EXPANSION if packed else 1):
        raise BadFrame("malformed", f"{len(stored)} bytes cannot become {size}")
    body = stored
    if packed:
        try:
            body = memoryview(lz4.block.decompress(stored, uncompressed_size=size))
        except (lz4.block.LZ4BlockError, ValueError) as error:
            raise BadFrame("malformed", f"the body cannot be unpacked: {error}") from error
    if len(body) != size:
        raise BadFrame("malformed", f"the body has {len(body)} bytes, and its arrays take {size}")
    return body


def _view(data: memoryview, entry: ArrayEntry) -> Array:
    array: Array = np.frombuffer(data, _DTYPES[entry.dtype])
    if entry.dtype == "b1" and array.size and int(array.view(np.uint8).max()) > 1:
        raise BadFrame("malformed", f"{entry.name} holds flags that are neither true nor false")
    return array.reshape(entry.shape)
