"""The terms that come with the package, a file each, and the order in which rewards show them."""

from __future__ import annotations

from soulsgym.parts.registry import find
from soulsgym.parts.rewards.term import KIND
from soulsgym.parts.rewards.terms import (  # noqa: F401 (each registers its term)
    centre,
    closing,
    combo,
    dealt,
    death,
    end,
    far,
    first_hit,
    roll,
    step,
    taken,
    win,
)

ORDER = (
    "dealt", "taken", "win", "death", "end", "closing", "far", "centre", "roll", "step", "combo", "first_hit",
)  # fmt: skip
TERMS: dict[str, str] = {name: find(KIND, name).meaning for name in ORDER}
"""Names and meanings."""
