"""The memory of a running program, its modules, and code found in them by pattern."""

from __future__ import annotations

from collections.abc import Mapping

from soulsgym.errors import GameNotFound
from soulsgym.game.patterns import Pattern, scan
from soulsgym.game.pe import Module
from soulsgym.game.process import Process


class ProcessMemory:
    """The memory of one process. Addresses are those of that process."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self._modules: dict[str, Module] = {}

    def read(self, address: int, size: int) -> bytes:
        """Bytes as they are."""
        return self.process.read_many(((address, size),))

    def write(self, address: int, data: bytes) -> None:
        """Put bytes there."""
        self.process.write(address, data)

    def module(self, name: str) -> Module:
        """The program or DLL of that file name."""
        base = self.process.modules().get(name.lower())
        if base is None:
            raise GameNotFound(f"pid {self.process.pid} has not loaded {name}")
        known = self._modules.get(name.lower())
        if known is None or known.base != base:
            known = self._modules[name.lower()] = Module(name, base, self.read)
        return known

    def occurrences(self, patterns: Mapping[str, Pattern], module: Module) -> dict[str, list[int]]:
        """Every address at which patterns begin in the code of a module."""
        ranges = [(section.address, section.size) for section in module.sections if section.executable]
        found = scan(patterns.values(), self.read, ranges)
        return {name: found[pattern] for name, pattern in patterns.items()}
