"""What the file of arenas may not say."""

import math

import pytest

ARENAS, HERE = "arenas.toml", "cemetery_of_ash"
SQUARE = ((0.0, 0.0), (4.0, 0.0), (4.0, 4.0), (0.0, 4.0))


def corners(*places, to_next="wall"):
    return [{"at_m": [130.0 + x, 585.0 + y], "to_next": to_next} for x, y in places]


@pytest.mark.parametrize(
    ("key", "value", "at", "bad", "reason"),
    [
        ("low_m", [110.0, 540.0], "low_m", [110.0, 540.0], "must be a list of 3 numbers"),
        ("low_m", [110.0, 540.0, -50.0], "low_m", [110.0, 540.0, -50.0], "must lie below high_m"),
        ("low_m", [130.0, 540.0, -73.0], "edge.corners", None, "lies outside low_m and high_m"),
        (
            "player_start",
            [100.0, 575.0, -68.0, 0.0],
            "player_start",
            [100.0, 575.0, -68.0, 0.0],
            "lies outside the arena's corners",
        ),
        (
            "player_start",
            [140.0, 590.0, -68.0, 4.0],
            "player_start",
            [140.0, 590.0, -68.0, 4.0],
            "must have a heading from -pi to pi",
        ),
        (
            "boss_start",
            [140.0, 700.0, -68.0, 0.0],
            "boss_start",
            [140.0, 700.0, -68.0, 0.0],
            "lies outside the arena's corners",
        ),
        ("boss_start", [140.0, 590.0, 0.0], "boss_start", [140.0, 590.0, 0.0], "must be a list of 4 numbers"),
        ("boss_start", [140.0, 590.0, 0.0, 0.0], "boss_start", [140.0, 590.0, 0.0, 0.0], "must lie between [110.0"),
        ("player_starts", [[140.0, 590.0]], "player_starts", [140.0, 590.0], "must be a list of 4 numbers"),
        ("player_starts", [], "player_starts", [], "must be a list of lists of numbers"),
        (
            "player_starts",
            [[0.0, 0.0, 0.0, 0.0]],
            "player_starts",
            [0.0, 0.0, 0.0, 0.0],
            "lies outside the arena's corners",
        ),
        ("centre_m", "middle", "centre_m", "middle", "must be a list of 2 numbers"),
        ("ground.coefficients", [1.0, 2.0], "ground.coefficients", [1.0, 2.0], "must be a list of 6 numbers"),
        ("ground.origin_m", [140.0, math.nan], "ground.origin_m", None, "must be a finite number"),
        ("edge.fall_m_per_s2", 0.0, "edge.fall_m_per_s2", 0.0, "must be at least 0.1"),
        ("edge.deadly_drop_m", -3.0, "edge.deadly_drop_m", -3.0, "must be at least 0.1"),
        ("edge.corners.0.to_next", "clif", "edge.corners[0].to_next", "clif", "is not known, did you mean 'cliff'?"),
        ("edge.corners.0.at", [0.0, 0.0], "edge.corners[0].at", [0.0, 0.0], "is not a known key, did you mean 'at_m'?"),
        ("edge.width_m", 3.0, "edge.width_m", 3.0, "is not a known key"),
        (
            "edge.source",
            {"*": "guess", "corner": "derived"},
            "edge.source.corner",
            "derived",
            "names no key here, did you mean 'corners'?",
        ),
    ],
)
def test_bad_value(data, key, value, at, bad, reason):
    data.set(ARENAS, f"{HERE}.{key}", value)
    error = data.refusal()
    assert error.file.endswith("arenas.toml")
    assert error.key == f"{HERE}.{at}"
    assert bad is None or error.value == bad
    assert reason in error.reason


@pytest.mark.parametrize(
    ("places", "reason"),
    [
        (SQUARE[:2], "must be at least three"),
        (SQUARE[::-1], "convex and anticlockwise"),
        (((0, 0), (4, 0), (1, 1), (0, 4)), "convex and anticlockwise"),
        (((0, 0), (4, 0), (4, 0), (0, 4)), "convex and anticlockwise"),
        (((0, 0), (2, 0), (4, 0), (0, 4)), "convex and anticlockwise"),
        # A star turns left at every corner, but goes round twice.
        (((0, -3), (2, 3), (-3, -1), (3, -1), (-2, 3)), "the corners go round once"),
    ],
)
def test_ring_of_corners(data, places, reason):
    data.set(ARENAS, f"{HERE}.edge.corners", corners(*places))
    error = data.refusal()
    assert error.key == f"{HERE}.edge.corners"
    assert reason in error.reason


def test_point_inside_and_outside(data):
    arena = data.load().arena
    assert arena.contains(140.0, 590.0)
    assert not arena.contains(100.0, 590.0)
    assert not arena.contains(arena.corners[0].x_m, arena.corners[0].y_m)


@pytest.mark.parametrize("key", ["source", "ground.source", "edge.source"])
def test_table_without_a_source(data, key):
    data.remove(ARENAS, f"{HERE}.{key}")
    assert "has no source" in data.refusal().reason


def test_corners_need_a_source_too(data):
    data.set(ARENAS, f"{HERE}.edge.source", {"fall_m_per_s2": "guess", "deadly_drop_m": "guess"})
    assert data.refusal().key == f"{HERE}.edge.corners"


def test_unknown_arena(data):
    data.set("bosses/iudex.toml", "arena", "cemetery_of_ashes")
    error = data.refusal()
    assert error.file.endswith("arenas.toml")
    assert (error.key, error.reason) == ("cemetery_of_ashes", "is not an arena, did you mean 'cemetery_of_ash'?")


def test_edges_point_out_of_the_arena(data):
    arena = data.load().arena
    assert len(arena.edges) == len(arena.corners)
    for edge, corner in zip(arena.edges, arena.corners, strict=True):
        assert math.hypot(edge.out_x, edge.out_y) == pytest.approx(1.0)
        assert edge.out_x * corner.x_m + edge.out_y * corner.y_m == pytest.approx(edge.offset_m)
        assert edge.cliff == (corner.to_next == "cliff")
        x_m, y_m = arena.centre_m
        assert edge.offset_m - edge.out_x * x_m - edge.out_y * y_m > 0.0
