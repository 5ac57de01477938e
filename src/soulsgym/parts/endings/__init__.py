"""Endings: when a fight is over, and when it is only cut off."""

from soulsgym.parts.endings.combined import AllOf, AnyOf
from soulsgym.parts.endings.ending import Ending
from soulsgym.parts.endings.fight_over import FightOver
from soulsgym.parts.endings.making import make_ending
from soulsgym.parts.endings.no_hit import NoHit
from soulsgym.parts.endings.step_limit import StepLimit

__all__ = ["AllOf", "AnyOf", "Ending", "FightOver", "NoHit", "StepLimit", "make_ending"]
