"""Shapes: those of the picture, and no pygame for them."""

import subprocess
import sys

import numpy as np
import pytest

from soulsgym.render.areas import Pose, area_of_hit
from soulsgym.render.arena import rim
from soulsgym.render.history import MoveSpan
from soulsgym.render.shapes import DASHES, LINE, POLYGON, boss_blows
from soulsgym.state import FIGHT


def test_a_blow_that_lands_has_the_outline_of_its_area(spec):
    place, move = next((i, row) for i, row in enumerate(spec.boss.moves) if row.hits and not row.hits[0].sweep)
    hit = move.hits[0]
    fight = np.zeros(1, FIGHT)[0]
    fight["boss_move"], fight["boss_move_s"] = place, hit.from_s
    boss, span = Pose(1.0, 2.0, 0.7), MoveSpan(place, hit.from_s - 0.05, hit.from_s)
    shapes = list(boss_blows(fight, boss, Pose(2.0, 2.0, 0.0), spec, [span]))
    [lit] = [shape for shape in shapes if shape.kind == POLYGON and shape.alpha == 0.62]
    assert np.array(lit.points) == pytest.approx(np.array(area_of_hit(hit, boss)))


def test_rim_of_the_arena(spec):
    kinds = [shape.kind for shape in rim(spec.arena)]
    cliffs = sum(corner.to_next == "cliff" for corner in spec.arena.corners)
    assert kinds.count(DASHES) == cliffs > 0
    assert kinds.count(LINE) == len(spec.arena.corners) - cliffs > 0


def test_needs_no_pygame():
    code = "import sys; sys.modules['pygame'] = None\nfrom soulsgym.render import arena, history, names, shapes\n"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
