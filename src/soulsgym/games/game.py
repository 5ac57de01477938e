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


PARTS = {"memory", "pointers", "keyboard", "window", "clock", "_bosses"}
"""What leads into the game."""


class Attached(Game):
    """Gets hold of the running game, or of the one with this pid, when it is made.

    Environments of the same program may take the game and let go of it before and after: whoever holds it now is asked,
    and if that is nobody it is held from here.
    """

    def __init__(self, pid: int | None = None) -> None:
        self._pid = find_game(self.folder, pid).pid
        self._hold()

    def _hold(self) -> None:
        held = held_game(self._pid)
        self._own = None if held else attach(self.folder, self._pid)
        self._held = held or self._own
        assert self._held is not None
        super().__init__(
            self._held.memory, keyboard=self._held.keyboard, window=self._held.window, clock=self._held.clock
        )

    def __getattribute__(self, name: str) -> Any:
        if name in PARTS and not object.__getattribute__(self, "_held").is_open:
            self._hold()
        return super().__getattribute__(name)

    def close(self) -> None:
        """Leave the game as it was found, unless an environment plays it; this happens at exit at the latest."""
        if self._own is not None:
            self._own.close()


__all__ = ["Game", "StaticGameData"]
