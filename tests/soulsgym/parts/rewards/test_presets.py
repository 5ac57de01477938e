"""Presets, their weights, and what is refused."""

import math
import sys

import numpy as np
import pytest
from numba import njit

from soulsgym.actions import controls_of
from soulsgym.engine import standard_starts
from soulsgym.errors import MisuseError
from soulsgym.parts.registry import register
from soulsgym.parts.rewards import SOULSGYM, make_reward
from soulsgym.sim.engine import SimEngine
from soulsgym.state import FIGHT, Outcome

N = 32
EVERYONE = np.ones(N, np.bool_)


@pytest.fixture
def engine(spec):
    engine = SimEngine(spec, N, changes=True)
    engine.reset(EVERYONE, standard_starts(N), np.arange(N, dtype=np.uint64))
    return engine


def play(engine, steps, seed=5):
    """Merged steps of random actions; yields after each."""
    generator = np.random.default_rng(seed)
    for _ in range(steps):
        engine.step(controls_of(generator.integers(20, size=N)), skip=True)
        yield engine.fights


def record(*, dealt=0.0, taken=0.0, away_m=2.0, from_centre_m=0.0, step=0, outcome=Outcome.RUNNING):
    """One fight at the arena of Iudex, with the boss straight to the north."""
    fight = np.zeros(1, FIGHT)
    fight["player_pose"][0, :2] = 139.0 + from_centre_m, 596.0
    fight["boss_pose"][0, :2] = 139.0 + from_centre_m, 596.0 + away_m
    fight["player_max_hp"], fight["boss_max_hp"] = 400, 1000
    fight["damage_dealt"], fight["damage_taken"] = dealt, taken
    fight["step"], fight["outcome"] = step, outcome
    return fight


def test_soulsgym_is_the_reward_of_the_plain_environments_bit_for_bit(spec, engine):
    preset, plain = make_reward("soulsgym", N, spec), make_reward(SOULSGYM, N, spec)
    assert preset.names == ("dealt", "taken", "win", "death", "centre")
    assert plain.names == ("dealt", "taken", "end", "centre")
    preset.begin(engine.fights, EVERYONE)
    plain.begin(engine.fights, EVERYONE)
    seen = np.zeros(5, np.bool_)
    for fights in play(engine, 150):
        rewards, terms = preset.of(fights)
        assert rewards.tobytes() == plain.of(fights)[0].tobytes()
        assert terms.sum(axis=1) == pytest.approx(rewards)
        seen |= (terms != 0.0).any(axis=0)
    assert seen.tolist() == [True, True, False, True, True]


@pytest.mark.parametrize(
    ("preset", "value"),
    [
        # In two steps from 11 to 10 metres away and from 9 to 8 off the centre; 50 of 1000 dealt, 100 of 400 lost.
        ("duel", 6.0 * 0.05 - 3.0 * 0.25 - 0.03 * 2),
        ("soulsgym", 0.05 - 0.25 + 0.01),
        ("rl-souls", 1.2 * 0.05 - 0.25 + 0.02),
    ],
)
def test_reward_of_a_step(spec, preset, value):
    reward = make_reward(preset, 1, spec)
    reward.begin(record(away_m=11.0, from_centre_m=9.0), np.ones(1, np.bool_))
    after = record(dealt=50.0, taken=100.0, away_m=10.0, from_centre_m=8.0, step=2)
    assert reward.of(after)[0] == pytest.approx([value], abs=1e-6)


@pytest.mark.parametrize(
    ("preset", "won", "died"), [("duel", 3.0, 0.0), ("soulsgym", 0.1, -0.1), ("rl-souls", 5.0, -0.1)]
)
def test_reward_of_the_end(spec, preset, won, died):
    reward = make_reward(preset, 1, spec)
    reward.begin(record(), np.ones(1, np.bool_))
    assert reward.of(record(outcome=Outcome.WON))[0] == [won]
    assert reward.of(record(outcome=Outcome.DIED))[0] == [died]
    assert reward.of(record(outcome=Outcome.FELL))[0] == [died]


def test_weights_replace_add_and_remove(spec):
    reward = make_reward("duel", 1, spec, weights={"win": 7.0, "combo": 0.5, "taken": 0.0})
    assert reward.names == ("dealt", "win", "far", "combo")
    reward.begin(record(), np.ones(1, np.bool_))
    rewards, terms = reward.of(record(taken=100.0, outcome=Outcome.WON))
    assert rewards == [7.0]
    assert terms.tolist() == [[0.0, 7.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("preset", "weights", "message"),
    [
        ("dual", {}, "reward 'dual' is not known, did you mean 'duel'?"),
        ("duel", {"comboo": 1.0}, "reward term 'comboo' is not known, did you mean 'combo'?"),
        ("duel", {"win": math.nan}, "weight of reward term 'win' is nan; give a finite number"),
        ("duel", {"win": "much"}, "weight of reward term 'win' is 'much'; give a finite number"),
        ("duel", {"win": True}, "weight of reward term 'win' is True; give a finite number"),
        (
            "duel",
            {"dealt": 0, "taken": 0, "win": 0, "far": 0},
            "reward 'duel' has no term left; give one of them a weight other than 0",
        ),
    ],
)
def test_what_cannot_be_is_refused(spec, preset, weights, message):
    with pytest.raises(MisuseError) as caught:
        make_reward(preset, 1, spec, weights=weights)
    assert str(caught.value).startswith(message)


class Own:
    """A reward of its own kind."""

    names = ("mine",)

    def __init__(self, n, spec, scale=1.0):
        self.n, self.spec, self.scale = n, spec, scale

    def begin(self, fights, mask):
        """Nothing to note."""

    def of(self, fights):
        return np.full(self.n, self.scale), np.full((self.n, 1), self.scale)

    def state(self):
        return {}

    def restore(self, state):
        """Nothing to go back to."""


def clock(fights):
    """A whole reward in one line."""
    return -fights["time_s"]


@pytest.mark.parametrize(
    ("given", "names", "reward"),
    [
        ("duel", ("dealt", "taken", "win", "far"), -0.03),
        ({"preset": "duel"}, ("dealt", "taken", "win", "far"), -0.03),
        ({"preset": "duel", "weights": {"far": 0, "step": 2}}, ("dealt", "taken", "win", "step"), -2.0),
        ({"weights": {"step": 1}}, ("step",), -1.0),
        (Own, ("mine",), 1.0),
        (Own(1, None, 4.0), ("mine",), 4.0),
        (lambda n, spec: Own(n, spec, 3.0), ("mine",), 3.0),
        ({"preset": Own, "scale": 2.0}, ("mine",), 2.0),
        ("own", ("mine",), 1.0),
        ({"preset": "own", "scale": 5.0}, ("mine",), 5.0),
        ("slow", ("step",), -2.0),
        (clock, ("clock",), -0.5),
        (njit(lambda fight: fight.step), ("reward",), 1.0),
    ],
)
def test_a_reward_is_given_by_name_table_object_or_maker(spec, given, names, reward):
    register("reward", "own")(Own)
    register("reward", "slow")({"step": 2.0})
    made = make_reward(given, 1, spec)
    made.begin(record(away_m=12.0), np.ones(1, np.bool_))
    after = record(away_m=12.0, step=1)
    after["time_s"] = 0.5
    assert made.names == names
    rewards, terms = made.of(after)
    assert rewards == pytest.approx([reward])
    assert terms.shape == (1, len(names))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"preset": "duel", "wieghts": {}}, "setting 'wieghts' of the reward is not known, did you mean 'weights'?"),
        ({"preset": Own, "scal": 2.0}, "setting 'scal' of the reward is not known, did you mean 'scale'?"),
        ({"preset": Own(1, None), "scale": 2.0}, "setting 'scale' of the reward is not known; known are preset"),
        ({}, "reward {} has no term left; give one of them a weight other than 0"),
        (7, "reward 7 cannot be used; give a name, a table, an object, or what makes one"),
        (None, "reward None cannot be used; give a name"),
        (lambda n, spec: 3.0, "reward float has no names, begin, of; write what is missing"),
    ],
)
def test_what_is_no_reward_is_refused(spec, given, message):
    with pytest.raises(MisuseError) as caught:
        make_reward(given, 1, spec)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_restored_reward_goes_on_as_if_never_stopped(spec, engine):
    weights = {"closing": 1.0, "centre": 1.0, "step": 1.0, "combo": 1.0, "first_hit": 1.0}
    reward, other = (make_reward("duel", N, spec, weights=weights) for _ in range(2))
    reward.begin(engine.fights, EVERYONE)
    for fights in play(engine, 40):
        reward.of(fights)
    saved = reward.state()
    other.restore(saved)
    kept = {name: values.copy() for name, values in saved.items()}
    for fights in play(engine, 40, seed=6):
        assert reward.of(fights)[1].tobytes() == other.of(fights)[1].tobytes()
    for name, values in saved.items():
        assert (values == kept[name]).all(), "what was saved must not change afterwards"
    assert any((values != saved[name]).any() for name, values in reward.state().items())


def test_a_state_of_another_number_of_fights_is_refused(spec):
    with pytest.raises(MisuseError, match="reward of 3 fights does not fit 2"):
        make_reward("duel", 2, spec).restore(make_reward("duel", 3, spec).state())


def test_many_fights_are_rewarded_all_at_once(spec):
    """No function of Python is called for each of them."""
    calls = {}
    for count in (1, 1024):
        fights = np.repeat(record(away_m=8.0), count)
        reward = make_reward("duel", count, spec)
        reward.begin(fights, np.ones(count, np.bool_))
        reward.of(fights)  # compiled by now
        events = []
        sys.setprofile(lambda frame, event, argument, events=events: events.append(event))
        try:
            reward.of(fights)
        finally:
            sys.setprofile(None)
        calls[count] = len(events)
    assert calls[1] == calls[1024] > 0
