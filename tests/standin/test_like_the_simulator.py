"""The stand-in's knight and boss move as the simulator's do, played through the whole game layer."""

from __future__ import annotations

import math

import numpy as np
import pytest

from soulsgym.actions import ACTION_CONTROLS, ACTION_NAMES, NOTHING
from soulsgym.engine import standard_starts
from soulsgym.game.attach import attach
from soulsgym.game.engine import GameEngine
from soulsgym.game.keyboard import load_bindings
from soulsgym.game.windows.keys import virtual_key
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import load_fight

pytestmark = [pytest.mark.wine, pytest.mark.usefixtures("no_lapse")]

REST = {"walk": 4, "roll": 20, "light": 14, "heavy": 22, "parry": 14}
"""Steps after which an action of this kind is over."""
SCRIPT = (
    ("walk F", 6), ("roll F", 1), ("walk R", 5), ("light attack", 1), ("roll B", 1), ("walk BL", 4),
    ("heavy attack", 1), ("parry", 1), ("roll LF", 1),
)  # fmt: skip
HARMLESS = "executed"
"""A move of the boss without motion, turning or blows."""
KEYS = {action: virtual_key(key) for action, key in load_bindings("darksouls3").items()}
APART_M = 0.05
CAMERA_STEPS = 15
"""In which the camera turns to the boss, as it stands in the simulator from the start."""


@pytest.fixture(scope="module")
def standin(wine, standin_exe):
    """A stand-in whose boss stands still."""
    standin = wine.start("--start", "arena", executable=standin_exe)
    standin.mail(boss_still=1)
    yield standin
    standin.stop()


@pytest.fixture(scope="module")
def made(standin):
    with pytest.MonkeyPatch.context() as patch:  # for as long as the engine is there, as `no_lapse` does for a test
        patch.setattr("soulsgym.game.clock.LAPSE_S", 60.0)
        game = attach("darksouls3", standin.pid)
    engine = GameEngine(load_fight("iudex").game, [game], game_speed=math.inf, setup_speed=8.0)
    yield engine
    engine.close()


@pytest.fixture
def engine(made, standin, monkeypatch):
    """The engine on it; it is waited for until every key has arrived, also beside busy programs."""
    fight = made._fights[0]
    for name in ("_press", "_release"):
        seen = standin.until_seen(getattr(fight, name), KEYS, lambda: fight.game.keyboard.held)
        monkeypatch.setattr(fight, name, seen)
    return made


def begin(engine, starts=None):
    engine.reset(np.ones(1, np.bool_), standard_starts(1) if starts is None else starts)
    assert engine.notes[0]["stepping"] == "ticks", engine.notes[0]["stepping_because"]


def simulator_of(game, spec):
    """The simulator with a fight that begins where the game's stands now."""
    simulator = SimEngine(spec, 1)
    starts = standard_starts(1)
    for who in ("player_pose", "boss_pose"):
        starts[who] = game.fights[0][who][[0, 1, 3]]
    simulator.reset(np.ones(1, np.bool_), starts, np.zeros(1, np.uint64))
    return simulator


def actions():
    """The script with the rests in between, by numbers."""
    for name, steps in SCRIPT:
        yield from [ACTION_NAMES.index(name)] * steps
        yield from [NOTHING] * REST[name.split()[0]]


def test_knight_in_game_and_simulator_go_the_same_way(engine):
    begin(engine)
    for _ in range(CAMERA_STEPS):
        engine.step(ACTION_CONTROLS[[NOTHING]])
    spec = load_fight("iudex")
    simulator = simulator_of(engine, spec)
    harmless = spec.boss.move_index(HARMLESS)
    other_labels = []
    for step, action in enumerate(actions()):
        simulator.hidden["boss_move"], simulator.hidden["boss_move_s"] = harmless, 0.0
        for each in (engine, simulator):
            each.step(ACTION_CONTROLS[[action]])
        seen, told = engine.fights[0], simulator.fights[0]
        assert math.dist(seen["player_pose"][:2], told["player_pose"][:2]) < APART_M, f"step {step}"
        assert seen["player_sp"][0] == pytest.approx(told["player_sp"][0], abs=1.0), f"step {step}"
        if seen["player_animation"] != told["player_animation"]:
            other_labels.append(step)
    assert len(other_labels) <= 2, other_labels


@pytest.mark.parametrize(
    ("move", "away_m", "steps", "blows"),
    [("dash", 11.0, 25, 1), ("punch", 1.8, 14, 1), ("beast_grab", 2.5, 70, 4)],
    ids=["runs as far as the player is away", "pushes him", "holds him through four blows"],
)
def test_boss_in_game_and_simulator_strikes_alike(engine, standin, move, away_m, steps, blows):
    spec = load_fight("iudex")
    x, y, heading = spec.arena.player_start
    starts = standard_starts(1)
    starts["boss_pose"] = x - away_m * math.sin(heading), y - away_m * math.cos(heading), heading + math.pi
    begin(engine, starts)
    simulator = simulator_of(engine, spec)
    index = spec.boss.move_index(move)
    simulator.hidden["boss_move"] = index
    standin.force(index)
    healths = set()
    for step in range(steps):
        for each in (engine, simulator):
            each.step(ACTION_CONTROLS[[NOTHING]])
        seen, told = engine.fights[0], simulator.fights[0]
        for who in ("player_pose", "boss_pose"):
            assert math.dist(seen[who][:2], told[who][:2]) < APART_M, f"{who} in step {step}"
        assert seen["player_hp"][0] == told["player_hp"][0], f"step {step}"
        healths.add(float(seen["player_hp"][0]))
    assert len(healths) == 1 + blows
