"""Canvas: draws metres on a surface twice as fine as the picture; scaled down, every edge is smooth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import pygame

from soulsgym.render.palette import Colour
from soulsgym.render.plan import Point
from soulsgym.render.view import View

FINE = 2
"""Pixels of the canvas per pixel of the picture."""


class Canvas:
    """Shapes in metres, line widths in pixels of the picture; `alpha` below 1 lets the ground shine through."""

    def __init__(self, size: tuple[int, int], view: View) -> None:
        fine = size[0] * FINE, size[1] * FINE
        self.surface = pygame.Surface(fine, depth=32)
        self.view = view
        self._veil = pygame.Surface(fine, pygame.SRCALPHA, 32)
        self._frame = self.surface.get_rect()

    def px(self, point: Point) -> Point:
        """A place of the arena on this canvas."""
        x, y = self.view.to_px(point)
        return x * FINE, y * FINE

    def metres(self, length_m: float) -> float:
        """A length of the arena on this canvas."""
        return length_m * self.view.px_per_m * FINE

    def polygon(self, points: Sequence[Point], colour: Colour, alpha: float = 1.0) -> None:
        """A filled shape."""
        pixels = [self.px(point) for point in points]
        if not self._in_frame(pixels):
            return
        target, rect = self._target(pixels, 0.0, alpha)
        pygame.draw.polygon(target, _with_alpha(colour, alpha), pixels)
        self._drop_veil(target, rect)

    def lines(
        self, points: Sequence[Point], colour: Colour, width: float, alpha: float = 1.0, *, closed: bool = False
    ) -> None:
        """A line through points, round at its bends."""
        pixels = [self.px(point) for point in points]
        if closed:
            pixels.append(pixels[0])
        if not self._in_frame(pixels):
            return
        thick = max(1, round(width * FINE))
        target, rect = self._target(pixels, thick, alpha)
        shade = _with_alpha(colour, alpha)
        for start, end in pairwise(pixels):
            _thick_line(target, shade, start, end, thick)
        if thick > 2:
            for pixel in pixels:
                pygame.draw.circle(target, shade, pixel, thick / 2.0)
        self._drop_veil(target, rect)

    def dashes(
        self, start: Point, end: Point, colour: Colour, width: float, dash_px: float, alpha: float = 1.0
    ) -> None:
        """A broken line that begins and ends with a dash."""
        length = math.dist(self.px(start), self.px(end)) / FINE
        count = max(1, round(length / dash_px) // 2 * 2 + 1)
        for i in range(0, count, 2):
            self.lines([_between(start, end, i / count), _between(start, end, (i + 1) / count)], colour, width, alpha)

    def circle(self, centre: Point, radius_m: float, colour: Colour, alpha: float = 1.0, *, ring: float = 0.0) -> None:
        """A disc, or with `ring` a ring of that width."""
        pixel, radius = self.px(centre), self.metres(radius_m)
        corners = [(pixel[0] - radius, pixel[1] - radius), (pixel[0] + radius, pixel[1] + radius)]
        target, rect = self._target(corners, ring * FINE, alpha)
        pygame.draw.circle(target, _with_alpha(colour, alpha), pixel, radius, round(ring * FINE))
        self._drop_veil(target, rect)

    def _in_frame(self, pixels: Sequence[Point]) -> bool:
        xs, ys = [pixel[0] for pixel in pixels], [pixel[1] for pixel in pixels]
        return max(xs) >= 0 and max(ys) >= 0 and min(xs) <= self._frame.width and min(ys) <= self._frame.height

    def _target(self, pixels: Sequence[Point], margin: float, alpha: float) -> tuple[pygame.Surface, pygame.Rect]:
        """The surface to draw on: itself, or a veil that is cleared where the shape will be."""
        if alpha >= 1.0:
            return self.surface, self._frame
        xs, ys = [pixel[0] for pixel in pixels], [pixel[1] for pixel in pixels]
        edge = margin + 2.0
        rect = pygame.Rect(min(xs) - edge, min(ys) - edge, max(xs) - min(xs) + 2 * edge, max(ys) - min(ys) + 2 * edge)
        rect = rect.clip(self._frame)
        self._veil.fill((0, 0, 0, 0), rect)
        return self._veil, rect

    def _drop_veil(self, target: pygame.Surface, rect: pygame.Rect) -> None:
        if target is self._veil:
            self.surface.blit(self._veil, rect, rect)


def _with_alpha(colour: Colour, alpha: float) -> tuple[int, int, int, int]:
    return (*colour, round(255 * min(max(alpha, 0.0), 1.0)))


def _between(start: Point, end: Point, share: float) -> Point:
    return start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])


def _thick_line(
    target: pygame.Surface, colour: tuple[int, int, int, int], start: Point, end: Point, width: int
) -> None:
    """A line as wide in every direction; pygame's own gets thinner when it is slanted."""
    length = math.dist(start, end)
    if width <= 2 or length < 1e-6:
        pygame.draw.line(target, colour, start, end, width)
        return
    x, y = (start[1] - end[1]) / length * width / 2.0, (end[0] - start[0]) / length * width / 2.0
    corners = [
        (start[0] + x, start[1] + y),
        (end[0] + x, end[1] + y),
        (end[0] - x, end[1] - y),
        (start[0] - x, start[1] - y),
    ]
    pygame.draw.polygon(target, colour, corners)
