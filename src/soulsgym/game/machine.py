"""What the doctor looks at without a game: the system, the packages, the rights, the saves."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from soulsgym.game.addresses import AddressTable
from soulsgym.game.process import ProcessInfo
from soulsgym.game.saves import Backup, steam_folders
from soulsgym.game.titles import TITLES
from soulsgym.packages import install_command

PACKAGES = {
    "linux": {"Xlib": "python-xlib", "mss": "mss", "PIL": "pillow"},
    "win32": {"mss": "mss", "PIL": "pillow"},
}
"""What is imported to play on a system, and what it is called where it comes from."""
PTRACE = "sudo sysctl kernel.yama.ptrace_scope=0"
OLD_S = 7 * 24 * 3600.0


@dataclass(frozen=True)
class Finding:
    """What one look showed: fine, not fine, or (None) neither: a note."""

    name: str
    ok: bool | None
    text: str
    advice: str = ""


def check_system(platform: str, which: Callable[[str], str | None], home: Path) -> Finding:
    """Is it a system on which the game can be played?"""
    name = "system"
    if platform == "win32":
        return Finding(name, True, "Windows")
    if not platform.startswith("linux"):
        return Finding(name, False, f"{platform} cannot run the game", "use Windows or Linux")
    wine = which("wine")
    if wine:
        return Finding(name, True, f"Linux with Wine ({wine})")
    protons = [
        proton for steam in steam_folders(home) for proton in sorted((steam / "steamapps/common").glob("Proton*"))
    ]
    if protons:
        return Finding(name, True, f"Linux with {protons[-1].name}")
    return Finding(name, None, "Linux, without Wine or Proton", "install Steam and let it run the game with Proton")


def check_packages(platform: str, is_installed: Callable[[str], bool]) -> Finding:
    """Are the packages there that press keys and look at windows?"""
    needed = PACKAGES.get("linux" if platform.startswith("linux") else platform, {})
    absent = [package for module, package in needed.items() if not is_installed(module)]
    if absent:
        return Finding("packages", False, f"not installed: {', '.join(absent)}", install_command("game"))
    return Finding("packages", True, f"{', '.join(needed.values())} installed")


def check_rights(platform: str, proc: Path, *, is_root: bool) -> Finding:
    """May programs of this user read each other's memory, as far as the system says?"""
    name = "permission"
    if not platform.startswith("linux"):
        return Finding(name, True, "programs of the same user may be read")
    try:
        scope = int((proc / "sys/kernel/yama/ptrace_scope").read_text())
    except (OSError, ValueError):
        return Finding(name, True, "this kernel does not forbid to read programs of the same user")
    if scope == 0:
        return Finding(name, True, "programs of the same user may be read (ptrace_scope 0)")
    if scope == 1:
        text = "only a game that this program starts itself may be read (ptrace_scope 1)"
        return Finding(name, True if is_root else None, text, "" if is_root else f"before a game of Steam: {PTRACE}")
    if scope == 2:
        text = "only the administrator may read other programs (ptrace_scope 2)"
        return Finding(name, is_root, text, "" if is_root else PTRACE)
    return Finding(
        name, False, f"programs cannot be read (ptrace_scope {scope})", "set it to 0 and start the machine again"
    )


def check_owner(found: ProcessInfo, proc: Path, uid: int) -> str:
    """Why a game cannot be read, if that is because somebody else runs it."""
    try:
        owner = os.stat(proc / str(found.pid)).st_uid
    except OSError:
        return ""
    return "" if uid in (0, owner) else f"the game belongs to user {owner} and this program to user {uid}"


def check_game(
    table: AddressTable, games: Sequence[ProcessInfo], pid: int | None
) -> tuple[Finding, ProcessInfo | None]:
    """Does the game run, and which one is meant?"""
    name, pids = "game", ", ".join(str(found.pid) for found in games)
    if not games:
        text = f"{table.executable} is not running, so only this machine was checked"
        return Finding(name, False, text, "start the game, load your character and run this again"), None
    if pid is not None:
        chosen = next((found for found in games if found.pid == pid), None)
        if chosen is None:
            return Finding(name, False, f"process {pid} is not {table.executable}", f"give --pid one of {pids}"), None
        return Finding(name, True, f"{table.executable} runs as process {pid}"), chosen
    if len(games) > 1:
        text = f"{len(games)} of {table.executable} run: processes {pids}"
        return Finding(name, False, text, "say which is meant with --pid"), None
    return Finding(name, True, f"{table.executable} runs as process {games[0].pid}"), games[0]


def check_offline(table: AddressTable) -> Finding:
    """What memory does not tell, but a ban would."""
    advice = f"{TITLES[table.id].offline_advice}, and use a separate character"
    text = "it cannot be checked whether you are offline, and playing this way online leads to a ban"
    return Finding("offline", None, text, advice)


def check_backup(saves: Sequence[Path], backups: Sequence[Backup]) -> Finding:
    """Is there a copy of the save game?"""
    name = "backup"
    if not backups:
        if not saves:
            text = "no save game was found, so it is unknown whether one is at risk"
            return Finding(name, None, text, "souls game backup --save DIR")
        return Finding(name, False, f"there is no backup of the save game in {saves[0]}", "souls game backup")
    newest = backups[0]
    text = f"the newest backup, {newest.name}, is {age_text(newest.age_s)} old"
    if newest.age_s > OLD_S:
        return Finding(name, None, text, "souls game backup makes a new one")
    return Finding(name, True, text)


def age_text(seconds: float) -> str:
    """A time in words."""
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return "less than a minute"
