"""The arena: the ground lighter the higher it is, a grid of metres, walls and cliffs."""

from __future__ import annotations

import math

import pygame

from soulsgym.render import palette
from soulsgym.render.canvas import FINE, Canvas
from soulsgym.render.edges import Edges
from soulsgym.render.plan import Point
from soulsgym.render.shading import SURROUNDINGS_M, corners_of, shades
from soulsgym.spec.arena import Arena

SHADE_PX_PER_M = 8


class Ground:
    """Draws an arena; the heights and the surroundings are shaded once."""

    def __init__(self, arena: Arena) -> None:
        self._edges = Edges(arena)
        self._shade_low, self._shade_high = corners_of(arena, SURROUNDINGS_M)
        self._shade = _surface(arena)

    def draw(self, canvas: Canvas) -> None:
        """Paint over the whole canvas."""
        self._draw_shade(canvas)
        self._draw_grid(canvas)
        self._edges.draw(canvas)

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
        for start, end in self._edges.grid:
            pygame.draw.line(canvas.surface, palette.GRID, canvas.px(start), canvas.px(end), FINE // 2)


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


def _surface(arena: Arena) -> pygame.Surface:
    colours = shades(arena, SHADE_PX_PER_M)
    surface = pygame.Surface(colours.shape[:2], depth=32)
    pygame.surfarray.blit_array(surface, colours)
    return surface
