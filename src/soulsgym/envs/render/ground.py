"""The arena: the ground lighter the higher it is, a grid of metres, walls and cliffs."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pygame

from soulsgym.envs.render import palette
from soulsgym.envs.render.canvas import FINE, Canvas
from soulsgym.envs.render.plan import Point
from soulsgym.movesets.arena import Arena

SHADE_PX_PER_M = 8
GRID_M = 5.0
WALL_M = 0.8
CLIFF_FADE_M = 2.4
CLIFF_BANDS = 6
SURROUNDINGS_M = 12.0
"""How far outside the arena the rock fades into the dark."""

Grid = npt.NDArray[np.float64]


class Ground:
    """Draws an arena; the heights and the surroundings are shaded once."""

    def __init__(self, arena: Arena) -> None:
        self._ring: list[Point] = [(corner.x_m, corner.y_m) for corner in arena.corners]
        self._cliffs = [corner.to_next == "cliff" for corner in arena.corners]
        xs, ys = [point[0] for point in self._ring], [point[1] for point in self._ring]
        self._low, self._high = (min(xs), min(ys)), (max(xs), max(ys))
        self._grid = self._grid_lines()
        self._shade_low = self._low[0] - SURROUNDINGS_M, self._low[1] - SURROUNDINGS_M
        self._shade_high = self._high[0] + SURROUNDINGS_M, self._high[1] + SURROUNDINGS_M
        self._shade = _shade(arena, self._shade_low, self._shade_high)
        self._bands = [self._band(i, width_m, colour) for i, width_m, colour in self._band_widths()]

    def draw(self, canvas: Canvas) -> None:
        """Paint over the whole canvas."""
        self._draw_shade(canvas)
        self._draw_grid(canvas)
        for corners, colour in self._bands:
            canvas.polygon(corners, colour)
        for start, end, cliff in zip(self._ring, self._ring[1:] + self._ring[:1], self._cliffs, strict=True):
            if cliff:
                canvas.dashes(start, end, palette.CLIFF, 3.0, 11.0)
            else:
                canvas.lines([start, end], palette.WALL, 3.0)

    def _draw_shade(self, canvas: Canvas) -> None:
        """Scale the part of the shading that is in view."""
        left, bottom = canvas.px(self._shade_low)
        right, top = canvas.px(self._shade_high)
        whole = pygame.Rect(round(left), round(top), round(right - left), round(bottom - top))
        seen = whole.clip(canvas.surface.get_rect())
        if seen.size != canvas.surface.get_size():
            canvas.surface.fill(palette.ABYSS)
        if seen.width < 1 or seen.height < 1:
            return
        width, height = self._shade.get_size()
        kx, ky = width / whole.width, height / whole.height
        x0, y0 = math.floor((seen.left - whole.left) * kx), math.floor((seen.top - whole.top) * ky)
        x1, y1 = math.ceil((seen.right - whole.left) * kx), math.ceil((seen.bottom - whole.top) * ky)
        part = self._shade.subsurface((x0, y0, min(x1, width) - x0, min(y1, height) - y0))
        # Neighbouring pixels differ by less than a shade, so scaling need not smooth them.
        pygame.transform.scale(part, seen.size, canvas.surface.subsurface(seen))

    def _draw_grid(self, canvas: Canvas) -> None:
        for start, end in self._grid:
            pygame.draw.line(canvas.surface, palette.GRID, canvas.px(start), canvas.px(end), FINE // 2)

    def _grid_lines(self) -> list[tuple[Point, Point]]:
        """Lines every few metres, from edge to edge."""
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
        a, b = _normal(before, here), _normal(here, after)
        stretch = width_m / (1.0 + a[0] * b[0] + a[1] * b[1])
        return here[0] + (a[0] + b[0]) * stretch, here[1] + (a[1] + b[1]) * stretch


class Overview:
    """The small plan of the whole arena."""

    def __init__(self, arena: Arena, height_px: int) -> None:
        xs, ys = [corner.x_m for corner in arena.corners], [corner.y_m for corner in arena.corners]
        self._scale = height_px / (max(ys) - min(ys))
        self._left, self._top = min(xs), max(ys)
        self._edge = 8
        width = (max(xs) - min(xs)) * self._scale
        self.size = round(width) + 2 * self._edge, height_px + 2 * self._edge
        fine = pygame.Surface((self.size[0] * FINE, self.size[1] * FINE), pygame.SRCALPHA, 32)
        ring = [(x * FINE, y * FINE) for x, y in (self.px((corner.x_m, corner.y_m)) for corner in arena.corners)]
        pygame.draw.polygon(fine, palette.GROUND_LOW, ring)
        for corner, start, end in zip(arena.corners, ring, ring[1:] + ring[:1], strict=True):
            pygame.draw.line(fine, palette.CLIFF if corner.to_next == "cliff" else palette.WALL, start, end, 2 * FINE)
        self.picture = pygame.transform.smoothscale(fine, self.size)

    def px(self, point: Point) -> Point:
        """A place of the arena in this plan."""
        return (
            self._edge + (point[0] - self._left) * self._scale,
            self._edge + (self._top - point[1]) * self._scale,
        )


def _normal(a: Point, b: Point) -> Point:
    """Away from the arena across the edge from a to b; corners run anticlockwise."""
    length = math.dist(a, b)
    return (b[1] - a[1]) / length, (a[0] - b[0]) / length


def _shade(arena: Arena, low: Point, high: Point) -> pygame.Surface:
    """The heights of the ground as shades, and around it rock that fades into the dark."""
    width, height = (math.ceil((high[axis] - low[axis]) * SHADE_PX_PER_M) for axis in (0, 1))
    x, y = np.meshgrid(np.linspace(low[0], high[0], width), np.linspace(high[1], low[1], height), indexing="ij")
    outside_m = _outside_m(arena, x, y)
    # A little more ground than there is: walls and cliffs are drawn over its ragged rim.
    inside = outside_m <= 2.0 / SHADE_PX_PER_M
    z = _height(arena, x, y)
    lowest, highest = z[inside].min(), z[inside].max()
    colours = _mixed(palette.GROUND_LOW, palette.GROUND_HIGH, (z - lowest) / max(highest - lowest, 0.1))
    colours = np.where(inside[..., None], colours, _mixed(palette.ROCK, palette.ABYSS, outside_m / SURROUNDINGS_M))
    shade = pygame.Surface((width, height), depth=32)
    pygame.surfarray.blit_array(shade, colours.astype(np.uint8))
    return shade


def _outside_m(arena: Arena, x: Grid, y: Grid) -> Grid:
    """Metres beyond the edge that a point is farthest outside of; negative inside."""
    ring = [(corner.x_m, corner.y_m) for corner in arena.corners]
    beyond = np.full(x.shape, -np.inf)
    for a, b in zip(ring, ring[1:] + ring[:1], strict=True):
        nx, ny = _normal(a, b)
        beyond = np.maximum(beyond, (x - a[0]) * nx + (y - a[1]) * ny)
    return beyond


def _height(arena: Arena, x: Grid, y: Grid) -> Grid:
    u, v = x - arena.ground_origin_m[0], y - arena.ground_origin_m[1]
    c = arena.ground
    height: Grid = c[0] + c[1] * u + c[2] * v + c[3] * u * u + c[4] * u * v + c[5] * v * v
    return height


def _mixed(a: palette.Colour, b: palette.Colour, share: Grid) -> Grid:
    part = np.clip(share, 0.0, 1.0)[..., None]
    mixed: Grid = np.array(a) * (1.0 - part) + np.array(b) * part
    return mixed
