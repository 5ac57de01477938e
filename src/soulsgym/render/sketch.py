"""Sketch: takes down what is drawn as plain numbers, for pictures that are made elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from soulsgym.render.palette import Colour
from soulsgym.render.plan import Point

POLYGON, LINE, CLOSED, DASHES, DISC, RING = range(6)
Outline = tuple[int, ...]
"""x and y of one point after the other, in whole centimetres."""


class Sketch:
    """A drawing as a list of operations; outlines and colours that come again are written once.

    An operation is (kind, outline, colour, alpha in percent, width). Outline and colour are places in the lists; a
    disc's outline is its centre and radius; the width is in tenths of a pixel.
    """

    def __init__(self) -> None:
        self._outlines: dict[Outline, int] = {}
        self._colours: dict[Colour, int] = {}
        self._operations: list[list[int]] = []

    @property
    def outlines(self) -> list[Outline]:
        """All outlines, by place."""
        return list(self._outlines)

    @property
    def colours(self) -> list[Colour]:
        """All colours, by place."""
        return list(self._colours)

    def take(self) -> list[list[int]]:
        """The operations since the last time."""
        taken, self._operations = self._operations, []
        return taken

    def polygon(self, points: Sequence[Point], colour: Colour, alpha: float = 1.0) -> None:
        """A filled shape."""
        self._add(POLYGON, _flat(points), colour, alpha, 0.0)

    def lines(
        self, points: Sequence[Point], colour: Colour, width: float, alpha: float = 1.0, *, closed: bool = False
    ) -> None:
        """A line through points."""
        self._add(CLOSED if closed else LINE, _flat(points), colour, alpha, width)

    def dashes(
        self, start: Point, end: Point, colour: Colour, width: float, dash_px: float, alpha: float = 1.0
    ) -> None:
        """A broken line; how long its dashes are is for whoever draws it."""
        self._add(DASHES, _flat([start, end]), colour, alpha, width)

    def circle(self, centre: Point, radius_m: float, colour: Colour, alpha: float = 1.0, *, ring: float = 0.0) -> None:
        """A disc, or a ring."""
        place = (*_flat([centre]), round(100.0 * radius_m))
        self._add(RING if ring else DISC, place, colour, alpha, ring)

    def _add(self, kind: int, outline: Outline, colour: Colour, alpha: float, width: float) -> None:
        self._operations.append(
            [
                kind,
                self._outlines.setdefault(outline, len(self._outlines)),
                self._colours.setdefault(colour, len(self._colours)),
                round(100.0 * alpha),
                round(10.0 * width),
            ]
        )


def _flat(points: Sequence[Point]) -> Outline:
    return tuple(round(100.0 * value) for point in points for value in point)
