"""Terms that a user adds."""

import math

import numpy as np
import pytest

from soulsgym.errors import MisuseError
from soulsgym.parts.rewards import make_reward, term
from soulsgym.parts.rewards.own import OWN_TERMS
from soulsgym.state import FIGHT

BOTH = np.ones(2, np.bool_)


@pytest.fixture(autouse=True)
def _forgotten():
    """Terms of a test are gone after it."""
    before = dict(OWN_TERMS)
    yield
    OWN_TERMS.clear()
    OWN_TERMS.update(before)


@pytest.fixture
def fights():
    fights = np.zeros(2, FIGHT)
    fights["dodged"], fights["player_max_hp"], fights["boss_max_hp"] = [-1, 4], 400, 1000
    return fights


def test_a_function_is_a_term(spec, fights):
    @term("dodge")
    def dodge(fights):
        return fights["dodged"] >= 0

    reward = make_reward("duel", 2, spec, weights={"dodge": 0.25})
    reward.begin(fights, BOTH)
    fights["damage_dealt"] = 100.0
    rewards, terms = reward.of(fights)
    assert reward.names == ("dealt", "taken", "win", "far", "dodge")
    assert terms[:, 4].tolist() == [0.0, 0.25]
    assert rewards == pytest.approx([0.6, 0.85])
    assert dodge(fights).tolist() == [False, True], "the function stays what it was"


class Calls:
    """Counts its calls since the beginning of a fight."""

    def __init__(self, n, spec):
        self.boss, self.count = spec.boss.name, np.zeros(n)

    def begin(self, fights, mask):
        self.count[mask] = 0.0

    def of(self, fights):
        self.count += 1.0
        return self.count

    def state(self):
        return {"count": self.count.copy()}

    def restore(self, state):
        self.count[:] = state["count"]


def test_a_class_is_a_term_that_remembers(spec, fights):
    term("calls")(Calls)
    term("again")(Calls)
    reward = make_reward("duel", 2, spec, weights={"calls": 2.0, "again": 1.0})
    assert reward.names[-2:] == ("again", "calls")
    reward.begin(fights, BOTH)
    reward.of(fights)
    reward.begin(fights, np.array([True, False]))
    saved = reward.state()
    assert reward.of(fights)[1][:, -2:].tolist() == [[1.0, 2.0], [2.0, 4.0]]
    reward.restore(saved)
    assert reward.of(fights)[1][:, -2:].tolist() == [[1.0, 2.0], [2.0, 4.0]]


def test_a_term_without_weight_is_not_even_made(spec):
    @term("broken")
    class Broken(Calls):
        def __init__(self, n, spec):
            raise AssertionError("was made")

    assert make_reward("duel", 1, spec, weights={"broken": 0.0}).names == ("dealt", "taken", "win", "far")


@pytest.mark.parametrize("name", ["dealt", "two words", "a.b", ""])
def test_a_name_that_cannot_be_is_refused(name):
    with pytest.raises(MisuseError, match="reward term cannot be named"):
        term(name)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((2, 1)), "reward term 'mine' gave numbers of shape (2, 1); give one for each of 2 fights"),
        (0.5, "reward term 'mine' gave numbers of shape (); give one for each of 2 fights"),
        ([0.0, math.inf], "reward term 'mine' gave inf; give finite numbers"),
        ([math.nan, 0.0], "reward term 'mine' gave nan; give finite numbers"),
    ],
)
def test_what_a_term_must_not_give(spec, fights, values, message):
    term("mine")(lambda fights: values)
    reward = make_reward("duel", 2, spec, weights={"mine": 1.0})
    reward.begin(fights, BOTH)
    with pytest.raises(MisuseError) as caught:
        reward.of(fights)
    assert str(caught.value) == message
