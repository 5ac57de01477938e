"""The picture of a fight, seen from above."""

from soulsgym.envs.render.renderer import FightRenderer

__all__ = ["FightRenderer"]
