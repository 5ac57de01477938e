"""Drawing: what shapes are drawn on, be it pixels of a picture or a list for somebody else to draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from soulsgym.render.palette import Colour
from soulsgym.render.plan import Point


class Drawing(Protocol):
    """Shapes in metres, line widths in pixels; `alpha` below 1 lets the ground shine through."""

    def polygon(self, points: Sequence[Point], colour: Colour, alpha: float = 1.0) -> None:
        """A filled shape."""

    def lines(
        self, points: Sequence[Point], colour: Colour, width: float, alpha: float = 1.0, *, closed: bool = False
    ) -> None:
        """A line through points, round at its bends."""

    def dashes(
        self, start: Point, end: Point, colour: Colour, width: float, dash_px: float, alpha: float = 1.0
    ) -> None:
        """A broken line that begins and ends with a dash."""

    def circle(self, centre: Point, radius_m: float, colour: Colour, alpha: float = 1.0, *, ring: float = 0.0) -> None:
        """A disc, or with `ring` a ring of that width."""
