"""Time passes."""

from __future__ import annotations

from typing import Any

from soulsgym.compiling import inner
from soulsgym.parts.rewards.term import term


@inner
def begin_step(fight: Any, memory: Any) -> None:
    """Note the first step."""
    memory.step = fight.step


@term("step", "-1 for every environment step", begin=begin_step, memory=[("step", "i8")])
@inner
def step(fight: Any, memory: Any) -> Any:
    """All that passed since the last call."""
    steps = fight.step - memory.step
    memory.step = fight.step
    return -1.0 * steps
