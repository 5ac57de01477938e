"""What no sequence of inputs may do to a fight."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soulsgym.actions import CONTROL, NOTHING
from soulsgym.engine import standard_starts
from soulsgym.envs.spaces import limits_of, observation_space
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import load_fight, variants
from soulsgym.state import Outcome, observation_of

ARENA = load_fight("iudex").arena
CONTROLS = st.tuples(st.integers(-1, 7), st.integers(0, 4), st.integers(1, 10))
"""A direction, a button, and for how many steps."""


@st.composite
def poses(draw):
    """A pose well inside the arena, or right at its edge."""
    corner = draw(st.sampled_from(ARENA.corners))
    other = draw(st.sampled_from(ARENA.corners))
    along, inwards = draw(st.floats(0.0, 1.0)), draw(st.floats(0.001, 1.0))
    x = corner.x_m + along * (other.x_m - corner.x_m)
    y = corner.y_m + along * (other.y_m - corner.y_m)
    x, y = x + inwards * (ARENA.centre_m[0] - x), y + inwards * (ARENA.centre_m[1] - y)
    return x, y, draw(st.floats(-math.pi, math.pi))


@st.composite
def fights(draw):
    """How a fight is set up and begins."""
    start = standard_starts(1)
    start["phase"] = draw(st.integers(0, 2))
    for key, low, high in (("player_hp", 1.0, 454.0), ("player_sp", -60.0, 95.0), ("boss_hp", 1.0, 1037.0)):
        if draw(st.booleans()):
            start[key] = draw(st.floats(low, high))
    for key in ("player_pose", "boss_pose"):
        if draw(st.booleans()):
            start[key] = draw(poses())
    start["random_pose"] = draw(st.integers(0, 1))
    made = {
        "phase": draw(st.integers(1, 2)),
        "changes": draw(st.booleans()),
        "randomize": draw(st.one_of(st.just(0.0), st.floats(0.0, 1.0))),
    }
    return draw(st.sampled_from(variants("iudex"))), made, start, draw(st.integers(0, 2**64 - 1))


GRABBED, FALL_START, FALL_LOOP = 15, 43, 46


def outside_m(x, y):
    """How far outside the ring of corners a point lies; negative inside."""
    worst = -math.inf
    for a, b in zip(ARENA.corners, (*ARENA.corners[1:], ARENA.corners[0]), strict=True):
        length = math.hypot(b.x_m - a.x_m, b.y_m - a.y_m)
        worst = max(worst, ((b.y_m - a.y_m) * (x - a.x_m) - (b.x_m - a.x_m) * (y - a.y_m)) / length)
    return worst


def assert_sound(engine, space, hp, boss_hp):
    fight, hidden = engine.fights[0], engine.hidden[0]
    for name in hidden.dtype.names:
        assert np.isfinite(hidden[name]).all(), name
    observation = {key: value[0] for key, value in observation_of(engine.fights).items()}
    for key, value in observation.items():
        assert space[key].contains(value if np.ndim(value) else np.int64(value)), (key, value)
    assert 0.0 <= fight["player_hp"][0] <= hp
    assert 0.0 <= fight["boss_hp"][0] <= boss_hp
    assert -60.0 <= hidden["player_sp"] <= 95.0
    assert fight["action_mask"][NOTHING] == 1
    falling = fight["player_animation"] in (FALL_START, FALL_LOOP)
    assert outside_m(hidden["player_x"], hidden["player_y"]) < (1.5 if falling else 1e-3)
    assert outside_m(hidden["boss_x"], hidden["boss_y"]) < 1e-3
    assert hidden["player_sin"] ** 2 + hidden["player_cos"] ** 2 == pytest.approx(1.0, abs=1e-6)
    assert hidden["boss_sin"] ** 2 + hidden["boss_cos"] ** 2 == pytest.approx(1.0, abs=1e-6)


@pytest.mark.slow
@settings(max_examples=150)
@given(fights(), st.lists(CONTROLS, max_size=25), st.booleans())
def test_no_input_breaks_a_fight(fight, controls, skip):
    variant, made, start, seed = fight
    spec = load_fight("iudex", variant)
    engine = SimEngine(spec, 1, **made)
    engine.check_starts(start)
    engine.reset(np.ones(1, np.bool_), start, np.array([seed], np.uint64))
    space = observation_space(limits_of(spec))
    hp, boss_hp = engine.fights["player_hp"][0, 0], engine.fights["boss_hp"][0, 0]
    assert_sound(engine, space, hp, boss_hp)
    for direction, button, times in controls:
        for _ in range(times):
            engine.step(np.array([(direction, button)], CONTROL), skip=skip)
            assert_sound(engine, space, hp, boss_hp)
            hp, boss_hp = engine.fights["player_hp"][0, 0], engine.fights["boss_hp"][0, 0]


@settings(max_examples=25)
@given(fights(), st.integers(0, 2**32 - 1))
def test_the_sums_of_a_fight_add_up(fight, seed):
    """Health lost is damage taken, and health taken damage dealt, over a whole fight."""
    variant, made, start, fight_seed = fight
    engine = SimEngine(load_fight("iudex", variant), 1, **made)
    engine.reset(np.ones(1, np.bool_), start, np.array([fight_seed], np.uint64))
    hp, boss_hp = engine.fights["player_hp"][0, 0], engine.fights["boss_hp"][0, 0]
    generator = np.random.default_rng(seed)
    for step in range(1, 400):
        control = np.array([(generator.integers(-1, 8), generator.integers(0, 5))], CONTROL)
        engine.step(control)
        now = engine.fights[0]
        assert now["step"] == step
        assert now["time_s"] == pytest.approx(0.1 * step, rel=1e-5)
        assert hp - now["player_hp"][0] == pytest.approx(now["taken_total"], abs=0.01)
        assert boss_hp - now["boss_hp"][0] == pytest.approx(now["dealt_total"], abs=0.01)
        if now["outcome"] != Outcome.RUNNING:
            assert (now["boss_hp"][0] == 0.0) == (now["outcome"] == Outcome.WON)
            break


@pytest.mark.parametrize("phase", [1, 2])
def test_bodies_are_never_closer_than_measured(spec, phase):
    """Except while the boss holds the player."""
    engine = SimEngine(spec, 128, phase=phase)
    starts = standard_starts(128)
    starts["random_pose"] = 1
    engine.reset(np.ones(128, np.bool_), starts, np.arange(128, dtype=np.uint64))
    generator = np.random.default_rng(4)
    nearest = []
    for _ in range(400):
        controls = np.zeros(128, CONTROL)
        controls["direction"] = generator.choice([0, 0, 0, 1, 7], 128)
        controls["button"] = generator.choice([0, 0, 0, 1, 2], 128)
        engine.step(controls)
        over = engine.fights["outcome"] != Outcome.RUNNING
        free = ~over & ~np.isin(engine.fights["player_animation"], (GRABBED, FALL_START, FALL_LOOP))
        hidden = engine.hidden[free]
        apart = np.hypot(hidden["player_x"] - hidden["boss_x"], hidden["player_y"] - hidden["boss_y"])
        # At the edge the ground holds one of them, and the other is let in a little.
        held = [
            max(outside_m(one["boss_x"], one["boss_y"]), outside_m(one["player_x"], one["player_y"])) > -0.9
            for one in hidden
        ]
        assert apart.min() > 1.05
        nearest.append(apart[~np.array(held)].min())
        if over.any():
            engine.reset(over, starts, None)
    assert min(nearest) > 1.25 - 0.02
    assert min(nearest) < 1.26


def test_the_camera_follows_the_boss(spec):
    """Seen from behind the player the boss is in the middle: offset 0.14 rad in the median of the recording."""
    engine = SimEngine(spec, 64)
    starts = standard_starts(64)
    starts["random_pose"] = 1
    engine.reset(np.ones(64, np.bool_), starts, np.arange(64, dtype=np.uint64))
    generator = np.random.default_rng(4)
    offsets = []
    for _ in range(150):
        controls = np.zeros(64, CONTROL)
        controls["direction"], controls["button"] = generator.integers(0, 8, 64), generator.integers(0, 2, 64)
        engine.step(controls)
        fight = engine.fights[(engine.fights["outcome"] == Outcome.RUNNING) & (engine.fights["lock_on"] == 1)]
        view, to_boss = fight["camera_pose"][:, 3:5], fight["boss_pose"][:, :2] - fight["player_pose"][:, :2]
        angle = np.arctan2(view[:, 1], view[:, 0]) - np.arctan2(to_boss[:, 1], to_boss[:, 0])
        offsets.append(np.abs((angle + math.pi) % (2 * math.pi) - math.pi))
        assert np.linalg.norm(engine.fights["camera_pose"][:, 3:], axis=1) == pytest.approx(1.0, abs=1e-5)
    median = np.median(np.concatenate(offsets))
    assert 0.04 < median < 0.3
