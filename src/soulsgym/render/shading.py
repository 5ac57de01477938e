"""The heights of the ground as shades, and around it rock that fades into the dark."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from soulsgym.render import palette
from soulsgym.render.plan import Point
from soulsgym.spec.arena import Arena

SURROUNDINGS_M = 12.0
"""How far outside the arena the rock fades into the dark."""

Grid = npt.NDArray[np.float64]


def corners_of(arena: Arena, around_m: float = 0.0) -> tuple[Point, Point]:
    """The lowest and the highest place of the arena, or of its surroundings."""
    xs, ys = [corner.x_m for corner in arena.corners], [corner.y_m for corner in arena.corners]
    return (min(xs) - around_m, min(ys) - around_m), (max(xs) + around_m, max(ys) + around_m)


def shades(arena: Arena, px_per_m: float) -> npt.NDArray[np.uint8]:
    """Colours [x, y, RGB] of the arena and its surroundings, x to the right and y downwards."""
    low, high = corners_of(arena, SURROUNDINGS_M)
    width, height = (math.ceil((high[axis] - low[axis]) * px_per_m) for axis in (0, 1))
    x, y = np.meshgrid(np.linspace(low[0], high[0], width), np.linspace(high[1], low[1], height), indexing="ij")
    outside_m = _outside_m(arena, x, y)
    # A little more ground than there is: walls and cliffs are drawn over its ragged rim.
    inside = outside_m <= 2.0 / px_per_m
    z = _height(arena, x, y)
    lowest, highest = z[inside].min(), z[inside].max()
    colours = _mixed(palette.GROUND_LOW, palette.GROUND_HIGH, (z - lowest) / max(highest - lowest, 0.1))
    colours = np.where(inside[..., None], colours, _mixed(palette.ROCK, palette.ABYSS, outside_m / SURROUNDINGS_M))
    return colours.astype(np.uint8)


def normal(a: Point, b: Point) -> Point:
    """Away from the arena across the edge from a to b; corners run anticlockwise."""
    length = math.dist(a, b)
    return (b[1] - a[1]) / length, (a[0] - b[0]) / length


def _outside_m(arena: Arena, x: Grid, y: Grid) -> Grid:
    """Metres beyond the edge that a point is farthest outside of; negative inside."""
    ring = [(corner.x_m, corner.y_m) for corner in arena.corners]
    beyond = np.full(x.shape, -np.inf)
    for a, b in zip(ring, ring[1:] + ring[:1], strict=True):
        nx, ny = normal(a, b)
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
