"""Running the injector by the game's own Wine, with programs that stand for Wine."""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import soulsgym.game.linux.inject as inject_module
from soulsgym.errors import SpeedControlError
from soulsgym.game.linux.inject import inject, windows_pid, wine_of
from soulsgym.game.process import ProcessInfo

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux runs games by Wine")


@pytest.fixture
def run_by(tmp_path: Path) -> Callable[[str], ProcessInfo]:
    """A game whose Wine is a script."""

    def make(script: str) -> ProcessInfo:
        file = tmp_path / "wine"
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
        environment = {"WINELOADER": str(file), "WINEPREFIX": "/games/prefix", "LD_PRELOAD": "/overlay.so"}
        return ProcessInfo(os.getpid(), "Z:\\game.exe", environment)

    return make


@pytest.fixture
def known_pid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inject_module, "windows_pid", lambda *_: 252)


@pytest.mark.usefixtures("known_pid")
def test_injector_runs_by_the_wine_and_in_the_prefix_of_the_game(
    run_by: Callable[[str], ProcessInfo], tmp_path: Path
) -> None:
    told = tmp_path / "told"
    game = run_by(f'echo "$1 $2 $WINEPREFIX [$LD_PRELOAD]" > {told}')
    inject(game, None, Path("/speed/inject.exe"))  # type: ignore[arg-type]
    assert told.read_text() == "/speed/inject.exe 252 /games/prefix []\n"


@pytest.mark.usefixtures("known_pid")
def test_reason_of_the_injector_and_the_way_out_are_told(run_by: Callable[[str], ProcessInfo]) -> None:
    game = run_by("echo 'no thread can be started in the program (error 5)'; exit 5")
    with pytest.raises(SpeedControlError, match=r"no thread can be started .* as dinput8\.dll"):
        inject(game, None, Path("inject.exe"))  # type: ignore[arg-type]
    with pytest.raises(SpeedControlError, match="Wine ended with 53"):
        inject(run_by("exit 53"), None, Path("inject.exe"))  # type: ignore[arg-type]


@pytest.mark.usefixtures("known_pid")
def test_injector_that_does_not_end_is_not_waited_for(
    run_by: Callable[[str], ProcessInfo], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inject_module, "LIMIT_S", 0.1)
    with pytest.raises(SpeedControlError, match=r"did not end within 0\.1 s"):
        inject(run_by("exec sleep 10"), None, Path("inject.exe"))  # type: ignore[arg-type]


def test_wine_that_is_nowhere_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SpeedControlError, match=r"the Wine that runs pid .* is not found"):
        wine_of(ProcessInfo(os.getpid(), "game.exe", {"WINELOADER": "/nowhere/wine"}))


def test_pid_inside_wine_is_that_of_the_block_which_belongs_to_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = PagedMemory()
    memory.put(0x7FFD8000, own=0x7FFD8000, pid=44, program=0x7FFD0000)  # A copy of another program's block.
    memory.put(0x7FFDA000, own=0x7FFDB000, pid=55, program=0x7FFD2000)  # Not a block: its own address is wrong.
    memory.put(0x7FFDC000, own=0x7FFDC000, pid=252, program=0x7FFD2000)
    memory.images = {0x7FFD0000: 0x180000000, 0x7FFD2000: 0x140000000}
    monkeypatch.setattr(inject_module, "_writable", lambda _: iter([(0x7FFD0000, 0x7FFE0000)]))
    assert windows_pid(ProcessInfo(1, "C:\\Games\\Game.exe"), memory) == 252  # type: ignore[arg-type]


class PagedMemory:
    """Pages with thread blocks, and program blocks that say where an image lies."""

    def __init__(self) -> None:
        self.pages: dict[int, bytes] = {}
        self.images: dict[int, int] = {}
        self.process: Any = self

    def put(self, page: int, *, own: int, pid: int, program: int) -> None:
        head = bytearray(0x68)
        for at, value in ((0x30, own), (0x40, pid), (0x60, program)):
            struct.pack_into("<Q", head, at, value)
        self.pages[page] = bytes(head)

    def modules(self) -> dict[str, int]:
        return {"game.exe": 0x140000000}

    def read_many(self, spans: list[tuple[int, int]]) -> bytes:
        return b"".join(self.pages.get(address, bytes(size)) for address, size in spans)

    def read(self, address: int, size: int) -> bytes:
        return self.images[address - 0x10].to_bytes(size, "little")
