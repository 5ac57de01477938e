"""Drawing: shapes as the numbers that the browser draws."""

from soulsai.dashboard.drawing import Drawing
from soulsgym.render import palette
from soulsgym.render.shapes import CLOSED, DASHES, DISC, LINE, POLYGON, RING, Shape


def test_operations():
    corners = [(0.0, 0.0), (1.234, 0.0), (0.0, -2.0)]
    drawing = Drawing()
    assert drawing.operations(
        [
            Shape(POLYGON, corners, palette.DANGER, 0.5),
            Shape(CLOSED, corners, palette.DANGER, width_px=1.5),
            Shape(LINE, corners[:2], palette.WHITE, 0.25, 2.0),
            Shape(DASHES, [(0.0, 0.0), (3.0, 0.0)], palette.CLIFF, width_px=3.0, dash_px=11.0),
            Shape(DISC, [(1.0, 2.0)], palette.WHITE, radius_m=0.5),
            Shape(RING, [(1.0, 2.0)], palette.WHITE, width_px=2.0, radius_m=0.5),
        ]
    ) == [
        [POLYGON, 0, 0, 50, 0],
        [CLOSED, 0, 0, 100, 15],
        [LINE, 1, 1, 25, 20],
        [DASHES, 2, 2, 100, 30],
        [DISC, 3, 1, 100, 0],
        [RING, 3, 1, 100, 20],
    ]
    assert drawing.operations([]) == []
    assert drawing.outlines == [(0, 0, 123, 0, 0, -200), (0, 0, 123, 0), (0, 0, 300, 0), (100, 200, 50)]
    assert drawing.colours == ["255,74,30", "255,255,255", "214,84,62"]
