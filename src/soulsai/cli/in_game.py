"""Options of all commands that play in the running game."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from soulsgym.game.engine import GameOptions

InGame = Annotated[bool, typer.Option("--game", help="In the running game instead of the simulator.")]
GameSpeed = Annotated[
    float, typer.Option(help="Speed of the game, times its own; inf: as fast as it goes.", show_default=True)
]
Stepping = Annotated[
    str, typer.Option(help="ticks: exact steps by a frozen clock; speed: run and pause; auto: what the game allows.")
]
Pid = Annotated[int | None, typer.Option(help="Process of the game, if several are running.")]
Launch = Annotated[str, typer.Option(metavar="COMMAND", help="Starts the game again after a crash.")]

SPEED = 3.0


def game_options(
    in_game: bool,
    speed: float = SPEED,
    stepping: str = "auto",
    pid: int | None = None,
    launch: str = "",
    *,
    flag: str = "--game",
) -> GameOptions | None:
    """How to play in the game; None where the simulator is meant, which takes none of it."""
    from soulsgym.errors import MisuseError

    if not in_game:
        given = {"--game-speed": speed != SPEED, "--stepping": stepping != "auto", "--pid": pid, "--launch": launch}
        if named := [name for name, value in given.items() if value]:
            raise MisuseError(f"{', '.join(named)} is about the running game; give {flag} as well, or leave it out")
        return None
    from soulsgym.game.engine import GameOptions

    return GameOptions(speed, stepping, pid, launch or None)
