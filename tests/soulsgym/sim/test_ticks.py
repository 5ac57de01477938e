"""A fight tick by tick, as a person plays it."""

from itertools import pairwise

import numpy as np
import pytest

from soulsgym.actions import CONTROL, NO_DIRECTION, NOTHING, Button, controls_of
from soulsgym.engine import standard_starts
from soulsgym.errors import MisuseError
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import load_fight
from soulsgym.state import FIGHT, Outcome

EVERYONE = np.ones(2, np.bool_)
SEEDS = np.array([3, 4], np.uint64)


def begun(boss="iudex", **options):
    engine = SimEngine(load_fight(boss), 2, **options)
    engine.reset(EVERYONE, standard_starts(2), SEEDS)
    return engine


def control(direction=NO_DIRECTION, button=Button.NONE):
    return np.array([(direction, button)] * 2, CONTROL)


@pytest.mark.parametrize("boss", ["iudex", "vordt", "margit"])
def test_six_ticks_without_a_key_are_a_step_without_an_action(boss):
    ticks, steps = begun(boss, changes=True), begun(boss, changes=True)
    for _ in range(400):
        for tick in range(6):
            ticks.tick(control(), tick)
        steps.step(controls_of(np.full(2, NOTHING)))
        assert [name for name in FIGHT.names if (ticks.fights[name] != steps.fights[name]).any()] == []
        if (steps.fights["outcome"] == Outcome.DIED).all():
            return
    raise AssertionError("nobody died")


def test_the_record_between_two_steps():
    engine = begun()
    for tick in range(6):
        engine.tick(control(0), tick)
        assert engine.fights["step"][0] == (tick == 5)
        assert engine.fights["time_s"][0] == pytest.approx((tick + 1) / 60.0)


@pytest.mark.parametrize("tick", range(6))
def test_a_press_takes_effect_in_its_tick(tick):
    engine = begun()
    for early in range(tick):
        engine.tick(control(), early)
    engine.tick(control(2, Button.ROLL), tick)
    assert (engine.fights["player_move"] == -2).all()


def test_a_walk_begins_turns_and_ends_within_a_step():
    engine = begun()
    places = [engine.hidden[["player_x", "player_y"]].copy()]
    for tick, direction in enumerate((NO_DIRECTION, NO_DIRECTION, 2, 2, 6, NO_DIRECTION)):
        engine.tick(control(direction), tick)
        places.append(engine.hidden[["player_x", "player_y"]].copy())
    ways = [np.hypot(b["player_x"] - a["player_x"], b["player_y"] - a["player_y"])[0] for a, b in pairwise(places)]
    assert ways[0] == ways[1] == 0.0
    assert min(ways[2:5]) > 0.001
    assert ways[5] == pytest.approx(0.0, abs=0.03)


def test_what_is_not_open_has_no_effect():
    engine = begun()
    engine.tick(control(0, Button.HEAVY), 0)
    move = engine.fights["player_move"].copy()
    engine.tick(control(0, Button.ROLL), 1)
    assert (engine.fights["player_move"] == move).all()


def test_damage_is_that_of_the_whole_step():
    engine = begun()
    while not (engine.fights["damage_taken"] > 0.0).any():
        before = engine.fights["player_hp"][:, 0].copy()
        for tick in range(6):
            engine.tick(control(0), tick)
    taken = before - engine.fights["player_hp"][:, 0]
    assert np.allclose(taken, engine.fights["damage_taken"])
    assert np.allclose(engine.fights["taken_total"], engine.fights["damage_taken"])


@pytest.mark.parametrize("tick", [-1, 6])
def test_a_tick_that_is_in_no_step(tick):
    with pytest.raises(MisuseError, match=f"tick {tick} is not in a step; give 0 to 5"):
        begun().tick(control(), tick)
