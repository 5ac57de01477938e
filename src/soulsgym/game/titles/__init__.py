"""What is known about each game: its values as properties of an object that is bound to one process."""

from soulsgym.game.titles.darksouls3 import DarkSoulsIII
from soulsgym.game.titles.eldenring import EldenRing
from soulsgym.game.titles.sight import Glance, Sight
from soulsgym.game.titles.title import Remembered, Title

TITLES: dict[str, type[Title]] = {"darksouls3": DarkSoulsIII, "eldenring": EldenRing}

__all__ = ["TITLES", "DarkSoulsIII", "EldenRing", "Glance", "Remembered", "Sight", "Title"]
