"""Loading a DLL into a game under Wine or Proton: inject.exe is run by the game's own Wine, in its prefix."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from soulsgym.errors import ReadFailed, SpeedControlError
from soulsgym.game.memory import ProcessMemory
from soulsgym.game.process import ProcessInfo

LIMIT_S = 40.0
"""Starting Wine takes 0.1 s where its server runs, and it does: the game runs."""
PAGE = 0x1000
BATCH = 1024
_TEB_HEAD = 0x68
_TEB_SELF, _TEB_PID, _TEB_PEB, _PEB_IMAGE = 0x30, 0x40, 0x60, 0x10
_LOW = 1 << 31
ADVICE = (
    "put souls_speed.dll into the game's folder as dinput8.dll and start the game with WINEDLLOVERRIDES=dinput8=n,b"
)


def inject(found: ProcessInfo, memory: ProcessMemory, injector: Path) -> None:
    """Load the library that lies beside the injector into the game."""
    pid = windows_pid(found, memory)
    command = [wine_of(found), str(injector), str(pid)]
    try:
        done = subprocess.run(
            command, env=_environment(found.environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, timeout=LIMIT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise SpeedControlError(f"{injector.name} did not end within {LIMIT_S:g} s; {ADVICE}") from None
    except OSError as error:
        raise SpeedControlError(f"{command[0]} cannot be run: {error.strerror}; {ADVICE}") from error
    if done.returncode != 0:
        reason = done.stdout.decode("utf-8", "replace").strip() or f"Wine ended with {done.returncode}"
        raise SpeedControlError(f"souls_speed.dll cannot be loaded into pid {found.pid}: {reason}; {ADVICE}")


def wine_of(found: ProcessInfo) -> str:
    """The program that runs the game: only the same Wine can talk to its server."""
    named = found.environment.get("WINELOADER", "")
    if named and os.access(named, os.X_OK):
        return named
    try:
        running = os.readlink(f"/proc/{found.pid}/exe").replace("-preloader", "")
    except OSError:
        running = ""
    if Path(running).name.startswith("wine") and os.access(running, os.X_OK):
        return running
    wine = shutil.which("wine")
    if wine is None:
        raise SpeedControlError(f"the Wine that runs pid {found.pid} is not found, nor is wine in PATH; {ADVICE}")
    return wine


def _environment(game: Mapping[str, str]) -> dict[str, str]:
    """That of the game, with which its Wine finds its libraries and its server; overlays stay out."""
    kept = {name: value for name, value in game.items() if name != "LD_PRELOAD"}
    return {**os.environ, **kept, "WINEDEBUG": "-all"}


def windows_pid(found: ProcessInfo, memory: ProcessMemory) -> int:
    """The pid that the game has inside Wine, where another one counts.

    Every thread of a Windows program has a block that holds its own address, the pid and a pointer to the block of
    the program, which says where its executable lies: no name and no time has to be compared, so several games
    in one prefix cannot be mistaken for each other.
    """
    name = found.executable_path.replace("\\", "/").rpartition("/")[2].lower()
    image = memory.process.modules().get(name)
    if image is not None:
        for address, head in _page_heads(found.pid, memory):
            (own,) = struct.unpack_from("<Q", head, _TEB_SELF)
            if own != address:
                continue
            (pid,) = struct.unpack_from("<Q", head, _TEB_PID)
            (program,) = struct.unpack_from("<Q", head, _TEB_PEB)
            if 0 < pid < _LOW and _image_of(memory, program) == image:
                return int(pid)
    raise SpeedControlError(f"pid {found.pid} does not look like a program under Wine; {ADVICE}")


def _image_of(memory: ProcessMemory, program: int) -> int | None:
    try:
        return int.from_bytes(memory.read(program + _PEB_IMAGE, 8), "little")
    except ReadFailed:
        return None


def _page_heads(pid: int, memory: ProcessMemory) -> Iterator[tuple[int, bytes]]:
    """The beginning of every page that may be a thread's block; the first thread's lies below 2 GB."""
    regions = sorted(_writable(pid), key=lambda region: (region[0] >= _LOW, -region[0]))
    pages = (page for begin, end in regions for page in range(begin, end, PAGE))
    while batch := [page for _, page in zip(range(BATCH), pages, strict=False)]:
        yield from _heads(memory, batch)


def _heads(memory: ProcessMemory, pages: list[int]) -> Iterator[tuple[int, bytes]]:
    try:
        data = memory.process.read_many([(page, _TEB_HEAD) for page in pages])
    except ReadFailed:  # One of them was given back meanwhile.
        if len(pages) > 1:
            half = len(pages) // 2
            yield from _heads(memory, pages[:half])
            yield from _heads(memory, pages[half:])
        return
    for number, page in enumerate(pages):
        yield page, data[number * _TEB_HEAD : (number + 1) * _TEB_HEAD]


def _writable(pid: int) -> Iterator[tuple[int, int]]:
    """Parts of the memory that are the program's own, and not of a file."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return
    for line in lines:
        parts = line.split(maxsplit=5)
        if parts[1].startswith("rw") and (len(parts) == 5 or not parts[5].startswith("/")):
            begin, end = parts[0].split("-")
            yield int(begin, 16), int(end, 16)
