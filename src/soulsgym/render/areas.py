"""Places in the arena: directions, the areas of blows, and where the boss will be when one lands.

A heading a looks along (-sin a, -cos a) and bearings grow to the right of it, as everywhere in the project.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from soulsgym.spec.boss import BossMove, Hit, Motion, Stretch
from soulsgym.spec.player import Strike

Point = tuple[float, float]
Outline = list[Point]

ARC_STEP_DEG = 4.0
FULL_TURN_DEG = 360.0


@dataclass(frozen=True)
class Pose:
    """Where somebody stands and looks."""

    x_m: float
    y_m: float
    heading_rad: float

    @classmethod
    def of(cls, pose: npt.NDArray[np.float32]) -> Pose:
        """The place and heading of a pose of the record."""
        return cls(float(pose[0]), float(pose[1]), float(pose[3]))

    @property
    def at(self) -> Point:
        """The place alone."""
        return self.x_m, self.y_m

    def towards(self, bearing_rad: float, distance_m: float) -> Point:
        """The point in a direction from here, counted from the heading to the right."""
        angle = self.heading_rad + bearing_rad
        return self.x_m - distance_m * math.sin(angle), self.y_m - distance_m * math.cos(angle)

    def offset(self, forward_m: float, right_m: float) -> Point:
        """The point so far ahead and to the right."""
        sine, cosine = math.sin(self.heading_rad), math.cos(self.heading_rad)
        return (
            self.x_m - sine * forward_m - cosine * right_m,
            self.y_m - cosine * forward_m + sine * right_m,
        )

    def moved(self, forward_m: float, right_m: float) -> Pose:
        """The same heading, somewhere else."""
        return Pose(*self.offset(forward_m, right_m), self.heading_rad)


def sector(pose: Pose, from_deg: float, to_deg: float, reach_m: float, inner_m: float = 0.0) -> Outline:
    """A piece of a disc between two bearings, at most all of it."""
    # Where an outline lies over itself it would be drawn as a hole.
    to_deg = from_deg + min(max(to_deg - from_deg, -FULL_TURN_DEG), FULL_TURN_DEG)
    steps = max(2, math.ceil(abs(to_deg - from_deg) / ARC_STEP_DEG))
    bearings = [math.radians(from_deg + (to_deg - from_deg) * i / steps) for i in range(steps + 1)]
    outer = [pose.towards(bearing, reach_m) for bearing in bearings]
    if inner_m <= 0.0:
        return [*outer, pose.at]
    return outer + [pose.towards(bearing, inner_m) for bearing in reversed(bearings)]


def lane(pose: Pose, half_width_m: float, reach_m: float, inner_m: float = 0.0) -> Outline:
    """A strip ahead whose ends are round, because reach is a distance from the centre."""
    across = [half_width_m * (i / 6.0 - 1.0) for i in range(13)]

    def end(radius_m: float) -> Outline:
        return [pose.offset(math.sqrt(max(radius_m**2 - side**2, 0.0)), side) for side in across]

    return end(reach_m) + end(inner_m)[::-1]


def disc(pose: Pose, radius_m: float) -> Outline:
    """A whole circle."""
    return sector(pose, 0.0, FULL_TURN_DEG, radius_m)[:-1]


def area_of_hit(hit: Hit, boss: Pose, growth: float = 1.0) -> Outline:
    """The area of a blow of the boss, or the share of it that has grown so far."""
    reach_m = hit.inner_m + growth * (hit.reach_m - hit.inner_m)
    if hit.shape == "disc":
        return disc(boss.moved(hit.offset_m, 0.0), reach_m)
    if hit.shape == "thrust":
        return lane(boss, hit.half_width_m, reach_m, hit.inner_m)
    if hit.shape == "shot":
        return lane(boss, hit.radius_m, reach_m)
    low, high = min(hit.arc_deg), max(hit.arc_deg)
    margin = hit.blade_deg if hit.sweep else 0.0
    return sector(boss, low - margin, high + margin, reach_m, hit.inner_m)


def blade_deg(hit: Hit, move_s: float) -> float:
    """The bearing of a sweeping blade at a time of the move."""
    share = min(max((move_s - hit.from_s) / (hit.to_s - hit.from_s), 0.0), 1.0)
    return hit.arc_deg[0] + share * (hit.arc_deg[1] - hit.arc_deg[0])


def area_of_blade(hit: Hit, boss: Pose, from_s: float, to_s: float) -> Outline:
    """What a sweeping blade covers between two times of the move."""
    start, end = blade_deg(hit, from_s), blade_deg(hit, to_s)
    margin = math.copysign(hit.blade_deg, hit.arc_deg[1] - hit.arc_deg[0])
    return sector(boss, start - margin, end + margin, hit.reach_m, hit.inner_m)


def area_of_strike(strike: Strike, player: Pose) -> Outline:
    """The area of a blow of the player."""
    return sector(player, -strike.arc_deg, strike.arc_deg, strike.reach_m)


def stand_at_hit(move: BossMove, move_s: float, hit: Hit, boss: Pose, player: Point, least_distance_m: float) -> Pose:
    """Where the boss will stand when the blow begins, if nobody turns: its root motion until then.

    A leap is decided by this: its area is where it comes down, not where it takes off.
    """
    if move.motion is None or hit.from_s <= move_s:
        return boss
    forward_m, right_m = travel(move, move.motion, move_s, hit.from_s, math.dist(boss.at, player))
    return boss.moved(min(forward_m, _room_m(boss, player, least_distance_m, forward_m)), right_m)


def _room_m(boss: Pose, player: Point, least_distance_m: float, otherwise_m: float) -> float:
    """How far the boss can go before the player's body stops it."""
    dx, dy = player[0] - boss.x_m, player[1] - boss.y_m
    sine, cosine = math.sin(boss.heading_rad), math.cos(boss.heading_rad)
    along, across = -sine * dx - cosine * dy, -cosine * dx + sine * dy
    if along <= 0.0 or abs(across) >= least_distance_m:
        return otherwise_m
    return max(along - math.sqrt(least_distance_m**2 - across**2), 0.0)


def travel(move: BossMove, motion: Motion, from_s: float, to_s: float, distance_m: float) -> tuple[float, float]:
    """Metres ahead and to the right between two times of a move; `distance_m` is how far the player is at the first.

    The way ahead of a stretch depends on how far he is when it begins; a chase closes shares of the distance.
    """
    forward_m, at_s = 0.0, from_s
    for stretch in move.stretches:
        start_s, end_s = max(stretch.from_s, at_s), min(stretch.to_s, to_s)
        if start_s < end_s:
            forward_m += _sum(motion, motion.forward_m, at_s, start_s)
            done_m = _sum(motion, motion.forward_m, stretch.from_s, start_s)
            scale = _scale(stretch, distance_m - forward_m, done_m)
            forward_m += scale * _sum(motion, motion.forward_m, start_s, end_s)
            at_s = end_s
    forward_m += _sum(motion, motion.forward_m, at_s, to_s)
    left = 1.0
    for share, part in zip(motion.chase_share, _parts(motion, len(motion.chase_share), from_s, to_s), strict=True):
        left *= (1.0 - share) ** part
    return forward_m + distance_m * (1.0 - left), _sum(motion, motion.right_m, from_s, to_s)


def _scale(stretch: Stretch, distance_m: float, done_m: float) -> float:
    """The factor of a stretch of which `done_m`, before the factor, are over; the player stood still meanwhile."""
    wanted = (distance_m - stretch.arrive_m) / max(stretch.reference_m - done_m, 1e-9)
    least_m, most_m = stretch.range_m
    return min(max(wanted, least_m / stretch.reference_m), most_m / stretch.reference_m)


def _sum(motion: Motion, metres: Sequence[float], from_s: float, to_s: float) -> float:
    return sum(value * part for value, part in zip(metres, _parts(motion, len(metres), from_s, to_s), strict=True))


def _parts(motion: Motion, count: int, from_s: float, to_s: float) -> list[float]:
    """The share of each sample of a motion that lies between two times; the first sample begins at 0."""
    parts = []
    for i in range(count):
        end_s = motion.first_s + i * motion.step_s
        start_s = max(end_s - motion.step_s, 0.0) if i else 0.0
        parts.append(max(min(end_s, to_s) - max(start_s, from_s), 0.0) / max(end_s - start_s, 1e-9))
    return parts
