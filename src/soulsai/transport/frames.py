"""The binary form of everything that crosses a process boundary: a prefix, a header, and arrays of numbers.

Nothing in a frame is trusted: sizes are compared with limits before memory is taken, and nothing is unpickled. The
layout is described in docs/message-format.md.
"""

from __future__ import annotations

import ctypes
import math
import struct
import sys
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Any, Literal, NamedTuple

import lz4.block  # type: ignore[import-untyped]
import msgspec
import numpy as np
import numpy.typing as npt
import xxhash

from soulsai.errors import TransportError
from soulsgym.errors import MisuseError

PROTOCOL = 1
"""Version of the layout and of what the kinds hold; only equal ones understand each other."""
MAGIC = b"SOUL"
MIB = 1 << 20
LARGEST_FRAME = 16 * MIB
"""Bytes of a frame as it travels."""
LARGEST_BODY = 64 * MIB
"""Bytes of all arrays of a frame, unpacked; also of a whole frame with a policy, which hardly shrinks."""
LARGEST_UNSQUEEZED = 8 * MIB
"""Bytes of all arrays above which they are packed in any case."""
LARGEST_HEADER = 64 * 1024
MOST_ARRAYS = 32
MOST_DIMENSIONS = 4
MOST_NOTES = 64
WHOLE = (1 << 63) - 1
"""Largest whole number in a header."""

ALIGNED = 8
"""The body, and every array in it, begins at a multiple of so many bytes."""
PACKED = 1
"""The flag of a body packed with LZ4."""
WORTH_PACKING = 7 / 8
"""A body that does not shrink to this share travels as it is, and is read without a copy."""
HURRY = 8
"""How much LZ4 hurries: a third less work for a few percent more bytes, measured on encoded fights."""
LARGEST_KEPT = 8 * MIB
"""Bytes that each thread keeps for the bodies of the frames it makes."""
LARGEST_FREED = 32 * MIB
"""Freed bytes that a process may keep for later; glibc allows no more for a block."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Of glibc's mallopt: freed bytes beyond which memory is given back, and from which a block is its own mapping."""
MOST_EXPANSION = 255
"""Bytes that a byte of LZ4 can become, at most."""

PREFIX = struct.Struct("<4sHBBIQQ")
CHECKSUM = struct.Struct("<Q")
HEADER_AT = PREFIX.size + CHECKSUM.size
PROTOCOL_AT = struct.Struct("<4sH")

Array = npt.NDArray[Any]
Note = str | int | float
Reason = Literal["malformed", "version", "foreign", "invalid"]
Count = Annotated[int, msgspec.Meta(ge=0, le=WHOLE)]
Word = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9._-]{1,80}\Z")]
WordOrNone = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9._-]{0,80}\Z")]
ArrayName = Annotated[str, msgspec.Meta(pattern=r"\A[a-z][a-z_]{0,31}\Z")]
Dimension = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_BODY)]
Shape = Annotated[tuple[Dimension, ...], msgspec.Meta(max_length=MOST_DIMENSIONS)]


class Kind(IntEnum):
    """What a frame is about."""

    TRANSITIONS = 1
    ROLLOUT = 2
    POLICY = 3
    WELCOME = 4


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
    """What a frame says about itself. `steps` are environment steps, `made_s` is the maker's wall clock."""

    run: Word
    worker: WordOrNone
    sequence: Count
    policy: Count
    rows: Count
    steps: Count
    made_s: float
    notes: Annotated[dict[str, Note], msgspec.Meta(max_length=MOST_NOTES)]
    arrays: Annotated[tuple[ArrayEntry, ...], msgspec.Meta(max_length=MOST_ARRAYS)]


@dataclass(frozen=True)
class Frame:
    """A frame that was read; the arrays are views that cannot be written to."""

    kind: Kind
    header: Header
    arrays: dict[str, Array]


class _Sizes(NamedTuple):
    kind: Kind
    is_packed: bool
    header: int
    stored: int
    plain: int


class _Scratch(threading.local):
    """Memory that is kept, for fresh pages cost more than what is written to them."""

    def __init__(self) -> None:
        self._kept: npt.NDArray[np.uint8] = np.empty(0, np.uint8)

    def of_size(self, size: int) -> npt.NDArray[np.uint8]:
        if size > LARGEST_KEPT:
            return np.empty(size, np.uint8)
        if size > len(self._kept):
            self._kept = np.empty(size, np.uint8)
        return self._kept[:size]


_scratch = _Scratch()
_headers = msgspec.msgpack.Decoder(Header)
_encoder = msgspec.msgpack.Encoder()


def encode(
    kind: Kind,
    *,
    run: str,
    worker: str = "",
    sequence: int = 0,
    policy: int = 0,
    rows: int = 0,
    steps: int = 0,
    notes: Mapping[str, Note] | None = None,
    arrays: Mapping[str, Array],
    squeeze: bool = True,
) -> bytes:
    """A frame of these arrays; TransportError if it is too large to travel.

    Without `squeeze` only a large one is packed: within one machine bytes are cheaper than the work.
    """
    plain_arrays = {name: _plain(name, array) for name, array in arrays.items()}
    size = sum(_aligned(array.nbytes) for array in plain_arrays.values())
    _check_fits(size, LARGEST_BODY)
    entries = tuple(_entry(name, array) for name, array in plain_arrays.items())
    header = Header(run, worker, sequence, policy, rows, steps, time.time(), dict(notes or {}), entries)
    described = _described(header)
    body = _body(plain_arrays.values(), size)
    packed = body
    if (size and squeeze) or size > LARGEST_UNSQUEEZED:
        packed = lz4.block.compress(body, mode="fast", acceleration=HURRY, store_size=False)
    is_packed = len(packed) < WORTH_PACKING * size
    frame = _seal(kind, described, packed if is_packed else body, size, is_packed=is_packed)
    _check_fits(len(frame), _largest(kind))
    return frame


def decode(data: bytes, *, kinds: Collection[Kind]) -> Frame:
    """Read a frame of one of these kinds; BadFrame, whatever is wrong with it."""
    sizes = _read_prefix(data)
    if sizes.kind not in kinds:
        raise BadFrame("invalid", f"a frame of kind {sizes.kind.name} does not belong here")
    view = memoryview(data)
    if _checksum(view[: PREFIX.size], view[HEADER_AT:]) != CHECKSUM.unpack_from(data, PREFIX.size)[0]:
        raise BadFrame("malformed", "the checksum does not match")
    header = _read_header(view[HEADER_AT : HEADER_AT + sizes.header])
    places = _places(header.arrays, sizes.plain)
    start = _aligned(HEADER_AT + sizes.header)
    if any(view[HEADER_AT + sizes.header : start]):
        raise BadFrame("malformed", "the gap before the body is not empty")
    body: bytes | memoryview = _unpacked(view[start:], sizes.plain) if sizes.is_packed else view[start:]
    arrays = {entry.name: _view(body, entry, at) for entry, at in zip(header.arrays, places, strict=True)}
    return Frame(sizes.kind, header, arrays)


def protocol_of(data: bytes) -> int | None:
    """The protocol that a frame was made for, which is at the same place in all of them; None if it is no frame."""
    if len(data) < PROTOCOL_AT.size:
        return None
    magic, protocol = PROTOCOL_AT.unpack_from(data)
    return int(protocol) if magic == MAGIC else None


def keep_freed_memory() -> bool:
    """Let the C library keep memory that is freed, for the next frames; for processes that read many of them.

    A frame is unpacked into fresh memory. Where that goes back to the system and is fetched again for every frame, the
    pages cost three times the unpacking. True where the library (glibc) can be told.
    """
    if sys.platform != "linux":
        return False
    try:
        tell = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return all(tell(what, LARGEST_FREED) for what in (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD))


def _plain(name: str, given: Array) -> Array:
    """The array as it lies in a body."""
    code = given.dtype.str[1:]
    if code not in _DTYPES:
        raise MisuseError(f"{name} has the dtype {given.dtype}: frames carry {', '.join(_DTYPES)}")
    return np.ascontiguousarray(given, _DTYPES[code])


def _entry(name: str, array: Array) -> ArrayEntry:
    return ArrayEntry(name, array.dtype.str[1:], array.shape)  # type: ignore[arg-type]


def _body(arrays: Iterable[Array], size: int) -> memoryview:
    """The arrays one after the other, in memory that the next frame of this thread reuses."""
    body = _scratch.of_size(size)
    at = 0
    for array in arrays:
        end = at + array.nbytes
        body[at:end] = array.reshape(-1).view(np.uint8)
        body[end : _aligned(end)] = 0
        at = _aligned(end)
    return body.data


def _described(header: Header) -> bytes:
    described = _encoder.encode(header)
    try:
        _read_header(described)
    except BadFrame as error:
        raise MisuseError(f"a frame cannot say this about itself: {error}") from error
    return described


def _seal(kind: int, header: bytes, stored: bytes | memoryview, plain: int, *, is_packed: bool) -> bytes:
    """Put the pieces of a frame together under a checksum."""
    prefix = PREFIX.pack(MAGIC, PROTOCOL, kind, PACKED if is_packed else 0, len(header), len(stored), plain)
    end = HEADER_AT + len(header)
    rest = b"".join((header, bytes(_aligned(end) - end), stored))
    return b"".join((prefix, CHECKSUM.pack(_checksum(prefix, rest)), rest))


def _checksum(prefix: bytes | memoryview, rest: bytes | memoryview) -> int:
    sums = xxhash.xxh3_64(prefix)
    sums.update(rest)
    return int(sums.intdigest())


def _check_fits(size: int, largest: int) -> None:
    if size > largest:
        raise TransportError(
            f"a message of {size / MIB:.1f} MiB is larger than the {largest // MIB} MiB that can travel; lower "
            f"fleet.chunk_rows or fleet.number, or the widths of network.hidden if it is the policy"
        )


def _largest(kind: Kind) -> int:
    return LARGEST_BODY if kind is Kind.POLICY else LARGEST_FRAME


def _aligned(size: int) -> int:
    return -(-size // ALIGNED) * ALIGNED


def _read_prefix(data: bytes) -> _Sizes:
    protocol = protocol_of(data)
    if protocol is None:
        raise BadFrame("malformed", "it does not begin like a frame")
    if protocol != PROTOCOL:
        raise BadFrame("version", f"it was made for protocol {protocol}, this side has {PROTOCOL}")
    if len(data) < HEADER_AT:
        raise BadFrame("malformed", "it ends within the prefix")
    _, _, number, flags, header, stored, plain = PREFIX.unpack_from(data)
    if number not in _KINDS or flags not in (0, PACKED):
        raise BadFrame("malformed", f"kind {number} with flags {flags} does not exist")
    sizes = _Sizes(_KINDS[number], flags == PACKED, header, stored, plain)
    _check_sizes(sizes, len(data))
    return sizes


def _check_sizes(sizes: _Sizes, length: int) -> None:
    if length > _largest(sizes.kind) or sizes.plain > LARGEST_BODY:
        raise BadFrame("malformed", "it is larger than allowed")
    if length != _aligned(HEADER_AT + sizes.header) + sizes.stored:
        raise BadFrame("malformed", f"its parts are not the {length} bytes that came")
    most = sizes.stored * MOST_EXPANSION if sizes.is_packed else sizes.stored
    if sizes.plain > most or (sizes.plain < sizes.stored and not sizes.is_packed):
        raise BadFrame("malformed", f"{sizes.stored} bytes cannot become {sizes.plain}")


def _read_header(data: bytes | memoryview) -> Header:
    if len(data) > LARGEST_HEADER:
        raise BadFrame("malformed", "the header is larger than allowed")
    try:
        header = _headers.decode(data)
    except (ValueError, RecursionError) as error:  # of msgspec, and of text that is no UTF-8
        raise BadFrame("malformed", f"the header cannot be read: {error}") from error
    if not math.isfinite(header.made_s):
        raise BadFrame("malformed", f"made_s is {header.made_s}")
    if len({entry.name for entry in header.arrays}) != len(header.arrays):
        raise BadFrame("malformed", "an array is named twice")
    return header


def _places(entries: tuple[ArrayEntry, ...], plain: int) -> list[int]:
    """Where in the body each array begins; together they are exactly the body."""
    places, at = [], 0
    for entry in entries:
        itemsize = _DTYPES[entry.dtype].itemsize
        # Also of an array without elements the other dimensions have to be ones that an array can have.
        if itemsize * math.prod(max(size, 1) for size in entry.shape) > LARGEST_BODY:
            raise BadFrame("malformed", f"{entry.name} is larger than allowed")
        places.append(at)
        at += _aligned(itemsize * math.prod(entry.shape))
    if at != plain:
        raise BadFrame("malformed", f"the arrays take {at} bytes, the body has {plain}")
    return places


def _unpacked(stored: memoryview, plain: int) -> bytes:
    try:
        body: bytes = lz4.block.decompress(stored, uncompressed_size=plain)
    except (lz4.block.LZ4BlockError, ValueError) as error:
        raise BadFrame("malformed", f"the body cannot be unpacked: {error}") from error
    if len(body) != plain:
        raise BadFrame("malformed", f"the body unpacks to {len(body)} bytes, not {plain}")
    return body


def _view(body: bytes | memoryview, entry: ArrayEntry, at: int) -> Array:
    dtype, count = _DTYPES[entry.dtype], math.prod(entry.shape)
    if count == 0:
        array: Array = np.empty(entry.shape, dtype)
        array.flags.writeable = False
        return array
    array = np.frombuffer(body, dtype, count, at)
    end = at + array.nbytes
    if any(body[end : _aligned(end)]):
        raise BadFrame("malformed", f"the gap after {entry.name} is not empty")
    if entry.dtype == "b1" and int(array.view(np.uint8).max()) > 1:
        raise BadFrame("malformed", f"{entry.name} holds flags that are neither true nor false")
    return array.reshape(entry.shape)


_KINDS = {int(kind): kind for kind in Kind}
_DTYPES = {code: np.dtype(f"<{code}") for code in ("f4", "f8", "u1", "u2", "i4", "i8", "b1")}
