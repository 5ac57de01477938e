"""The ending that a config asks for."""

from __future__ import annotations

from soulsgym.parts.endings.combined import AnyOf
from soulsgym.parts.endings.ending import Ending
from soulsgym.parts.endings.fight_over import FightOver
from soulsgym.parts.endings.no_hit import NoHit
from soulsgym.parts.endings.step_limit import StepLimit


def make_ending(step_limit: int, *, no_hit: bool) -> Ending:
    """Over when somebody died, or with `no_hit` at the first hit taken; cut off after `step_limit` steps."""
    parts: list[Ending] = [FightOver(), StepLimit(step_limit)]
    if no_hit:
        parts.append(NoHit())
    return AnyOf(*parts)
