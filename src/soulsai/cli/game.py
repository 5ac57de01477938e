"""`souls doctor` and `souls game`: is this machine ready to play in the game; save games, and the game's speed."""

from __future__ import annotations

import signal
import sys
from contextlib import closing
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from soulsai.cli.options import INTERRUPTED, AsJson, print_json
from soulsai.errors import TransportError
from soulsgym.errors import GameError, MisuseError
from soulsgym.game import doctor as game_doctor
from soulsgym.game import process, proxy, saves
from soulsgym.game.addresses import load_addresses
from soulsgym.game.machine import Finding
from soulsgym.game.report import as_text
from soulsgym.packages import require

NEEDS_FIXING = 1
REDIS_S = 3.0
PRIVATE = ("backup", "redis")
"""Findings that tell of somebody's folders and machines."""
CLOUD = "Steam Cloud may put its own copy back: turn it off for this game"

game = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Back up save games, and control the game's speed."
)
speed = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Install the speed library in the game's folder, or remove it."
)
game.add_typer(speed, name="speed")


class GameTitle(StrEnum):
    """The games there are."""

    DARK_SOULS_3 = "darksouls3"
    ELDEN_RING = "eldenring"


Title = Annotated[GameTitle, typer.Option(help="Which game.")]
Save = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Folder that holds the save file; looked for if not given.")
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The game's folder (Steam: Browse local files).")]


def doctor(
    title: Title = GameTitle.DARK_SOULS_3,
    pid: Annotated[int | None, typer.Option(help="Process ID of the game, if several are running.")] = None,
    display: Annotated[str, typer.Option(metavar=":N", help="X display of the game, if it is not found.")] = "",
    redis: Annotated[
        str,
        typer.Option(
            metavar="URL", envvar="SOULS_URL", show_default=False, help="Also check that this Redis can be reached."
        ),
    ] = "",
    as_json: AsJson = False,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Show a report about the game that you can send us, and write it to a new file."
        ),
    ] = None,
    only_look: Annotated[
        bool,
        typer.Option("--only-look", help="Press no keys, load nothing into the game, do not change its speed."),
    ] = False,
) -> None:
    """Check that everything is ready to play in the game.

    If something is not, it says what to do.

    With a character loaded, the game is tested: it gets the focus, the camera turns, the character takes a step, and
    the game stops and runs fast for a second. Afterwards everything is as before.

    Example: souls doctor
    """
    found: list[Finding] = []
    told: dict[str, Any] | None = None if report is None else {}
    if report is not None and report.exists():
        raise MisuseError(f"{report}: exists; give another name with --report")
    # Whoever ends this program ends it as Ctrl-C does: keys up, speed 1.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        reach = partial(_reach, redis) if redis else None
        with closing(
            game_doctor.checks(title.value, pid, reach, only_look=only_look, display=display, report=told)
        ) as findings:
            for finding in findings:
                found.append(finding)
                if not as_json:
                    typer.echo(_line(finding))
    except KeyboardInterrupt:
        typer.echo("souls: interrupted; the game is unchanged", err=True)
        raise typer.Exit(INTERRUPTED) from None
    finally:
        signal.signal(signal.SIGTERM, before)
    if report is not None and told is not None:
        told["findings"] = {one.name: [one.ok, one.text] for one in found if one.name not in PRIVATE}
        _write_report(report, as_text(told))
    is_ready = not any(finding.ok is False for finding in found)
    if as_json:
        print_json({"ready": is_ready, "findings": [asdict(finding) for finding in found]})
    else:
        faults = sum(finding.ok is False for finding in found)
        typer.echo("ready to play" if is_ready else f"{faults} to fix" if faults > 1 else "one thing to fix")
    if not is_ready:
        raise typer.Exit(NEEDS_FIXING)


def _write_report(file: Path, text: str) -> None:
    """Show it first: whoever sends it shall have seen it."""
    typer.echo(text, err=True)
    if sys.stdin.isatty() and not typer.confirm(f"this is all of it; write it to {file}?", default=True, err=True):
        return
    try:
        file.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise MisuseError(f"{file}: cannot be written: {error.strerror}; give another place with --report") from error
    typer.echo(f"written to {file}: it contains nothing personal", err=True)


def _line(finding: Finding) -> str:
    mark = {True: "ok  ", False: "FIX ", None: "note"}[finding.ok]
    return f"{mark} {finding.name:10} {finding.text}{f': {finding.advice}' if finding.advice else ''}"


def _reach(url: str) -> str:
    """A look at a Redis, which is another package's business."""
    require("redis")
    from redis.exceptions import RedisError

    from soulsai.transport.redis.address import Address
    from soulsai.transport.redis.connection import connect

    address = Address.parse(url) if "@" in url else Address.parse(url, run="doctor")
    try:
        with connect(address, limit_s=REDIS_S) as client:
            client.ping()
    except (RedisError, OSError) as error:
        reason = " ".join(str(error).split())
        raise TransportError(f"{address.place} does not answer: {reason}; is it running, and the port open?") from None
    return f"{address.place} answers"


@game.command()
def backup(save: Save = None, title: Title = GameTitle.DARK_SOULS_3) -> None:
    """Copy the save game to a safe place; older copies stay.

    Example: souls game backup
    """
    made = saves.backup(save or _find_save(title), title.value)
    size = sum(made.files.values())
    typer.echo(f"{made.name}: {len(made.files)} file(s), {size:,} bytes, copied and checked, from {made.folder}")
    typer.echo(f"it is in {made.path}")


@game.command()
def restore(
    name: Annotated[str | None, typer.Argument(help="Which backup; the newest if not given.")] = None,
    save: Save = None,
    title: Title = GameTitle.DARK_SOULS_3,
) -> None:
    """Restore a backup of the save game.

    The present save game is backed up first. The game must be closed.

    Example: souls game restore
    """
    chosen = saves.find_backup(name, title.value)
    executable = load_addresses(title.value).executable
    replaced = saves.restore(chosen, save, running=lambda: [found.pid for found in process.find_processes(executable)])
    typer.echo(f"{chosen.name} is back in {save or chosen.folder}")
    if replaced is not None:
        typer.echo(f"what it replaced is kept as {replaced.name}")
    typer.echo(CLOUD)


@game.command()
def backups(title: Title = GameTitle.DARK_SOULS_3, as_json: AsJson = False) -> None:
    """List the backups of the save game, the newest first.

    Example: souls game backups
    """
    found = saves.backups(title.value)
    if as_json:
        print_json([_object(one) for one in found])
        return
    for one in found:
        size = sum(one.files.values())
        typer.echo(f"{one.name}  {size:>12,} bytes  {one.reason}  {one.folder}")
    if not found:
        typer.echo(f"no backups in {saves.store_folder(title.value)}; `souls game backup` makes one")


@speed.command()
def install(folder: Folder, title: Title = GameTitle.DARK_SOULS_3) -> None:
    """Install the speed library in the game's folder, as dinput8.dll.

    Example: souls game speed install "~/.local/share/Steam/steamapps/common/DARK SOULS III"
    """
    typer.echo(f"installed: {proxy.install_proxy(folder.expanduser(), title.value)}")
    typer.echo("on Windows that is all; with Proton, set these launch options in Steam:")
    typer.echo(f"  {proxy.LAUNCH_OPTIONS}")
    typer.echo("play offline only, and remove it before you play online: souls game speed remove")


@speed.command()
def remove(folder: Folder, title: Title = GameTitle.DARK_SOULS_3) -> None:
    """Remove the speed library from the game's folder.

    Example: souls game speed remove "~/.local/share/Steam/steamapps/common/DARK SOULS III"
    """
    typer.echo(f"removed: {proxy.remove_proxy(folder.expanduser(), title.value)}")


def _find_save(title: GameTitle) -> Path:
    found = saves.find_saves(title.value)
    if not found:
        file = saves.load_save_layout(title.value).file
        raise GameError(f"no save game ({file}) was found; give its folder with --save DIR")
    if len(found) > 1:
        folders = ", ".join(map(str, found))
        raise GameError(f"{len(found)} folders with save games were found; choose one with --save DIR: {folders}")
    return found[0]


def _object(one: saves.Backup) -> dict[str, object]:
    about = {"name": one.name, "path": str(one.path), "folder": str(one.folder), "made": one.made.isoformat()}
    return {**about, "reason": one.reason, "files": dict(one.files)}
