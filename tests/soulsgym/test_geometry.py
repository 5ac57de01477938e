"""Angles and headings."""

import math

import numpy as np
import pytest

from soulsgym.geometry import heading_along, wrap_angle


@pytest.mark.parametrize(
    ("angle", "wrapped"),
    [
        (0.0, 0.0),
        (math.pi, -math.pi),
        (-math.pi, -math.pi),
        (3.5 * math.pi, -0.5 * math.pi),
        (-7.0, 2.0 * math.pi - 7.0),
    ],
)
def test_angles_are_wrapped(angle, wrapped):
    assert wrap_angle(angle) == pytest.approx(wrapped)
    assert wrap_angle(np.array([angle, angle])) == pytest.approx([wrapped, wrapped])


def test_no_angle_stays_none():
    assert math.isnan(wrap_angle(math.nan))


def test_headings_grow_clockwise_from_minus_y():
    x, y = np.array([0.0, -1.0, 0.0, 1.0]), np.array([-1.0, 0.0, 1.0, 0.0])
    assert np.abs(wrap_angle(heading_along(x, y) - np.array([0.0, 0.5, 1.0, 1.5]) * math.pi)).max() < 1e-9
