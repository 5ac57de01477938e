"""The picture of a fight, seen from above."""

from soulsgym.render.renderer import FightRenderer

__all__ = ["FightRenderer"]
