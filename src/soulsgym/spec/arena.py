"""The places fights happen in: bounds, starts, the ground and its edge."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from soulsgym.errors import DataError, suggestion
from soulsgym.spec.reader import LARGEST, Mark, Number, Table

Pose = tuple[float, float, float]
Point = tuple[Number, Number, Number]
Start = tuple[Number, Number, Number, Number]
"""x, y, z and heading."""
AboveZero = Annotated[float, Meta(ge=0.1, le=LARGEST)]
Edging = Literal["wall", "cliff"]


@dataclass(frozen=True)
class Ground:
    """The height of the ground, a polynomial of second order."""

    origin_m: tuple[Number, Number]
    coefficients: tuple[Number, Number, Number, Number, Number, Number]


@dataclass(frozen=True)
class CornerRow:
    """A corner as the file has it."""

    at_m: tuple[Number, Number]
    to_next: Edging


@dataclass(frozen=True)
class Ring:
    """The ring of corners, and what a fall does."""

    corners: Annotated[tuple[CornerRow, ...], Mark.COVERED]
    fall_m_per_s2: AboveZero
    deadly_drop_m: AboveZero


@dataclass(frozen=True)
class ArenaTable:
    """An arena as the file has it."""

    low_m: Point
    high_m: Point
    centre_m: tuple[Number, Number]
    player_start: Start
    boss_start: Start
    player_starts: Annotated[tuple[Start, ...], Meta(min_length=1)]
    ground: Ground | None = None
    edge: Ring | None = None


@dataclass(frozen=True)
class Corner:
    """A corner of the arena and what stands between it and the next one."""

    x_m: float
    y_m: float
    to_next: Edging


@dataclass(frozen=True)
class Edge:
    """What lies between two corners: a point is `offset_m - out_x * x_m - out_y * y_m` inside of it."""

    out_x: float  # unit vector that points out of the arena
    out_y: float
    offset_m: float
    cliff: bool


@dataclass(frozen=True)
class Arena:
    """One arena. Starts are x, y and heading; their heights are those of the running game.

    One that is known from the running game alone has no ground and no corners.
    """

    name: str
    low_m: Pose
    high_m: Pose
    centre_m: tuple[float, float]
    player_start: Pose
    boss_start: Pose
    player_starts: tuple[Pose, ...]
    player_start_z_m: float
    boss_start_z_m: float
    player_starts_z_m: tuple[float, ...]
    ground_origin_m: tuple[float, float]
    ground: tuple[float, ...]
    corners: tuple[Corner, ...]
    fall_m_per_s2: float
    deadly_drop_m: float
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The edges in the order of the corners they begin at."""
        edges = []
        for a, b in zip(self.corners, self._shifted(), strict=True):
            length_m = math.hypot(b.x_m - a.x_m, b.y_m - a.y_m)
            # The corners go round anticlockwise, so outside is to the right.
            out_x, out_y = (b.y_m - a.y_m) / length_m, (a.x_m - b.x_m) / length_m
            edges.append(Edge(out_x, out_y, out_x * a.x_m + out_y * a.y_m, a.to_next == "cliff"))
        return tuple(edges)

    def contains(self, x_m: float, y_m: float) -> bool:
        """Is the point inside the ring of corners?"""
        return all(_side(a, b, x_m, y_m) > 0.0 for a, b in zip(self.corners, self._shifted(), strict=True))

    def _shifted(self) -> tuple[Corner, ...]:
        return self.corners[1:] + self.corners[:1]


def _side(a: Corner, b: Corner, x_m: float, y_m: float) -> float:
    return (b.x_m - a.x_m) * (y_m - a.y_m) - (b.y_m - a.y_m) * (x_m - a.x_m)


NO_GROUND, NO_RING = Ground((0.0, 0.0), (0.0,) * 6), Ring((), 0.0, 0.0)


def parse_arena(file: Path, content: dict[str, Any], name: str, *, simulated: bool = True) -> Arena:
    """The arena called `name` out of the content of an arenas file; one to simulate needs its ground and its edge."""
    if name not in content:
        raise DataError(file, name, None, f"is not an arena{suggestion(name, content)}")
    sources: dict[str, str] = {}
    table = Table(file, name, content[name])
    read = table.read(ArenaTable, sources)
    for key in ("ground", "edge"):
        if key not in table.content and (simulated or read.ground or read.edge):
            raise table.missing(key, "a table")
    ground, edge = read.ground or NO_GROUND, read.edge or NO_RING
    arena = Arena(
        name, read.low_m, read.high_m, read.centre_m,
        _flat(read.player_start), _flat(read.boss_start), tuple(_flat(start) for start in read.player_starts),
        read.player_start[2], read.boss_start[2], tuple(start[2] for start in read.player_starts),
        ground.origin_m, ground.coefficients, tuple(Corner(*row.at_m, row.to_next) for row in edge.corners),
        edge.fall_m_per_s2, edge.deadly_drop_m, sources,
    )  # fmt: skip
    if read.edge is not None:
        _check_corners(table, arena)
    _check_starts(table, read, arena)
    return arena


def _flat(start: Start) -> Pose:
    return start[0], start[1], start[3]


def _check_corners(table: Table, arena: Arena) -> None:
    corners = arena.corners
    if len(corners) < 3:
        raise table.error("edge.corners", len(corners), "must be at least three")
    for (a, b), c in product(zip(corners, corners[1:] + corners[:1], strict=True), corners):
        if c is not a and c is not b and _side(a, b, c.x_m, c.y_m) <= 0.0:
            raise table.error(
                "edge.corners", [c.x_m, c.y_m],
                f"must lie left of the edge from {[a.x_m, a.y_m]} to {[b.x_m, b.y_m]}: "
                "the corners go round once, convex and anticlockwise",
            )  # fmt: skip
    for corner in corners:
        if not (arena.low_m[0] < corner.x_m < arena.high_m[0] and arena.low_m[1] < corner.y_m < arena.high_m[1]):
            raise table.error("edge.corners", [corner.x_m, corner.y_m], "lies outside low_m and high_m")


def _check_starts(table: Table, read: ArenaTable, arena: Arena) -> None:
    low_m, high_m = read.low_m, read.high_m
    if low_m[2] >= high_m[2]:
        raise table.error("low_m", low_m, f"must lie below high_m = {list(high_m)}")
    starts = [("player_start", read.player_start), ("boss_start", read.boss_start)]
    for key, start in starts + [("player_starts", start) for start in read.player_starts]:
        if arena.corners and not arena.contains(start[0], start[1]):
            raise table.error(key, start, "lies outside the arena's corners")
        if not all(low < at < high for low, at, high in zip(low_m, start[:3], high_m, strict=True)):
            raise table.error(key, start, f"must lie between {list(low_m)} and {list(high_m)}")
        if abs(start[3]) > math.pi:
            raise table.error(key, start, "must have a heading from -pi to pi")
