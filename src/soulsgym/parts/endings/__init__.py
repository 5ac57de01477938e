"""Endings: when a fight is over, and when it is only cut off."""

from soulsgym.parts.endings.ending import AnyOf, Ending, FightOver, NoHit, StepLimit, make_ending

__all__ = ["AnyOf", "Ending", "FightOver", "NoHit", "StepLimit", "make_ending"]
