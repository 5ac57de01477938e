"""The arena: the heights of its ground as shades, a grid of metres, its rim, and rock that fades into the dark."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from soulsgym.render import palette
from soulsgym.render.areas import Point
from soulsgym.render.palette import Colour
from soulsgym.render.shapes import DASHES, LINE, POLYGON, Shape
from soulsgym.spec.arena import Arena

SURROUNDINGS_M = 12.0
"""How far outside the arena the rock fades into the dark."""
GRID_M = 5.0
WALL_M = 0.8
CLIFF_FADE_M = 2.4
CLIFF_BANDS = 6

Grid = npt.NDArray[np.float64]


def box_of(arena: Arena, around_m: float = 0.0) -> tuple[Point, Point]:
    """The lowest and the highest place of the arena, or of its surroundings."""
    xs, ys = [corner.x_m for corner in arena.corners], [corner.y_m for corner in arena.corners]
    return (min(xs) - around_m, min(ys) - around_m), (max(xs) + around_m, max(ys) + around_m)


def shades(arena: Arena, px_per_m: float) -> npt.NDArray[np.uint8]:
    """Colours [x, y, RGB] of the arena and its surroundings, x to the right and y downwards."""
    low, high = box_of(arena, SURROUNDINGS_M)
    width, height = (math.ceil((high[axis] - low[axis]) * px_per_m) for axis in (0, 1))
    x, y = np.meshgrid(np.linspace(low[0], high[0], width), np.linspace(high[1], low[1], height), indexing="ij")
    outside_m = _outside_m(arena, x, y)
    # A little more ground than there is: walls and cliffs are drawn over its ragged rim.
    inside = outside_m <= 2.0 / px_per_m
    z = _height(arena, x, y)
    lowest, highest = z[inside].min(), z[inside].max()
    colours = _mix(palette.GROUND_LOW, palette.GROUND_HIGH, (z - lowest) / max(highest - lowest, 0.1))
    colours = np.where(inside[..., None], colours, _mix(palette.ROCK, palette.ABYSS, outside_m / SURROUNDINGS_M))
    return colours.astype(np.uint8)


def rim(arena: Arena) -> list[Shape]:
    """Walls and cliffs, and outside of them stone behind a wall, and below a cliff ever darker red."""
    ring, stone = ring_of(arena), palette.mix(palette.ROCK, palette.WALL, 0.35)
    bands: list[tuple[float, int, Colour]] = []
    lines = []
    for i, corner in enumerate(arena.corners):
        edge = [ring[i], ring[(i + 1) % len(ring)]]
        if corner.to_next != "cliff":
            bands.append((WALL_M, i, stone))
            lines.append(Shape(LINE, edge, palette.WALL, width_px=3.0))
            continue
        for j in range(CLIFF_BANDS, 0, -1):
            colour = palette.mix(palette.ABYSS, palette.CLIFF, 0.34 * (1.0 - j / (CLIFF_BANDS + 1)))
            bands.append((CLIFF_FADE_M * j / CLIFF_BANDS, i, colour))
        lines.append(Shape(DASHES, edge, palette.CLIFF, width_px=3.0, dash_px=11.0))
    bands.sort(key=lambda band: -band[0])
    return [Shape(POLYGON, _band(arena, i, width_m), colour) for width_m, i, colour in bands] + lines


def grid_lines(arena: Arena) -> Iterator[tuple[Point, Point]]:
    """Lines every few metres, from edge to edge."""
    low, high = box_of(arena)
    for axis in (0, 1):
        for i in range(math.ceil(low[axis] / GRID_M), math.floor(high[axis] / GRID_M) + 1):
            ends = _crossings(ring_of(arena), axis, i * GRID_M)
            if len(ends) >= 2:
                yield min(ends), max(ends)


def ring_of(arena: Arena) -> list[Point]:
    """The corners, anticlockwise."""
    return [(corner.x_m, corner.y_m) for corner in arena.corners]


def _crossings(ring: list[Point], axis: int, value: float) -> list[Point]:
    """Where the ring crosses x = value (axis 0) or y = value (axis 1)."""
    points = []
    for a, b in zip(ring, ring[1:] + ring[:1], strict=True):
        if min(a[axis], b[axis]) <= value < max(a[axis], b[axis]):
            share = (value - a[axis]) / (b[axis] - a[axis])
            points.append((a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])))
    return points


def _band(arena: Arena, i: int, width_m: float) -> list[Point]:
    """A strip along the outside of an edge."""
    ring, following = ring_of(arena), (i + 1) % len(arena.corners)
    return [ring[i], ring[following], _outside(arena, following, width_m), _outside(arena, i, width_m)]


def _outside(arena: Arena, i: int, width_m: float) -> Point:
    """The corner i of a ring that runs `width_m` outside the arena's."""
    before, after, here = arena.edges[i - 1], arena.edges[i], arena.corners[i]
    scale = width_m / (1.0 + before.out_x * after.out_x + before.out_y * after.out_y)
    return here.x_m + (before.out_x + after.out_x) * scale, here.y_m + (before.out_y + after.out_y) * scale


def _outside_m(arena: Arena, x: Grid, y: Grid) -> Grid:
    """Metres beyond the edge that a point is farthest outside of; negative inside."""
    beyond = np.full(x.shape, -np.inf)
    for edge in arena.edges:
        beyond = np.maximum(beyond, x * edge.out_x + y * edge.out_y - edge.offset_m)
    return beyond


def _height(arena: Arena, x: Grid, y: Grid) -> Grid:
    u, v = x - arena.ground_origin_m[0], y - arena.ground_origin_m[1]
    c = arena.ground
    height: Grid = c[0] + c[1] * u + c[2] * v + c[3] * u * u + c[4] * u * v + c[5] * v * v
    return height


def _mix(a: Colour, b: Colour, share: Grid) -> Grid:
    part = np.clip(share, 0.0, 1.0)[..., None]
    mixed: Grid = np.array(a) * (1.0 - part) + np.array(b) * part
    return mixed
