"""The running Elden Ring."""

from soulsgym.game import titles
from soulsgym.games.game import Attached


class EldenRing(Attached, titles.EldenRing):
    """The running Elden Ring with its values as properties, such as `player_hp`."""


__all__ = ["EldenRing"]
