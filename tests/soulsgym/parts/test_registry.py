"""The names that parts go by."""

import pytest

from soulsgym.errors import MisuseError
from soulsgym.parts import rewards  # noqa: F401 (registers its presets)
from soulsgym.parts.registry import find, known_names, register


class Mine:
    """Some part."""


class Other:
    """Some other part."""


@pytest.mark.parametrize("kind", ["encoder", "reward", "reward term", "action set", "ending", "starts"])
def test_a_registered_part_is_found_by_its_name(kind):
    assert register(kind, "mine")(Mine) is Mine
    assert find(kind, "mine") is Mine
    assert known_names(kind)[-1] == "mine"


def test_a_name_belongs_to_one_kind():
    register("encoder", "mine")(Mine)
    with pytest.raises(MisuseError, match="ending 'mine' is not known"):
        find("ending", "mine")


def test_the_same_thing_again_takes_the_place_of_the_first():
    """As when a cell of a notebook is run a second time."""
    register("encoder", "mine")(Mine)
    again = type("Mine", (), {"__module__": Mine.__module__})
    register("encoder", "mine")(again)
    assert find("encoder", "mine") is again


def test_another_thing_of_the_same_name_is_refused():
    register("encoder", "mine")(Mine)
    with pytest.raises(MisuseError, match=r"encoder 'mine' is already there, from .*Mine; choose another name"):
        register("encoder", "mine")(Other)
    assert find("encoder", "mine") is Mine


def test_ours_cannot_be_replaced():
    with pytest.raises(MisuseError, match=r"reward 'duel' is already there, from soulsgym\."):
        register("reward", "duel")({"win": 1.0})


@pytest.mark.parametrize("name", ["", "two words", "a:b", "1st", None])
def test_a_name_that_cannot_be_is_refused(name):
    with pytest.raises(MisuseError, match=r"encoder cannot be named .*; give a plain word, such as my_encoder"):
        register("encoder", name)


def test_an_unknown_kind_is_refused():
    with pytest.raises(MisuseError, match="kind of part 'encoders' is not known, did you mean 'encoder'"):
        register("encoders", "mine")
