"""Starts: how a fight may begin."""

from soulsgym.parts.starts.mid_fight import MidFight, make_starts
from soulsgym.parts.starts.options import given_starts
from soulsgym.parts.starts.starts import RandomPose, StandardStarts, Starts

__all__ = ["MidFight", "RandomPose", "StandardStarts", "Starts", "given_starts", "make_starts"]
