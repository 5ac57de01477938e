"""The running games by SoulsGym's names. Making one attaches to the game; `StaticGameData` needs none."""

from soulsgym.games.darksouls3 import DarkSoulsIII
from soulsgym.games.eldenring import EldenRing
from soulsgym.games.game import Game, StaticGameData, check_game_id

GAMES: dict[str, type[DarkSoulsIII] | type[EldenRing]] = {one.game_id: one for one in (DarkSoulsIII, EldenRing)}


def game_factory(game_id: str) -> Game:
    """Attach to the running game of this id, `DarkSoulsIII` or `EldenRing`."""
    return GAMES[check_game_id(game_id)]()


__all__ = ["DarkSoulsIII", "EldenRing", "Game", "StaticGameData", "game_factory"]
