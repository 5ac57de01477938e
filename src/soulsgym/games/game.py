"""What both games have: StaticGameData, for which nothing has to run, and how to get hold of the running one."""

from __future__ import annotations

from typing import Any

from soulsgym.core import FOLDERS, static
from soulsgym.errors import MisuseError, suggestion
from soulsgym.game.attach import attach, find_game, held_game
from soulsgym.game.titles import Title as Game

TABLES = (
    "keybindings", "keymap", "actions", "coordinates", "player_animations", "critical_player_animations",
    "boss_animations", "player_stats", "bonfires", "address_bases", "addresses", "address_base_patterns",
)  # fmt: skip


class StaticGameData:
    """What is known of one game, table by table."""

    keybindings: dict[str, str]
    keymap: dict[str, int]
    actions: dict[int, list[str]]
    coordinates: dict[str, Any]
    player_animations: dict[str, Any]
    critical_player_animations: dict[str, Any]
    boss_animations: dict[str, Any]
    player_stats: dict[str, list[int]]
    bonfires: dict[str, int]
    address_bases: dict[str, int]
    addresses: dict[str, Any]
    address_base_patterns: dict[str, Any]

    def __init__(self, game_id: str) -> None:
        check_game_id(game_id)
        for table in TABLES:
            setattr(self, table, getattr(static, table)[game_id])


def check_game_id(game_id: str) -> str:
    """The id, if it is one of a game that we know."""
    if game_id not in FOLDERS:
        raise MisuseError(f"game {game_id!r} is not known{suggestion(game_id, FOLDERS)}")
    return game_id


class Attached(Game):
    """Gets hold of the running game, or of the one with this pid, when it is made; that of an environment is shared."""

    def __init__(self, pid: int | None = None) -> None:
        found = find_game(self.folder, pid)
        shared = held_game(found.pid)
        held = shared or attach(self.folder, found.pid)
        self._own = None if shared else held
        super().__init__(held.memory, keyboard=held.keyboard, window=held.window, clock=held.clock)

    def close(self) -> None:
        """Leave the game as it was found, unless an environment plays it; this happens at exit at the latest."""
        if self._own is not None:
            self._own.close()


__all__ = ["Game", "StaticGameData"]
