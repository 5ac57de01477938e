"""The stand-in's knight moves as the simulator's does, played through the whole game layer."""

from __future__ import annotations

import math

import numpy as np
import pytest

from soulsgym.controls import ACTION_CONTROLS, ACTION_NAMES, NOTHING
from soulsgym.engine import standard_starts
from soulsgym.game.attach import attach
from soulsgym.game.engine import GameEngine
from soulsgym.game.plan import load_plan
from soulsgym.movesets import load_moveset
from soulsgym.sim.engine import SimEngine

pytestmark = [pytest.mark.wine, pytest.mark.usefixtures("no_lapse")]

REST = {"walk": 4, "roll": 20, "light": 14, "heavy": 22, "parry": 14}
"""Steps after which an action of this kind is over."""
SCRIPT = (
    ("walk F", 6), ("roll F", 1), ("walk R", 5), ("light attack", 1), ("roll B", 1), ("walk BL", 4),
    ("heavy attack", 1), ("parry", 1), ("roll LF", 1),
)  # fmt: skip
HARMLESS = "executed"
"""A move of the boss without motion, turning or blows."""
APART_M = 0.05


@pytest.fixture
def game(standin):
    """The engine on a stand-in whose boss stands still."""
    standin.mail(boss_still=1)
    engine = GameEngine(load_plan("iudex"), [attach("darksouls3", standin.pid)], game_speed=math.inf, setup_speed=8.0)
    engine.reset(np.ones(1, np.bool_), standard_starts(1))
    assert engine.notes[0]["stepping"] == "ticks", engine.notes[0]["stepping_because"]
    yield engine
    engine.close()


def actions():
    """The script with the rests in between, by numbers."""
    for name, steps in SCRIPT:
        yield from [ACTION_NAMES.index(name)] * steps
        yield from [NOTHING] * REST[name.split()[0]]


def test_knight_in_game_and_simulator_go_the_same_way(game):
    moveset = load_moveset("iudex")
    simulator = SimEngine(moveset, 1)
    starts = standard_starts(1)
    for who in ("player_pose", "boss_pose"):
        starts[who] = game.fights[0][who][[0, 1, 3]]
    simulator.reset(np.ones(1, np.bool_), starts, np.zeros(1, np.uint64))
    harmless = moveset.boss.move_index(HARMLESS)
    other_labels = []
    for step, action in enumerate(actions()):
        simulator.hidden["bmove"], simulator.hidden["bt"] = harmless, 0.0
        for engine in (game, simulator):
            engine.step(ACTION_CONTROLS[[action]])
        seen, told = game.fights[0], simulator.fights[0]
        assert math.dist(seen["player_pose"][:2], told["player_pose"][:2]) < APART_M, f"step {step}"
        assert seen["player_sp"][0] == pytest.approx(told["player_sp"][0], abs=1.0), f"step {step}"
        if seen["player_animation"] != told["player_animation"]:
            other_labels.append(step)
    assert len(other_labels) <= 2, other_labels
