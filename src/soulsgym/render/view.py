"""The stretch of the arena that the picture shows: follows the fight, and keeps still while it can."""

from __future__ import annotations

import math

from soulsgym.render.plan import Point
from soulsgym.spec.arena import Arena

NEAREST_M, FARTHEST_M = 13.5, 46.0
"""Height of the shown stretch, at closest and at most."""
AROUND_M = 5.5
"""Kept in view around both fighters: the reach of a blow."""
STILL_M = 1.5
STILL_ZOOM = 0.12
EASE = 0.25
ZOOM_EASE = 0.15
CONTEXT_SHARE = 0.15
"""How much the view leans from the fight towards the middle of the arena."""


class View:
    """Maps metres to pixels; x to the right and y upwards, so nothing is mirrored."""

    def __init__(
        self,
        arena: Arena,
        size: tuple[int, int],
        *,
        top_px: float,
        bottom_px: float,
        nearest_m: float = NEAREST_M,
        around_m: float = AROUND_M,
    ) -> None:
        self._nearest_m, self._around_m = nearest_m, around_m
        xs, ys = [corner.x_m for corner in arena.corners], [corner.y_m for corner in arena.corners]
        self._middle = (min(xs) + max(xs)) / 2.0, (min(ys) + max(ys)) / 2.0
        self._free_px = size[0], size[1] - top_px - bottom_px
        self._origin_px = size[0] / 2.0, top_px + self._free_px[1] / 2.0
        self._centre = self._middle
        self.px_per_m = self._free_px[1] / FARTHEST_M

    def to_px(self, point: Point) -> Point:
        """Where a place of the arena lies in the picture."""
        return (
            self._origin_px[0] + (point[0] - self._centre[0]) * self.px_per_m,
            self._origin_px[1] - (point[1] - self._centre[1]) * self.px_per_m,
        )

    def jump(self, a: Point, b: Point) -> None:
        """Show a new fight."""
        self._centre, self.px_per_m = self._wanted(a, b)

    def follow(self, a: Point, b: Point) -> None:
        """Ease towards the two fighters, by what lies beyond a stretch in which the view keeps still."""
        (x, y), px_per_m = self._wanted(a, b)
        dx, dy = x - self._centre[0], y - self._centre[1]
        far = math.hypot(dx, dy)
        if far > STILL_M:
            share = EASE * (far - STILL_M) / far
            self._centre = self._centre[0] + share * dx, self._centre[1] + share * dy
        zoom = math.log(px_per_m / self.px_per_m)
        if abs(zoom) > STILL_ZOOM:
            self.px_per_m *= math.exp(ZOOM_EASE * (zoom - math.copysign(STILL_ZOOM, zoom)))

    def _wanted(self, a: Point, b: Point) -> tuple[Point, float]:
        centre = (
            (a[0] + b[0]) / 2.0 * (1.0 - CONTEXT_SHARE) + self._middle[0] * CONTEXT_SHARE,
            (a[1] + b[1]) / 2.0 * (1.0 - CONTEXT_SHARE) + self._middle[1] * CONTEXT_SHARE,
        )
        half_x = max(abs(a[0] - centre[0]), abs(b[0] - centre[0])) + self._around_m
        half_y = max(abs(a[1] - centre[1]), abs(b[1] - centre[1])) + self._around_m
        fit = min(self._free_px[0] / (2.0 * half_x), self._free_px[1] / (2.0 * half_y))
        return centre, min(max(fit, self._free_px[1] / FARTHEST_M), self._free_px[1] / self._nearest_m)
