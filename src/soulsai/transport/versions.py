"""Versions of the policy: they grow, and never repeat, however often the learner is started."""

from __future__ import annotations

ORDER = 1 << 32
"""Versions of one generation. A learner that is started again begins a new one."""


def version_of(generation: int, number: int) -> int:
    """The version of the policy published as number `number` by one start of the learner."""
    return generation * ORDER + number


def lag_of(newest: int, version: int) -> int:
    """How many versions a policy is old; of another generation, how far the two are apart."""
    return abs(newest % ORDER - version % ORDER)
