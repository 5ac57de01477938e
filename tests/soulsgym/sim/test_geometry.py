"""Angles, directions and the edge of the arena."""

import math

import numpy as np
import pytest

from soulsgym.sim.geometry import (
    arctan2,
    blend_direction,
    cosine,
    ground_z,
    heading_to,
    nearest_edge,
    sine,
    turn_towards,
    wrap,
)
from soulsgym.sim.pack import pack

ANGLES = np.linspace(-math.pi, math.pi, 2001)


@pytest.fixture(scope="module")
def tables(spec):
    return pack(spec)[0]


def test_sine_and_cosine_agree_with_the_library():
    assert max(abs(sine(a) - math.sin(a)) for a in ANGLES) < 1e-7
    assert max(abs(cosine(a) - math.cos(a)) for a in ANGLES) < 1e-7


def test_arctan2_agrees_with_the_library_in_all_quadrants():
    for length in (1e-6, 1.0, 1e4):
        errors = [
            abs(wrap(arctan2(length * math.sin(a), length * math.cos(a)) - math.atan2(math.sin(a), math.cos(a))))
            for a in ANGLES
        ]
        assert max(errors) < 1e-7


@pytest.mark.parametrize(
    ("y", "x", "angle"),
    [(0.0, 0.0, 0.0), (0.0, 2.0, 0.0), (2.0, 0.0, math.pi / 2), (-2.0, 0.0, -math.pi / 2), (0.0, -2.0, math.pi)],
)
def test_arctan2_on_the_axes(y, x, angle):
    assert arctan2(y, x) == pytest.approx(angle, abs=1e-12)


@pytest.mark.parametrize(("angle", "wrapped"), [(3.5, 3.5 - 2 * math.pi), (-3.5, 2 * math.pi - 3.5), (1.0, 1.0)])
def test_wrap_takes_off_one_turn(angle, wrapped):
    assert wrap(angle) == pytest.approx(wrapped)


@pytest.mark.parametrize(
    ("dx", "dy", "heading"),
    [(0.0, -1.0, 0.0), (-1.0, 0.0, math.pi / 2), (1.0, 0.0, -math.pi / 2), (-1.0, -1.0, math.pi / 4)],
)
def test_heading_zero_looks_along_minus_y_and_grows_clockwise(dx, dy, heading):
    assert heading_to(dx, dy) == pytest.approx(heading, abs=1e-7)


@pytest.mark.parametrize(("limit", "error"), [(0.02, 1e-9), (0.07, 1e-9), (0.25, 1e-6)])
def test_turned_is_a_turn_by_at_most_the_limit(limit, error):
    generator = np.random.default_rng(5)
    for angle, target, r in zip(
        generator.uniform(-math.pi, math.pi, 300),
        generator.uniform(-math.pi, math.pi, 300),
        generator.uniform(0.5, 20.0, 300),
        strict=True,
    ):
        away = (target - angle + math.pi) % (2 * math.pi) - math.pi
        wanted = angle + max(-limit, min(limit, away))
        sin_a, cos_a = turn_towards(
            math.sin(angle), math.cos(angle), -r * math.sin(target), -r * math.cos(target), r, limit
        )
        assert sin_a == pytest.approx(math.sin(wanted), abs=error)
        assert cos_a == pytest.approx(math.cos(wanted), abs=error)


def test_turned_keeps_the_length_over_a_whole_fight():
    sin_a, cos_a = 0.0, 1.0
    for _ in range(20000):
        sin_a, cos_a = turn_towards(sin_a, cos_a, sin_a, cos_a, 1.0, 0.07)
    assert math.hypot(sin_a, cos_a) == pytest.approx(1.0, abs=1e-9)


def test_turned_leaves_the_heading_when_both_stand_on_one_spot():
    assert turn_towards(0.6, 0.8, 0.0, 0.0, 0.0, 0.1) == (0.6, 0.8)


@pytest.mark.parametrize("key", range(8))
def test_blend_direction_keeps_the_eight_keys(key):
    angle = key * math.pi / 4
    assert wrap(blend_direction(angle) - wrap(angle)) == pytest.approx(0.0, abs=1e-7)


def test_blend_direction_mixes_in_a_straight_line_between_the_main_directions():
    # A third of the way from forward to right: (2/3, 1/3), which is 26.565 degrees.
    assert math.degrees(blend_direction(math.radians(30.0))) == pytest.approx(26.565051, abs=1e-4)
    assert math.degrees(blend_direction(math.radians(-30.0))) == pytest.approx(-26.565051, abs=1e-4)
    assert math.degrees(blend_direction(math.radians(120.0))) == pytest.approx(90.0 + 26.565051, abs=1e-4)


def test_the_ground_is_the_measured_bowl(tables):
    assert ground_z(tables["constants"], 140.0, 590.0) == pytest.approx(-69.31)
    # -69.31 - 0.00604 * 10 + 0.003305 * 100
    assert ground_z(tables["constants"], 150.0, 590.0) == pytest.approx(-69.0399, abs=1e-4)


def test_nearest_edge_measures_to_the_wall_and_is_negative_outside(tables, spec):
    """The western wall stands straight, so that its distance is a difference of x."""
    corners = spec.arena.corners
    west, wall_x = min(enumerate(corner.x_m for corner in corners), key=lambda found: found[1])
    assert (corners[west].y_m, corners[west + 1].y_m, corners[west + 1].x_m) == (599.0, 581.0, wall_x)
    assert nearest_edge(tables, wall_x + 1.0, 590.0) == (west, pytest.approx(1.0))
    assert nearest_edge(tables, wall_x - 0.5, 590.0) == (west, pytest.approx(-0.5))


def test_every_edge_counts_inwards(tables, spec):
    _, left_m = nearest_edge(tables, *spec.arena.centre_m)
    assert left_m > 10.0
