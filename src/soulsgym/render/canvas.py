"""Where in the picture the arena lies, and shapes as pixels.

Shapes are drawn on a surface twice as fine as the picture; scaled down, every edge is smooth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import pygame

from soulsgym.render.areas import Point
from soulsgym.render.arena import box_of
from soulsgym.render.shapes import CLOSED, DASHES, DISC, LINE, POLYGON, RING, Shape
from soulsgym.spec.arena import Arena

NEAREST_M, FARTHEST_M = 13.5, 46.0
"""Metres of the arena from the top to the bottom of the picture, at least and at most."""
AROUND_M = 5.5
"""Kept in view around both fighters: the reach of a blow."""
STILL_M, STILL_ZOOM = 1.5, 0.12
EASE, ZOOM_EASE = 0.25, 0.15
TURN_EASE = 0.12
CONTEXT_SHARE = 0.15
"""How much the view leans from the fight towards the middle of the arena."""
FINE = 2
"""Pixels of the canvas per pixel of the picture."""

Pixel = tuple[int, int, int, int]


class View:
    """Maps metres to pixels; follows the fight, and keeps still while it can. x is to the right and y upwards.

    A view that `turns` has the direction up in which the camera looks, as the player's keys do.
    """

    def __init__(
        self,
        arena: Arena,
        size: tuple[int, int],
        *,
        top_px: float = 0.0,
        bottom_px: float = 0.0,
        nearest_m: float = NEAREST_M,
        around_m: float = AROUND_M,
        turns: bool = False,
    ) -> None:
        self.turns = turns
        self._up = 0.0, 1.0
        self._nearest_m, self._around_m = nearest_m, around_m
        low, high = box_of(arena)
        self._middle = (low[0] + high[0]) / 2.0, (low[1] + high[1]) / 2.0
        self._free_px = size[0], size[1] - top_px - bottom_px
        self._origin_px = size[0] / 2.0, top_px + self._free_px[1] / 2.0
        self._before = self._now = self._shown = (*self._middle, self._free_px[1] / FARTHEST_M)

    @property
    def px_per_m(self) -> float:
        """How many pixels of the picture a metre takes."""
        return self._shown[2]

    def to_px(self, point: Point) -> Point:
        """Where a place of the arena lies in the picture."""
        x, y, px_per_m = self._shown
        right, up = self._rotate(point[0] - x, point[1] - y)
        return self._origin_px[0] + right * px_per_m, self._origin_px[1] - up * px_per_m

    def _rotate(self, dx: float, dy: float) -> Point:
        """A way in the arena as metres to the right and upwards in the picture."""
        x, y = self._up
        return dx * y - dy * x, dx * x + dy * y

    def face(self, way: Point, *, at_once: bool = False) -> None:
        """Turn so that a way in the arena leads upwards: at once, or a little of it."""
        share = 1.0 if at_once else TURN_EASE
        x, y = (old + share * (new - old) for old, new in zip(self._up, way, strict=True))
        length = math.hypot(x, y)
        if length > 1e-6:  # straight behind: the next picture decides
            self._up = x / length, y / length

    def jump(self, a: Point, b: Point) -> None:
        """Show a new fight."""
        self._before = self._now = self._shown = self._wanted(a, b)

    def follow(self, a: Point, b: Point) -> None:
        """Ease towards the two fighters, by what lies beyond a distance within which the view keeps still."""
        (wanted_x, wanted_y, wanted_scale), (x, y, px_per_m) = self._wanted(a, b), self._now
        dx, dy = wanted_x - x, wanted_y - y
        far = math.hypot(dx, dy)
        if far > STILL_M:
            share = EASE * (far - STILL_M) / far
            x, y = x + share * dx, y + share * dy
        zoom = math.log(wanted_scale / px_per_m)
        if abs(zoom) > STILL_ZOOM:
            px_per_m *= math.exp(ZOOM_EASE * (zoom - math.copysign(STILL_ZOOM, zoom)))
        self._before, self._now = self._now, (x, y, px_per_m)
        self._shown = self._now

    def show(self, share: float) -> None:
        """Show what was in view at a share of the last step."""
        if share < 1.0:
            x, y, px_per_m = (a + share * (b - a) for a, b in zip(self._before, self._now, strict=True))
            self._shown = x, y, px_per_m
        else:
            self._shown = self._now

    def _wanted(self, a: Point, b: Point) -> tuple[float, float, float]:
        """The centre and the scale that show both best."""
        x = (a[0] + b[0]) / 2.0 * (1.0 - CONTEXT_SHARE) + self._middle[0] * CONTEXT_SHARE
        y = (a[1] + b[1]) / 2.0 * (1.0 - CONTEXT_SHARE) + self._middle[1] * CONTEXT_SHARE
        ways = [self._rotate(point[0] - x, point[1] - y) for point in (a, b)]
        half_x = max(abs(right) for right, _ in ways) + self._around_m
        half_y = max(abs(up) for _, up in ways) + self._around_m
        fit = min(self._free_px[0] / (2.0 * half_x), self._free_px[1] / (2.0 * half_y))
        return x, y, min(max(fit, self._free_px[1] / FARTHEST_M), self._free_px[1] / self._nearest_m)


class Canvas:
    """Draws shapes; those with an alpha below 1 let the ground shine through."""

    def __init__(self, size: tuple[int, int], view: View) -> None:
        fine = size[0] * FINE, size[1] * FINE
        self.surface = pygame.Surface(fine, depth=32)
        self._view = view
        self._veil = pygame.Surface(fine, pygame.SRCALPHA, 32)
        self._frame = self.surface.get_rect()

    def px(self, point: Point) -> Point:
        """A place of the arena on this canvas."""
        x, y = self._view.to_px(point)
        return x * FINE, y * FINE

    def draw(self, shapes: Iterable[Shape]) -> None:
        """Draw shapes one over the other."""
        for shape in shapes:
            if shape.kind == DASHES:
                self.draw(self._dashes(shape))
            else:
                self._draw(shape, [self.px(point) for point in shape.points])

    def _draw(self, shape: Shape, pixels: list[Point]) -> None:
        radius = shape.radius_m * self._view.px_per_m * FINE
        width = max(1, round(shape.width_px * FINE))
        left, right = min(x for x, _ in pixels) - radius, max(x for x, _ in pixels) + radius
        top, bottom = min(y for _, y in pixels) - radius, max(y for _, y in pixels) + radius
        if right < 0 or bottom < 0 or left > self._frame.width or top > self._frame.height:
            return
        if shape.alpha >= 1.0:
            _paint(self.surface, shape, pixels, radius, width)
            return
        # On a veil that is cleared where the shape will be, since drawing replaces what lies below.
        edge = width + 2.0
        rect = pygame.Rect(left - edge, top - edge, right - left + 2 * edge, bottom - top + 2 * edge)
        rect = rect.clip(self._frame)
        self._veil.fill((0, 0, 0, 0), rect)
        _paint(self._veil, shape, pixels, radius, width)
        self.surface.blit(self._veil, rect, rect)

    def _dashes(self, shape: Shape) -> Iterator[Shape]:
        """The lines of a dashed one, which begins and ends with a dash."""
        start, end = shape.points
        length = math.dist(self.px(start), self.px(end)) / FINE
        count = max(1, round(length / shape.dash_px) // 2 * 2 + 1)
        for i in range(0, count, 2):
            points = [_between(start, end, i / count), _between(start, end, (i + 1) / count)]
            yield shape._replace(kind=LINE, points=points)


def _paint(target: pygame.Surface, shape: Shape, pixels: Sequence[Point], radius: float, width: int) -> None:
    colour = (*shape.colour, round(255 * min(max(shape.alpha, 0.0), 1.0)))
    if shape.kind == POLYGON:
        pygame.draw.polygon(target, colour, pixels)
    elif shape.kind in (DISC, RING):
        pygame.draw.circle(target, colour, pixels[0], radius, width if shape.kind == RING else 0)
    else:
        for start, end in pairwise([*pixels, pixels[0]] if shape.kind == CLOSED else pixels):
            _thick_line(target, colour, start, end, width)
        # Round at the bends.
        for pixel in pixels if width > 2 else ():
            pygame.draw.circle(target, colour, pixel, width / 2.0)


def _between(start: Point, end: Point, share: float) -> Point:
    return start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])


def _thick_line(target: pygame.Surface, colour: Pixel, start: Point, end: Point, width: int) -> None:
    """A line as wide in every direction; pygame's own gets thinner when it is slanted."""
    length = math.dist(start, end)
    if width <= 2 or length < 1e-6:
        pygame.draw.line(target, colour, start, end, width)
        return
    x, y = (start[1] - end[1]) / length * width / 2.0, (end[0] - start[0]) / length * width / 2.0
    ends = (start, 1.0), (end, 1.0), (end, -1.0), (start, -1.0)
    pygame.draw.polygon(target, colour, [(px + side * x, py + side * y) for (px, py), side in ends])
