"""The places fights happen in: bounds, starts, the ground and its edge."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from soulsgym.errors import DataError
from soulsgym.spec.reader import Table, suggestion

Pose = tuple[float, float, float]
EDGES = ("wall", "cliff")


@dataclass(frozen=True)
class Corner:
    """A corner of the arena and what stands between it and the next one."""

    x_m: float
    y_m: float
    to_next: str


@dataclass(frozen=True)
class Arena:
    """One arena."""

    name: str
    low_m: Pose
    high_m: Pose
    centre_m: tuple[float, float]
    player_start: Pose
    boss_start: Pose
    player_starts: tuple[Pose, ...]
    ground_origin_m: tuple[float, float]
    ground: tuple[float, ...]
    corners: tuple[Corner, ...]
    fall_m_per_s2: float
    deadly_drop_m: float
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)

    def contains(self, x_m: float, y_m: float) -> bool:
        """Is the point inside the ring of corners?"""
        return all(_side(a, b, x_m, y_m) > 0.0 for a, b in zip(self.corners, self._shifted(), strict=True))

    def _shifted(self) -> tuple[Corner, ...]:
        return (*self.corners[1:], self.corners[0])


def _side(a: Corner, b: Corner, x_m: float, y_m: float) -> float:
    return (b.x_m - a.x_m) * (y_m - a.y_m) - (b.y_m - a.y_m) * (x_m - a.x_m)


def parse_arena(file: Path, content: dict[str, object], name: str) -> Arena:
    """The arena called `name` out of the content of an arenas file."""
    if name not in content:
        raise DataError(file, name, None, f"is no arena{suggestion(name, tuple(content))}")
    table = Table(file, name, content[name])
    low, high = table.numbers("low_m", count=3), table.numbers("high_m", count=3)
    centre = table.numbers("centre_m", count=2)
    player_start = _pose(table, "player_start", table.numbers("player_start", count=3))
    boss_start = _pose(table, "boss_start", table.numbers("boss_start", count=3))
    starts = _poses(table)
    ground, edge = table.table("ground"), table.table("edge")
    origin = ground.numbers("origin_m", count=2)
    coefficients = ground.numbers("coefficients", count=6)
    corners = _corners(edge)
    fall, drop = edge.number("fall_m_per_s2", low=0.1), edge.number("deadly_drop_m", low=0.1)
    sources = {
        f"{inner.path}.{key}": source for inner in (table, ground, edge) for key, source in inner.close().items()
    }
    arena = Arena(
        name, _pose(table, "low_m", low), _pose(table, "high_m", high), (centre[0], centre[1]),
        player_start, boss_start, starts, (origin[0], origin[1]), coefficients, corners, fall, drop, sources,
    )  # fmt: skip
    _check(table, arena)
    return arena


def _pose(table: Table, key: str, values: tuple[float, ...]) -> Pose:
    if len(values) != 3:
        raise table.error(key, list(values), "must be three numbers")
    return values[0], values[1], values[2]


def _poses(table: Table) -> tuple[Pose, ...]:
    raw = table.lists("player_starts")
    return tuple(_pose(table, "player_starts", row) for row in raw)


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


def _check(table: Table, arena: Arena) -> None:
    for key, poses in (
        ("player_start", (arena.player_start,)),
        ("boss_start", (arena.boss_start,)),
        ("player_starts", arena.player_starts),
    ):
        for pose in poses:
            if not arena.contains(pose[0], pose[1]):
                raise table.error(key, list(pose), "lies outside the arena's corners")
            if abs(pose[2]) > math.pi:
                raise table.error(key, list(pose), "must have a heading from -pi to pi")
    if arena.low_m[2] >= arena.high_m[2]:
        raise table.error("low_m", list(arena.low_m), f"must lie below high_m = {list(arena.high_m)}")
    for corner in arena.corners:
        if not (arena.low_m[0] < corner.x_m < arena.high_m[0] and arena.low_m[1] < corner.y_m < arena.high_m[1]):
            raise table.error("edge.corners", [corner.x_m, corner.y_m], "lies outside low_m and high_m")
