"""The rim of an arena: walls, cliffs, what lies just outside of them, and a grid of metres within."""

from __future__ import annotations

import math

from soulsgym.render import palette
from soulsgym.render.drawing import Drawing
from soulsgym.render.plan import Point
from soulsgym.render.shading import corners_of, normal
from soulsgym.spec.arena import Arena

GRID_M = 5.0
WALL_M = 0.8
CLIFF_FADE_M = 2.4
CLIFF_BANDS = 6


class Edges:
    """Draws the rim of an arena."""

    def __init__(self, arena: Arena) -> None:
        self._ring: list[Point] = [(corner.x_m, corner.y_m) for corner in arena.corners]
        self._cliffs = [corner.to_next == "cliff" for corner in arena.corners]
        self._low, self._high = corners_of(arena)
        self.grid = self._grid_lines()
        """Lines every few metres, from edge to edge."""
        self._bands = [self._band(i, width_m, colour) for i, width_m, colour in self._band_widths()]

    def draw(self, drawing: Drawing) -> None:
        """Walls and cliffs, and what lies outside of them."""
        for corners, colour in self._bands:
            drawing.polygon(corners, colour)
        for start, end, cliff in zip(self._ring, self._ring[1:] + self._ring[:1], self._cliffs, strict=True):
            if cliff:
                drawing.dashes(start, end, palette.CLIFF, 3.0, 11.0)
            else:
                drawing.lines([start, end], palette.WALL, 3.0)

    def _grid_lines(self) -> list[tuple[Point, Point]]:
        lines = []
        for axis in (0, 1):
            for i in range(math.ceil(self._low[axis] / GRID_M), math.floor(self._high[axis] / GRID_M) + 1):
                ends = self._across(axis, i * GRID_M)
                if len(ends) >= 2:
                    lines.append((min(ends), max(ends)))
        return lines

    def _across(self, axis: int, value: float) -> list[Point]:
        """Where the ring crosses x = value (axis 0) or y = value (axis 1)."""
        points = []
        for a, b in zip(self._ring, self._ring[1:] + self._ring[:1], strict=True):
            if min(a[axis], b[axis]) <= value < max(a[axis], b[axis]):
                share = (value - a[axis]) / (b[axis] - a[axis])
                points.append((a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])))
        return points

    def _band_widths(self) -> list[tuple[int, float, palette.Colour]]:
        """Strips along the outside of the edges: stone behind a wall, and below a cliff ever darker red."""
        stone = palette.mix(palette.ROCK, palette.WALL, 0.35)
        widths = []
        for i, cliff in enumerate(self._cliffs):
            if not cliff:
                widths.append((i, WALL_M, stone))
                continue
            for j in range(CLIFF_BANDS, 0, -1):
                colour = palette.mix(palette.ABYSS, palette.CLIFF, 0.34 * (1.0 - j / (CLIFF_BANDS + 1)))
                widths.append((i, CLIFF_FADE_M * j / CLIFF_BANDS, colour))
        return sorted(widths, key=lambda row: -row[1])

    def _band(self, i: int, width_m: float, colour: palette.Colour) -> tuple[list[Point], palette.Colour]:
        start, end = self._ring[i], self._ring[(i + 1) % len(self._ring)]
        return [start, end, self._outside((i + 1) % len(self._ring), width_m), self._outside(i, width_m)], colour

    def _outside(self, i: int, width_m: float) -> Point:
        """The corner i of a ring that runs `width_m` outside this one."""
        before, here, after = self._ring[i - 1], self._ring[i], self._ring[(i + 1) % len(self._ring)]
        a, b = normal(before, here), normal(here, after)
        stretch = width_m / (1.0 + a[0] * b[0] + a[1] * b[1])
        return here[0] + (a[0] + b[0]) * stretch, here[1] + (a[1] + b[1]) * stretch
