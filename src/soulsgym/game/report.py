"""What a volunteer can send: everything that says how the real game differs from what we think, and nothing private."""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import json
import platform
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from soulsgym.errors import GameError, ReadFailed, SoulsError
from soulsgym.game.addresses import AddressTable, Value
from soulsgym.game.pointers import Pointers, find_hits
from soulsgym.game.process import ProcessInfo, is_called
from soulsgym.packages import VERSION

if TYPE_CHECKING:
    from soulsgym.game.clock import Clock
    from soulsgym.game.titles import Title
    from soulsgym.game.waits import TimeSource

SPEEDS = (0.0, 1.0, 2.0, 3.0)
RATE_S = 0.4
SETTLE_S, SETTLE_LIMIT_S = 0.15, 2.0
PRIVATE: tuple[Callable[[], str], ...] = (
    lambda: str(Path.home()),
    lambda: getpass.getuser(),
    lambda: platform.node().partition(".")[0],
)
"""Who uses which machine."""
COMMON = ("root", "localhost")


def write_report(table: AddressTable, found: ProcessInfo, parts: Mapping[str, Any], time: TimeSource) -> dict[str, Any]:
    """What is known of a game, by the parts of it that could be opened; a part that fails says so."""
    report: dict[str, Any] = {"title": table.id, "package": VERSION, "system": _system()}
    memory, title, clock = parts.get("memory"), parts.get("title"), parts.get("clock")
    if memory is not None:
        module = memory.module(table.executable)
        report["program"] = {
            "version": module.file_version,
            "sha256": tried(lambda: file_hash(found, table.executable)),
            "base": hex(module.base),
            "size": module.size,
            "sections": {section.name: section.size for section in module.sections},
        }
        report["modules"] = sorted(memory.process.modules())
        report["patterns"] = tried(
            lambda: {
                name: [[hex(hit.place - module.base), hex(hit.target - module.base)] for hit in hits]
                for name, hits in find_hits(memory, table, module).items()
            }
        )
    if title is not None:
        report["fields"] = {name: field_of(title.pointers, name) for name in table.fields}
    if clock is not None and title is not None:
        report["clock"] = tried(lambda: clock_of(title, clock, time))
    return report


def _system() -> dict[str, str]:
    return {"platform": platform.platform(), "python": platform.python_version(), "machine": platform.machine()}


def tried(look: Callable[[], Any]) -> Any:
    """What a look gives, or that it failed."""
    try:
        return look()
    except (SoulsError, OSError) as error:
        return f"failed: {error}"


def file_hash(found: ProcessInfo, executable: str) -> str:
    """The SHA-256 of the program's file, as the system that runs it has it."""
    file = Path(found.executable_path)
    if sys.platform.startswith("linux"):
        lines = Path(f"/proc/{found.pid}/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        paths = [line.split(maxsplit=5)[5] for line in lines if len(line.split(maxsplit=5)) > 5]
        file = next((Path(path) for path in paths if is_called(path, executable)), file)
        inside = Path(f"/proc/{found.pid}/root") / str(file).lstrip("/")
        file = inside if inside.exists() else file
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def field_of(pointers: Pointers, name: str) -> dict[str, Any]:
    """Where a field was found, and what is there."""
    try:
        chain = [hex(address) for address in pointers.look(name, timed=False).chain()]
        return {"chain": chain, "value": _shown(pointers.read(name))}
    except ReadFailed as error:
        return {"failed": str(error)}


def _shown(value: Value) -> Any:
    return value.hex() if isinstance(value, bytes) else list(value) if isinstance(value, tuple) else value


def clock_of(title: Title, clock: Clock, time: TimeSource) -> dict[str, Any]:
    """How play time follows the clock, and who asks for the time."""
    rates: dict[str, float] = {}
    questions: dict[str, Any] = {}
    try:
        for speed in SPEEDS:
            clock.set_speed(speed)
            if speed == 0.0:
                _let_settle(title, time)
            asked, before, begun = clock.questions(), title.time, time.now()
            time.sleep(RATE_S)
            passed = time.now() - begun
            rates[f"{speed:g}"] = round((title.time - before) / 1000 / passed, 4)
            questions[f"{speed:g}"] = {
                str(thread): round((count - old) / passed, 1)
                for (thread, count), (_, old) in zip(clock.questions(), asked, strict=True)
                if count > old
            }
    finally:
        with contextlib.suppress(GameError):
            clock.set_speed(1.0)
    return {"play_time_at_speed": rates, "questions_per_s_by_thread": questions, "unhooked": list(clock.unhooked)}


def _let_settle(title: Title, time: TimeSource) -> None:
    """Wait until a stopped game has used up the time that it was given before, if it ever stands still."""
    end, last = time.now() + SETTLE_LIMIT_S, -1
    while last != (now := title.time) and time.now() < end:
        last = now
        time.sleep(SETTLE_S)


def as_text(report: Mapping[str, Any]) -> str:
    """The report as it is written, without the names of the user, his folders and his machine."""
    text = json.dumps(report, indent=1, sort_keys=True)
    for look in PRIVATE:
        with contextlib.suppress(OSError, KeyError, RuntimeError):  # there may be none
            private = json.dumps(look())[1:-1]
            if len(private) > 2 and private not in COMMON:
                # As a whole word, in capitals or not: a user called "player" has no part in `PlayerHP`.
                text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(private)}(?![A-Za-z0-9])", "~", text, flags=re.IGNORECASE)
    return text.replace("/root/", "~/")
