"""Drawing: shapes as plain numbers, for the browser to draw."""

from __future__ import annotations

from collections.abc import Iterable

from soulsgym.render.palette import Colour
from soulsgym.render.shapes import Shape

Outline = tuple[int, ...]
"""x and y of one point after the other, in whole centimetres; of a disc or ring centre and radius."""


class Drawing:
    """Shapes as a list of operations; outlines and colours that come again are written once.

    An operation is (kind of shape, outline, colour, alpha in percent, width in tenths of a pixel); outline and colour
    are places in the lists.
    """

    def __init__(self) -> None:
        self._outlines: dict[Outline, int] = {}
        self._colours: dict[Colour, int] = {}

    @property
    def outlines(self) -> list[Outline]:
        """All outlines, by place."""
        return list(self._outlines)

    @property
    def colours(self) -> list[str]:
        """All colours, by place, as CSS writes them."""
        return [f"{red},{green},{blue}" for red, green, blue in self._colours]

    def operations(self, shapes: Iterable[Shape]) -> list[list[int]]:
        """The shapes as operations."""
        return [
            [
                shape.kind,
                self._outlines.setdefault(_outline(shape), len(self._outlines)),
                self._colours.setdefault(shape.colour, len(self._colours)),
                round(100.0 * shape.alpha),
                round(10.0 * shape.width_px),
            ]
            for shape in shapes
        ]


def _outline(shape: Shape) -> Outline:
    numbers = [value for point in shape.points for value in point] + ([shape.radius_m] if shape.radius_m else [])
    return tuple(round(100.0 * value) for value in numbers)
