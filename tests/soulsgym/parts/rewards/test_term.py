"""Terms that a user adds: compiled ones, plain functions, and classes."""

import math

import numpy as np
import pytest
from numba import njit

from soulsgym.errors import MisuseError
from soulsgym.parts.rewards import make_reward, term
from soulsgym.state import FIGHT

BOTH = np.ones(2, np.bool_)
DUEL = ("dealt", "taken", "win", "far")


@pytest.fixture
def fights():
    fights = np.zeros(2, FIGHT)
    fights["dodged"], fights["player_max_hp"], fights["boss_max_hp"] = [-1, 4], 400, 1000
    fights["player_max_sp"], fights["player_sp"] = 100, 80.0
    return fights


def test_a_compiled_function_is_a_term(spec, fights):
    @term("dodge", "blows that passed through a roll", needs=["dodged"])
    @njit
    def dodge(fight):
        return fight.dodged >= 0

    reward = make_reward("duel", 2, spec, weights={"dodge": 0.25})
    reward.begin(fights, BOTH)
    fights["damage_dealt"] = 100.0
    rewards, terms = reward.of(fights)
    assert reward.names == (*DUEL, "dodge")
    assert terms[:, 4].tolist() == [0.0, 0.25]
    assert rewards == pytest.approx([0.6, 0.85])
    assert dodge(fights[1]), "the function stays what it was"


def add_effort():
    """A compiled term with a memory and a fact."""

    @njit
    def begin(fight, memory, facts):
        memory.sp = fight.player_sp[0]

    @term("effort", begin=begin, memory=[("sp", "f8")], facts=lambda spec: {"full": float(spec.player.sp)})
    @njit
    def effort(fight, memory, facts):
        spent = max(memory.sp - fight.player_sp[0], 0.0)
        memory.sp = fight.player_sp[0]
        return -spent / facts.full


def test_a_compiled_term_remembers_and_knows_the_spec(spec, fights):
    add_effort()
    reward = make_reward({"weights": {"effort": 1.0}}, 2, spec)
    reward.begin(fights, BOTH)
    fights["player_sp"] = [[42.0], [80.0]]
    assert reward.of(fights)[0] == pytest.approx([-38.0 / spec.player.sp, 0.0])
    assert reward.of(fights)[0].tolist() == [0.0, 0.0]
    saved = reward.state()
    assert saved.keys() == {"effort.sp"}
    fights["player_sp"] = 10.0
    spent = reward.of(fights)[0]
    assert spent == pytest.approx([-32.0 / spec.player.sp, -70.0 / spec.player.sp])
    other = make_reward({"weights": {"effort": 1.0}}, 2, spec)
    other.restore(saved)
    assert other.of(fights)[0].tolist() == spent.tolist()
    with pytest.raises(MisuseError, match=r"state lacks 'effort\.sp'"):
        other.restore({})


def test_a_plain_function_of_all_fights_is_a_term(spec, fights):
    @term("dodge")
    def dodge(fights):
        return fights["dodged"] >= 0

    reward = make_reward("duel", 2, spec, weights={"dodge": 0.25})
    reward.begin(fights, BOTH)
    assert reward.names == (*DUEL, "dodge")
    assert reward.of(fights)[1][:, 4].tolist() == [0.0, 0.25]
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
    add_effort()
    reward = make_reward("duel", 2, spec, weights={"calls": 2.0, "again": 1.0, "effort": 1.0})
    assert reward.names[4:] == ("effort", "again", "calls")
    reward.begin(fights, BOTH)
    reward.of(fights)
    reward.begin(fights, np.array([True, False]))
    saved = reward.state()
    assert reward.of(fights)[1][:, -2:].tolist() == [[1.0, 2.0], [2.0, 4.0]]
    reward.restore(saved)
    assert reward.of(fights)[1][:, -2:].tolist() == [[1.0, 2.0], [2.0, 4.0]]


def test_a_function_that_makes_a_term_will_do(spec, fights):
    term("calls")(lambda n, spec: Calls(n, spec))
    reward = make_reward({"weights": {"calls": 1.0}}, 2, spec)
    reward.begin(fights, BOTH)
    reward.of(fights)
    assert reward.of(fights)[0].tolist() == [2.0, 2.0]


def test_python_terms_alone_are_a_reward(spec, fights):
    term("calls")(Calls)
    reward = make_reward({"weights": {"calls": 2.0}}, 2, spec)
    reward.begin(fights, BOTH)
    assert reward.of(fights)[0].tolist() == [2.0, 2.0]


def test_a_term_without_weight_is_not_even_made(spec):
    @term("broken")
    class Broken(Calls):
        def __init__(self, n, spec):
            raise AssertionError("was made")

    assert make_reward("duel", 1, spec, weights={"broken": 0.0}).names == DUEL


@pytest.mark.parametrize("name", ["two words", "a.b", "a-b", "class", "", None])
def test_a_name_that_cannot_be_is_refused(name):
    with pytest.raises(MisuseError, match="reward term cannot be named"):
        term(name)(Calls)


def test_our_terms_cannot_be_replaced():
    with pytest.raises(MisuseError, match=r"'dealt' is already there, from soulsgym\.parts\.rewards\.terms\.dealt"):
        term("dealt")(Calls)


@njit
def _of_fight(fight):
    return 0.0


@njit
def _of_something_else(record):
    return 0.0


@njit
def _with_memory(fight, memory):
    return 0.0


@pytest.mark.parametrize(
    ("function", "settings", "message"),
    [
        (_of_something_else, {}, "has a parameter 'record'; take fight"),
        (_with_memory, {}, "has a parameter 'memory'; take fight, and of memory and facts what the term declares"),
        (_of_fight, {"begin": _with_memory}, "has a parameter 'memory'"),
        (_of_fight, {"begin": lambda fight: None}, "begin of reward term 'mine' is not compiled; put @njit above it"),
        (_with_memory, {"memory": [("a", "wide")]}, "memory of reward term 'mine' is (('a', 'wide'),); give names and"),
        (_with_memory, {"memory": [("a", "i8")] * 2}, "give names and types"),
        (lambda fights: 0.0, {"memory": [("a", "i8")]}, "has memory or facts but is not compiled"),
        (Calls, {"facts": lambda spec: {"a": 1.0}}, "has memory or facts but is not compiled"),
        (_of_fight, {"needs": ["dodgd"]}, "needs 'dodgd', which is no field of a fight, did you mean 'dodged'?"),
    ],
)
def test_a_term_that_cannot_work_is_refused_at_once(function, settings, message):
    with pytest.raises(MisuseError) as caught:
        term("mine", **settings)(function)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("values", [np.zeros((2, 1)), 0.5, [0.0]])
def test_a_term_gives_one_number_for_each_fight(spec, fights, values):
    term("mine")(lambda fights: values)
    reward = make_reward("duel", 2, spec, weights={"mine": 1.0})
    reward.begin(fights, BOTH)
    with pytest.raises(MisuseError, match=r"'mine' gave numbers of shape .*; give one for each of 2 fights"):
        reward.of(fights)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("compiled", [False, True])
def test_values_are_finite(spec, fights, value, compiled):
    if compiled:
        term("mine")(njit(lambda fight: value))
    else:
        term("mine")(lambda fights: [0.0, value])
    reward = make_reward("duel", 2, spec, weights={"mine": 0.5})
    reward.begin(fights, BOTH)
    with pytest.raises(MisuseError) as caught:
        reward.of(fights)
    assert str(caught.value) == f"reward term 'mine' gave {value}; give finite numbers"


@pytest.mark.parametrize("compiled", [False, True])
def test_a_term_says_what_the_engine_must_tell(spec, compiled):
    function = njit(lambda fight: 0.0) if compiled else lambda fights: np.zeros(len(fights))
    term("dodge", needs=("dodged",))(function)
    assert "dodge" in make_reward("duel", 1, spec, weights={"dodge": 1.0}, missing=("invulnerable",)).names
    assert make_reward("duel", 1, spec, weights={"dodge": 0.0}, missing=("dodged",)).names == DUEL
    with pytest.raises(MisuseError) as caught:
        make_reward("duel", 1, spec, weights={"dodge": 1.0}, missing={"dodged", "invulnerable"})
    assert str(caught.value) == (
        "reward term 'dodge' needs 'dodged', which this engine cannot tell; give it the weight 0"
    )


def test_a_reward_says_what_the_engine_must_tell(spec):
    class Whole:
        names, needs = ("whole",), ("dodged",)

        def __init__(self, n, spec):
            """Nothing to keep."""

        begin = of = state = restore = lambda self, *given: None

    assert make_reward(Whole, 1, spec, missing=("invulnerable",)).names == ("whole",)
    with pytest.raises(MisuseError) as caught:
        make_reward(Whole, 1, spec, missing=("dodged",))
    assert str(caught.value) == "reward Whole needs 'dodged', which this engine cannot tell; use another one"
    Whole.needs = ("dodgd",)
    with pytest.raises(MisuseError, match="reward Whole needs 'dodgd', which is no field of a fight, did you mean"):
        make_reward(Whole, 1, spec)
