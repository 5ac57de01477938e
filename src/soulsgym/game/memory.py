"""Typed reads and writes in the memory of a running program, its modules, and code found in them by pattern."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from soulsgym.errors import GameNotFound, GameVersionError, ReadFailed
from soulsgym.game.addresses import decoded
from soulsgym.game.patterns import Pattern, scan
from soulsgym.game.pe import Module
from soulsgym.game.process import Process


class ProcessMemory:
    """The memory of one process. Addresses are those of that process."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self._modules: dict[str, Module] = {}

    @property
    def calls(self) -> int:
        """Batches of memory read or written so far."""
        return self.process.calls

    def read(self, address: int, size: int) -> bytes:
        """Bytes as they are."""
        return self.process.read_many(((address, size),))

    def write(self, address: int, data: bytes) -> None:
        """Put bytes there."""
        self.process.write(address, data)

    def u8(self, address: int) -> int:
        """A byte."""
        return self.read(address, 1)[0]

    def i32(self, address: int) -> int:
        """A signed 32-bit integer."""
        return int.from_bytes(self.read(address, 4), "little", signed=True)

    def u32(self, address: int) -> int:
        """An unsigned 32-bit integer."""
        return int.from_bytes(self.read(address, 4), "little")

    def i64(self, address: int) -> int:
        """A signed 64-bit integer."""
        return int.from_bytes(self.read(address, 8), "little", signed=True)

    def u64(self, address: int) -> int:
        """An unsigned 64-bit integer, such as a pointer."""
        return int.from_bytes(self.read(address, 8), "little")

    def f32(self, address: int) -> float:
        """A 32-bit floating point number."""
        return float(struct.unpack("<f", self.read(address, 4))[0])

    def f64(self, address: int) -> float:
        """A 64-bit floating point number."""
        return float(struct.unpack("<d", self.read(address, 8))[0])

    def text(self, address: int, size: int) -> str:
        """UTF-16 text in `size` bytes, up to the first zero."""
        try:
            return decoded(self.read(address, size))
        except UnicodeDecodeError as error:
            raise ReadFailed(address, "holds no text") from error

    def write_u8(self, address: int, value: int) -> None:
        """Put a byte there."""
        self.write(address, struct.pack("<B", value))

    def write_i32(self, address: int, value: int) -> None:
        """Put a signed 32-bit integer there."""
        self.write(address, struct.pack("<i", value))

    def write_u32(self, address: int, value: int) -> None:
        """Put an unsigned 32-bit integer there."""
        self.write(address, struct.pack("<I", value))

    def write_i64(self, address: int, value: int) -> None:
        """Put a signed 64-bit integer there."""
        self.write(address, struct.pack("<q", value))

    def write_u64(self, address: int, value: int) -> None:
        """Put an unsigned 64-bit integer there."""
        self.write(address, struct.pack("<Q", value))

    def write_f32(self, address: int, value: float) -> None:
        """Put a 32-bit floating point number there."""
        self.write(address, struct.pack("<f", value))

    def write_f64(self, address: int, value: float) -> None:
        """Put a 64-bit floating point number there."""
        self.write(address, struct.pack("<d", value))

    def set_bits(self, address: int, mask: int, on: bool) -> None:
        """Set or clear the bits of a mask in one byte; the others stay as they are."""
        old = self.u8(address)
        new = old | mask if on else old & ~mask
        if new != old:
            self.write_u8(address, new)

    def module(self, name: str) -> Module:
        """The program or DLL of that file name."""
        base = self.process.modules().get(name.lower())
        if base is None:
            raise GameNotFound(f"pid {self.process.pid} has not loaded {name}")
        known = self._modules.get(name.lower())
        if known is None or known.base != base:
            known = self._modules[name.lower()] = Module(name, base, self.read)
        return known

    def find(self, pattern: Pattern | str, module: Module | str) -> int:
        """The address at which a pattern begins, exactly once in the code of a module."""
        pattern = Pattern(pattern) if isinstance(pattern, str) else pattern
        return self.find_all({pattern.text: pattern}, module)[pattern.text]

    def find_all(self, patterns: Mapping[str, Pattern], module: Module | str) -> dict[str, int]:
        """The same for patterns by name, in one pass over the code."""
        module = self.module(module) if isinstance(module, str) else module
        found = self.occurrences(patterns, module)
        for name, places in found.items():
            if len(places) != 1:
                raise GameVersionError(
                    f"the code for {name} occurs {len(places)} times in {module.name} and must occur once: "
                    "this is not the version that the address table was made for"
                )
        return {name: places[0] for name, places in found.items()}

    def occurrences(self, patterns: Mapping[str, Pattern], module: Module) -> dict[str, list[int]]:
        """Every address at which patterns begin in the code of a module."""
        ranges = [(section.address, section.size) for section in module.sections if section.executable]
        found = scan(patterns.values(), self.read, ranges)
        return {name: found[pattern] for name, pattern in patterns.items()}
