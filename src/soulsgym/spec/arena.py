"""The places fights happen in: bounds, starts, the ground and its edge."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from soulsgym.errors import DataError, suggestion
from soulsgym.spec.reader import Table

Pose = tuple[float, float, float]
EDGES = ("wall", "cliff")


@dataclass(frozen=True)
class Corner:
    """A corner of the arena and what stands between it and the next one."""

    x_m: float
    y_m: float
    to_next: str


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
        return (*self.corners[1:], self.corners[0])


def _side(a: Corner, b: Corner, x_m: float, y_m: float) -> float:
    return (b.x_m - a.x_m) * (y_m - a.y_m) - (b.y_m - a.y_m) * (x_m - a.x_m)


def parse_arena(file: Path, content: dict[str, object], name: str, *, simulated: bool = True) -> Arena:
    """The arena called `name` out of the content of an arenas file; one to simulate needs its ground and its edge."""
    if name not in content:
        raise DataError(file, name, None, f"is no arena{suggestion(name, tuple(content))}")
    table = Table(file, name, content[name])
    low, high = table.numbers("low_m", count=3), table.numbers("high_m", count=3)
    centre = table.numbers("centre_m", count=2)
    player_start, boss_start = table.numbers("player_start", count=4), table.numbers("boss_start", count=4)
    player_starts = table.lists("player_starts")
    for row in player_starts:
        if len(row) != 4:
            raise table.error("player_starts", list(row), "must be x, y, z and a heading")
    sources: dict[str, str] = {}
    origin: tuple[float, float] = (0.0, 0.0)
    coefficients: tuple[float, ...] = (0.0,) * 6
    corners: tuple[Corner, ...] = ()
    fall, drop = 0.0, 0.0
    if simulated or table.has("ground") or table.has("edge"):
        ground, edge = table.table("ground"), table.table("edge")
        x, y = ground.numbers("origin_m", count=2)
        origin, coefficients = (x, y), ground.numbers("coefficients", count=6)
        corners = _corners(edge)
        fall, drop = edge.number("fall_m_per_s2", low=0.1), edge.number("deadly_drop_m", low=0.1)
        for inner in (ground, edge):
            sources |= {f"{inner.path}.{key}": source for key, source in inner.close().items()}
    sources |= {f"{name}.{key}": source for key, source in table.close().items()}
    arena = Arena(
        name, (low[0], low[1], low[2]), (high[0], high[1], high[2]), (centre[0], centre[1]),
        _flat(player_start), _flat(boss_start), tuple(_flat(row) for row in player_starts),
        player_start[2], boss_start[2], tuple(row[2] for row in player_starts),
        origin, coefficients, corners, fall, drop, sources,
    )  # fmt: skip
    _check(table, arena, {"player_start": [player_start], "boss_start": [boss_start], "player_starts": player_starts})
    return arena


def _flat(pose: tuple[float, ...]) -> Pose:
    return pose[0], pose[1], pose[3]


def _corners(edge: Table) -> tuple[Corner, ...]:
    corners = []
    for row in edge.rows("corners"):
        x_m, y_m = row.numbers("at_m", count=2)
        corners.append(Corner(x_m, y_m, row.text("to_next", among=EDGES)))
        row.close(inherited_source=True)
    edge.cover("corners")
    if len(corners) < 3:
        raise edge.error("corners", len(corners), "must be at least three")
    for (a, b), c in product(zip(corners, corners[1:] + corners[:1], strict=True), corners):
        if c is not a and c is not b and _side(a, b, c.x_m, c.y_m) <= 0.0:
            raise edge.error(
                "corners", [c.x_m, c.y_m],
                f"must lie left of the edge from {[a.x_m, a.y_m]} to {[b.x_m, b.y_m]}: "
                "the corners go round once, convex and anticlockwise",
            )  # fmt: skip
    return tuple(corners)


def _check(table: Table, arena: Arena, starts: Mapping[str, list[tuple[float, ...]]]) -> None:
    low_m, high_m = arena.low_m, arena.high_m
    if low_m[2] >= high_m[2]:
        raise table.error("low_m", list(low_m), f"must lie below high_m = {list(high_m)}")
    for corner in arena.corners:
        if not (low_m[0] < corner.x_m < high_m[0] and low_m[1] < corner.y_m < high_m[1]):
            raise table.error("edge.corners", [corner.x_m, corner.y_m], "lies outside low_m and high_m")
    for key, poses in starts.items():
        for pose in poses:
            if arena.corners and not arena.contains(pose[0], pose[1]):
                raise table.error(key, list(pose), "lies outside the arena's corners")
            if not all(low < at < high for low, at, high in zip(low_m, pose[:3], high_m, strict=True)):
                raise table.error(key, list(pose), f"must lie between {list(low_m)} and {list(high_m)}")
            if abs(pose[3]) > math.pi:
                raise table.error(key, list(pose), "must have a heading from -pi to pi")
