"""Starts: how a fight may begin."""

from soulsgym.parts.starts.given import given_starts
from soulsgym.parts.starts.making import make_starts
from soulsgym.parts.starts.mid_fight import MidFight
from soulsgym.parts.starts.standard import RandomPose, StandardStarts
from soulsgym.parts.starts.starts import Starts

__all__ = ["MidFight", "RandomPose", "StandardStarts", "Starts", "given_starts", "make_starts"]
