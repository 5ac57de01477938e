"""What is known about each game: its values as properties of an object that is bound to one process."""

from soulsgym.game.titles.boss import Boss
from soulsgym.game.titles.darksouls3 import DarkSoulsIII
from soulsgym.game.titles.eldenring import EldenRing
from soulsgym.game.titles.title import FightTitle, Remembered, Title, WatchTitle, fight_title, watch_title
from soulsgym.game.titles.values import Glance, Sight

TITLES: dict[str, type[Title]] = {"darksouls3": DarkSoulsIII, "eldenring": EldenRing}

__all__ = [
    "TITLES",
    "Boss",
    "DarkSoulsIII",
    "EldenRing",
    "FightTitle",
    "Glance",
    "Remembered",
    "Sight",
    "Title",
    "WatchTitle",
    "fight_title",
    "watch_title",
]
