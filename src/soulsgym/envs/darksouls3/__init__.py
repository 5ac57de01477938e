"""The environments of Dark Souls III by SoulsGym's names, on the running game."""

from __future__ import annotations

import logging
import math
import os
from typing import Any

from soulsgym.spec import FightSpec

log = logging.getLogger(__name__)

REHEARSE = "SOULSGYM_REHEARSE"
"""An environment variable: what stands in for the game, for scripts that were written for it and shall not change."""


def with_stand_in(keywords: dict[str, Any]) -> dict[str, Any]:
    """The keywords of an environment; unless they say what to play, `rehearse` is as the variable says."""
    file = os.environ.get(REHEARSE, "")
    if not file or "rehearse" in keywords or keywords.get("pid") or keywords.get("launch"):
        return keywords
    log.warning("%s=%s: a simulator stands in for the game", REHEARSE, file)
    return {**keywords, "rehearse": file}


def arena_limits(spec: FightSpec) -> tuple[list[float], list[float]]:
    """The least and the most of x, y, z and heading in the arena of a fight."""
    return [*spec.arena.low_m, -math.pi], [*spec.arena.high_m, math.pi]
