"""A Windows program or DLL as it lies in memory: sections, exports and file version, from its headers.

Every count and offset is checked before it is used: damaged headers are a named error, never an endless loop.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from dataclasses import dataclass

from soulsgym.errors import GameVersionError, ReadFailed

PAGE = 0x1000
AMD64, PE32_PLUS = 0x8664, 0x20B
MOST_SECTIONS = 96
MOST_EXPORTS = 1 << 16
MOST_RESOURCES = 4096
LARGEST_IMAGE = 1 << 31
LARGEST_TABLE = 1 << 22
LONGEST_NAME = 512
EXECUTABLE = 0x20000000
RT_VERSION = 16
VERSION_MAGIC = struct.pack("<I", 0xFEEF04BD)
_EXPORTS, _RESOURCES = 0, 2
_COFF, _OPTIONAL, _SECTION = 4, 24, 40
_IMAGE_SIZE, _DIRECTORY_COUNT, _DIRECTORIES = 56, 108, 112


@dataclass(frozen=True)
class Section:
    """A part of an image: its address in memory, how long it is there, and whether it holds code."""

    name: str
    address: int
    size: int
    executable: bool


class Module:
    """An image that is loaded at `base`; `read(address, size)` reads the memory it is in."""

    def __init__(self, name: str, base: int, read: Callable[[int, int], bytes]) -> None:
        self.name, self.base = name, base
        self._read = read
        head = read(base, PAGE)
        start = self._header_offset(head)
        optional_size, count = self._coff(head, start)
        self.size, self._directories = self._optional(head, start + _OPTIONAL)
        self.sections = self._sections(start + _OPTIONAL + optional_size, count)

    def _damaged(self, what: str) -> GameVersionError:
        return GameVersionError(f"{self.name} at {self.base:#x} is not a readable 64-bit Windows program: {what}")

    def _header_offset(self, head: bytes) -> int:
        (start,) = struct.unpack_from("<I", head, 0x3C)
        if head[:2] != b"MZ" or start > PAGE - _OPTIONAL - _DIRECTORIES or head[start : start + 4] != b"PE\0\0":
            raise self._damaged("it has no PE header")
        return int(start)

    def _coff(self, head: bytes, start: int) -> tuple[int, int]:
        machine, count = struct.unpack_from("<HH", head, start + _COFF)
        (optional_size,) = struct.unpack_from("<H", head, start + _COFF + 16)
        (magic,) = struct.unpack_from("<H", head, start + _OPTIONAL)
        if machine != AMD64 or magic != PE32_PLUS:
            raise self._damaged(f"its machine is {machine:#x} and its format {magic:#x}")
        if not 1 <= count <= MOST_SECTIONS or optional_size < _DIRECTORIES:
            raise self._damaged(f"it claims {count} sections and an optional header of {optional_size} bytes")
        return optional_size, count

    def _optional(self, head: bytes, start: int) -> tuple[int, list[tuple[int, int]]]:
        (size,) = struct.unpack_from("<I", head, start + _IMAGE_SIZE)
        (count,) = struct.unpack_from("<I", head, start + _DIRECTORY_COUNT)
        count = min(count, 16, (PAGE - start - _DIRECTORIES) // 8)
        if not PAGE <= size <= LARGEST_IMAGE:
            raise self._damaged(f"it claims a size of {size} bytes")
        return size, [struct.unpack_from("<II", head, start + _DIRECTORIES + 8 * number) for number in range(count)]

    def _sections(self, start: int, count: int) -> tuple[Section, ...]:
        table = self._read(self.base + start, _SECTION * count)
        sections = []
        for row in range(count):
            name, size, rva, raw_size = struct.unpack_from("<8sIII", table, _SECTION * row)
            (flags,) = struct.unpack_from("<I", table, _SECTION * row + 36)
            size = size or raw_size
            if rva + size > self.size:
                raise self._damaged(f"section {row + 1} reaches beyond its end")
            label = name.rstrip(b"\0").decode("ascii", "replace")
            sections.append(Section(label, self.base + rva, size, bool(flags & EXECUTABLE)))
        return tuple(sections)

    def _table(self, rva: int, size: int, what: str) -> bytes:
        """Bytes of the image by their distance from its base."""
        if size > LARGEST_TABLE or rva + size > self.size:
            raise self._damaged(f"{what} reaches beyond its end")
        try:
            return self._read(self.base + rva, size) if size else b""
        except ReadFailed as error:
            raise self._damaged(f"{what} cannot be read") from error

    def _directory(self, number: int) -> tuple[int, int]:
        return self._directories[number] if number < len(self._directories) else (0, 0)

    @functools.cached_property
    def exports(self) -> dict[str, int]:
        """Addresses by exported name; names that stand for another module's are left out."""
        begin, size = self._directory(_EXPORTS)
        if not begin:
            return {}
        head = self._table(begin, 40, "its table of exports")
        function_count, name_count, functions, names, ordinals = struct.unpack_from("<5I", head, 20)
        if max(function_count, name_count) > MOST_EXPORTS:
            raise self._damaged(f"it claims {max(function_count, name_count)} exports")
        targets = struct.unpack(f"<{function_count}I", self._table(functions, 4 * function_count, "an export"))
        places = struct.unpack(f"<{name_count}I", self._table(names, 4 * name_count, "a name of an export"))
        numbers = struct.unpack(f"<{name_count}H", self._table(ordinals, 2 * name_count, "a number of an export"))
        exports = {}
        for name, number in zip(self._names(places), numbers, strict=True):
            if number >= function_count:
                raise self._damaged(f"export {name!r} has the number {number} of {function_count}")
            if not begin <= targets[number] < begin + size:
                exports[name] = self.base + targets[number]
        return exports

    def _names(self, places: tuple[int, ...]) -> list[str]:
        """The texts at these distances from the base, which lie together in one table."""
        if not places:
            return []
        low, high = min(places), min(max(places) + LONGEST_NAME, self.size)
        data = self._table(low, max(high - low, 0), "its names of exports")
        names = []
        for place in places:
            name = data[place - low : place - low + LONGEST_NAME].partition(b"\0")[0]
            names.append(name.decode("ascii", "replace"))
        return names

    @functools.cached_property
    def file_version(self) -> str | None:
        """Such as 1.15.2.0; None if the file says nothing."""
        begin, size = self._directory(_RESOURCES)
        if not begin:
            return None
        resources = self._table(begin, min(size, LARGEST_TABLE), "its table of resources")
        entry = self._first_version(resources)
        if entry is None:
            return None
        rva, length = self._unpacked("<II", resources, entry)
        data = self._table(rva, min(length, PAGE), "its version")
        at = data.find(VERSION_MAGIC)
        if at < 0:
            return None
        high, low = self._unpacked("<II", data, at + 8)
        return f"{high >> 16}.{high & 0xFFFF}.{low >> 16}.{low & 0xFFFF}"

    def _first_version(self, resources: bytes) -> int | None:
        """Offset of the first version resource: three levels down, by type, name and language."""
        at: int | None = self._entry(resources, 0, RT_VERSION)
        for _ in range(2):
            at = None if at is None else self._entry(resources, at, None)
        return at

    def _entry(self, resources: bytes, directory: int, wanted: int | None) -> int | None:
        """Where the entry with this id of a directory leads, or its first entry."""
        named, numbered = self._unpacked("<HH", resources, directory + 12)
        if named + numbered > MOST_RESOURCES:
            raise self._damaged(f"it claims {named + numbered} resources of one kind")
        for number in range(named + numbered):
            identity, target = self._unpacked("<II", resources, directory + 16 + 8 * number)
            if wanted is None or identity == wanted:
                return target & 0x7FFFFFFF
        return None

    def _unpacked(self, layout: str, data: bytes, at: int) -> tuple[int, ...]:
        try:
            return struct.unpack_from(layout, data, at)
        except struct.error as error:
            raise self._damaged("its resources reach beyond their end") from error
