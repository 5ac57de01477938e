"""`souls game`: backups of the save game, and the library that controls the game's speed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from soulsai.cli.doctor import GameTitle

if TYPE_CHECKING:
    from soulsgym.game.saves import Backup

game = typer.Typer(no_args_is_help=True, help="Save games, and the game's speed.")
speed = typer.Typer(no_args_is_help=True, help="Put the speed library into the game's folder, or take it out.")
game.add_typer(speed, name="speed")

Title = Annotated[GameTitle, typer.Option(help="Which game.")]
Save = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Folder that holds the save file; looked for if not given.")
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The game's folder (Steam: Browse local files).")]
CLOUD = "Steam Cloud may put its own copy back: turn it off for this game"


@game.command()
def backup(save: Save = None, title: Title = GameTitle.DARK_SOULS_3) -> None:
    """Copy the save game to a safe place; older copies stay.

    Example: souls game backup
    """
    from soulsgym.game import saves

    made = saves.backup(save or _found(title), title.value)
    size = sum(made.files.values())
    typer.echo(f"{made.name}: {len(made.files)} file(s), {size:,} bytes, copied and checked, from {made.folder}")
    typer.echo(f"it is in {made.path}")


@game.command()
def restore(
    name: Annotated[str | None, typer.Argument(help="Which backup; the newest if not given.")] = None,
    save: Save = None,
    title: Title = GameTitle.DARK_SOULS_3,
) -> None:
    """Put a backup of the save game back; what is there now is backed up first. The game must be closed.

    Example: souls game restore
    """
    from soulsgym.game import saves
    from soulsgym.game.addresses import load_addresses
    from soulsgym.game.process import find_processes

    chosen = saves.find_backup(name, title.value)
    executable = load_addresses(title.value).executable
    replaced = saves.restore(chosen, save, running=lambda: [found.pid for found in find_processes(executable)])
    typer.echo(f"{chosen.name} is back in {save or chosen.folder}")
    if replaced is not None:
        typer.echo(f"what it replaced is kept as {replaced.name}")
    typer.echo(CLOUD)


@game.command()
def backups(
    title: Title = GameTitle.DARK_SOULS_3,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON array instead of lines.")] = False,
) -> None:
    """List the backups of the save game, the newest first.

    Example: souls game backups
    """
    from soulsgym.game import saves

    found = saves.backups(title.value)
    if as_json:
        typer.echo(json.dumps([_object(one) for one in found], indent=1))
        return
    for one in found:
        size = sum(one.files.values())
        typer.echo(f"{one.name}  {size:>12,} bytes  {one.reason}  {one.folder}")
    if not found:
        typer.echo(f"no backups in {saves.store_folder(title.value)}; `souls game backup` makes one")


@speed.command()
def install(folder: Folder, title: Title = GameTitle.DARK_SOULS_3) -> None:
    """Put the speed library into the game's folder, as dinput8.dll.

    Example: souls game speed install "~/.local/share/Steam/steamapps/common/DARK SOULS III"
    """
    from soulsgym.game.proxy import LAUNCH_OPTIONS, install_proxy

    typer.echo(f"put into place: {install_proxy(folder.expanduser(), title.value)}")
    typer.echo("on Windows nothing else is to do; with Proton, give the game these launch options in Steam:")
    typer.echo(f"  {LAUNCH_OPTIONS}")
    typer.echo("play offline only, and remove it before you play online: souls game speed remove")


@speed.command()
def remove(folder: Folder, title: Title = GameTitle.DARK_SOULS_3) -> None:
    """Take the speed library out of the game's folder.

    Example: souls game speed remove "~/.local/share/Steam/steamapps/common/DARK SOULS III"
    """
    from soulsgym.game.proxy import remove_proxy

    typer.echo(f"removed: {remove_proxy(folder.expanduser(), title.value)}")


def _found(title: GameTitle) -> Path:
    from soulsgym.errors import GameError
    from soulsgym.game import saves

    found = saves.find_saves(title.value)
    if not found:
        file = saves.load_save_layout(title.value).file
        raise GameError(f"no save game ({file}) was found; give its folder with --save DIR")
    if len(found) > 1:
        folders = ", ".join(map(str, found))
        raise GameError(f"{len(found)} folders with save games were found; say which with --save DIR: {folders}")
    return found[0]


def _object(one: Backup) -> dict[str, object]:
    about = {"name": one.name, "path": str(one.path), "folder": str(one.folder), "made": one.made.isoformat()}
    return {**about, "reason": one.reason, "files": dict(one.files)}
