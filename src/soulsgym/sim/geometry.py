"""Angles and the arena. A heading a looks along (-sin a, -cos a); right of it is (-cos a, sin a).

Sine and arc tangent are polynomials, good to 1e-7: twice as fast as the library's, and the same bits on every machine.
"""

from __future__ import annotations

import math

from soulsgym.compiling import njit
from soulsgym.sim.tables import Constants, Tables

PI = math.pi
HALF_PI = math.pi / 2.0
TWO_PI = 2.0 * math.pi


@njit
def wrap(angle: float) -> float:
    """The angle within [-pi, pi]; one turn off at most."""
    if angle > PI:
        angle -= TWO_PI
    elif angle < -PI:
        angle += TWO_PI
    return angle


@njit
def _sine_core(x: float) -> float:
    s = x * x
    return x * (1.0 + s * (-1.0 / 6 + s * (1.0 / 120 + s * (-1.0 / 5040 + s * (1.0 / 362880 - s / 39916800)))))


@njit
def sine(angle: float) -> float:
    """The sine of an angle within [-pi, pi]."""
    if angle > HALF_PI:
        angle = PI - angle
    elif angle < -HALF_PI:
        angle = -PI - angle
    return _sine_core(angle)


@njit
def cosine(angle: float) -> float:
    """The cosine of an angle within [-pi, pi]."""
    return _sine_core(HALF_PI - abs(angle))


@njit
def arctan2(y: float, x: float) -> float:
    """The angle of (x, y); Abramowitz and Stegun 4.4.49."""
    ax, ay = abs(x), abs(y)
    big, small = max(ax, ay), min(ax, ay)
    if big == 0.0:
        return 0.0
    z = small / big
    s = z * z
    angle = z * (
        1.0
        + s * (-0.3333314528 + s * (0.1999355085 + s * (-0.1420889944 + s * (0.1065626393
        + s * (-0.0752896400 + s * (0.0429096138 + s * (-0.0161657367 + s * 0.0028662257)))))))
    )  # fmt: skip
    if ay > ax:
        angle = HALF_PI - angle
    if x < 0.0:
        angle = PI - angle
    return -angle if y < 0.0 else angle


@njit
def heading_to(dx: float, dy: float) -> float:
    """The heading that looks along (dx, dy)."""
    return arctan2(-dx, -dy)


@njit
def turn_towards(
    sin_a: float, cos_a: float, dx: float, dy: float, distance: float, limit: float
) -> tuple[float, float]:
    """Sine and cosine of a heading turned towards (dx, dy), of length distance, by at most a small `limit`.

    Works on the unit vector alone; a heading is only made an angle where somebody asks for it.
    """
    if distance < 1e-9:
        return sin_a, cos_a
    ahead = -(sin_a * dx + cos_a * dy)
    right = sin_a * dy - cos_a * dx
    square = limit * limit
    cos_limit = 1.0 - square * (0.5 - square * (1.0 / 24))
    if ahead >= cos_limit * distance:
        return -dx / distance, -dy / distance
    sin_limit = limit * (1.0 - square * (1.0 / 6 - square * (1.0 / 120)))
    if right < 0.0:
        sin_limit = -sin_limit
    turned_sin = sin_a * cos_limit + cos_a * sin_limit
    turned_cos = cos_a * cos_limit - sin_a * sin_limit
    # One Newton step keeps the vector's length at 1.
    k = 1.5 - 0.5 * (turned_sin * turned_sin + turned_cos * turned_cos)
    return turned_sin * k, turned_cos * k


@njit
def blend_direction(theta: float) -> float:
    """The direction the game makes of a stick angle: a straight mix of the two main directions beside it."""
    turns = theta / HALF_PI
    quadrant = math.floor(turns)
    share = turns - quadrant
    return wrap((quadrant - 4.0 * math.floor(0.25 * quadrant)) * HALF_PI + arctan2(share, 1.0 - share))


@njit
def ground_z(constants: Constants, x: float, y: float) -> float:
    """The height of the ground."""
    u, v = x - constants.ground_origin_x, y - constants.ground_origin_y
    return (
        constants.ground_1
        + constants.ground_u * u
        + constants.ground_v * v
        + constants.ground_uu * u * u
        + constants.ground_uv * u * v
        + constants.ground_vv * v * v
    )


@njit
def nearest_edge(tables: Tables, x: float, y: float) -> tuple[int, float]:
    """The arena's edge next to a point, and how far it is; negative outside."""
    nearest, which = 1e9, 0
    for i in range(tables.constants.edge_count):
        edge = tables.edges[i]
        left = edge.offset - edge.normal_x * x - edge.normal_y * y
        if left < nearest:
            nearest, which = left, i
    return which, nearest
