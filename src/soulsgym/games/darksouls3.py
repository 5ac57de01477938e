"""The running Dark Souls III."""

from soulsgym.game import titles
from soulsgym.games.game import Attached


class DarkSoulsIII(Attached, titles.DarkSoulsIII):
    """The running Dark Souls III with its values as properties, such as `player_hp`."""


__all__ = ["DarkSoulsIII"]
