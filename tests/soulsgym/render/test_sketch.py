"""Sketch: the same shapes as the picture's, as numbers; and no pygame for it."""

import subprocess
import sys

import numpy as np
import pytest

from soulsgym.render import palette
from soulsgym.render.blows import draw_boss_blows
from soulsgym.render.edges import Edges
from soulsgym.render.plan import Stand, hit_area
from soulsgym.render.sketch import CLOSED, DASHES, DISC, LINE, POLYGON, RING, Sketch
from soulsgym.render.story import Stretch
from soulsgym.spec import load_fight
from soulsgym.state import FIGHT


def test_operations():
    sketch = Sketch()
    corners = [(0.0, 0.0), (1.234, 0.0), (0.0, -2.0)]
    sketch.polygon(corners, palette.DANGER, 0.5)
    sketch.lines(corners, palette.DANGER, 1.5, closed=True)
    sketch.lines(corners[:2], palette.WHITE, 2.0, 0.25)
    sketch.dashes((0.0, 0.0), (3.0, 0.0), palette.CLIFF, 3.0, 11.0)
    sketch.circle((1.0, 2.0), 0.5, palette.WHITE)
    sketch.circle((1.0, 2.0), 0.5, palette.WHITE, ring=2.0)
    assert sketch.take() == [
        [POLYGON, 0, 0, 50, 0],
        [CLOSED, 0, 0, 100, 15],
        [LINE, 1, 1, 25, 20],
        [DASHES, 2, 2, 100, 30],
        [DISC, 3, 1, 100, 0],
        [RING, 3, 1, 100, 20],
    ]
    assert sketch.take() == []
    assert sketch.outlines == [(0, 0, 123, 0, 0, -200), (0, 0, 123, 0), (0, 0, 300, 0), (100, 200, 50)]
    assert sketch.colours == [palette.DANGER, palette.WHITE, palette.CLIFF]


def test_areas_are_those_of_the_plan():
    """A blow that lands is drawn with the very outline that the plan gives."""
    spec = load_fight("iudex")
    place, move = next((i, row) for i, row in enumerate(spec.boss.moves) if row.hits and not row.hits[0].sweep)
    hit = move.hits[0]
    fight = np.zeros(1, FIGHT)[0]
    fight["boss_move"], fight["boss_move_s"] = place, hit.from_s
    boss = Stand(1.0, 2.0, 0.7)
    sketch = Sketch()
    stretch = Stretch(place, hit.from_s - 0.05, hit.from_s)
    draw_boss_blows(sketch, fight, boss, Stand(2.0, 2.0, 0.0), spec, [stretch])
    operations = sketch.take()
    wanted = [100.0 * value for point in hit_area(hit, boss) for value in point]
    found = next(sketch.outlines[op[1]] for op in operations if op[0] == POLYGON and op[3] == 62)
    assert found == pytest.approx(wanted, abs=0.5)


def test_rim_of_the_arena():
    arena = load_fight("iudex").arena
    sketch = Sketch()
    Edges(arena).draw(sketch)
    kinds = [operation[0] for operation in sketch.take()]
    cliffs = sum(corner.to_next == "cliff" for corner in arena.corners)
    assert kinds.count(DASHES) == cliffs > 0
    assert kinds.count(LINE) == len(arena.corners) - cliffs > 0


def test_needs_no_pygame():
    code = (
        "import sys; sys.modules['pygame'] = None\n"
        "from soulsgym.render import blows, bodies, edges, shading, sketch, story, words\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
