"""Action sets: what is in them, what is open in them."""

import numpy as np
import pytest

from soulsgym.actions import ACTION_NAMES, NOTHING
from soulsgym.errors import MisuseError
from soulsgym.parts.actions import make_actions
from soulsgym.parts.registry import register
from soulsgym.state import FIGHT


def fights_with_open(*rows):
    fights = np.zeros(len(rows), FIGHT)
    for i, numbers in enumerate(rows):
        fights["action_mask"][i, list(numbers)] = 1
    return fights


@pytest.mark.parametrize(
    ("preset", "indices"),
    [
        ("all", list(range(20))),
        ("reduced", [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 17, 18, 19]),
        ("no-parry", [*range(18), 19]),
    ],
)
def test_presets(preset, indices):
    actions = make_actions(preset)
    assert actions.indices.tolist() == indices
    assert actions.names == tuple(ACTION_NAMES[number] for number in indices)
    assert len(actions) == len(indices)


def test_names_take_the_place_of_the_preset_in_the_order_of_numbers():
    actions = make_actions("reduced", ["nothing", "light attack", "roll FR"])
    assert actions.indices.tolist() == [9, 16, NOTHING]
    assert actions.names == ("roll FR", "light attack", "nothing")
    assert actions.numbers(np.array([2, 0, 1, 1])).tolist() == [19, 9, 16, 16]


def test_open_ones_are_those_of_the_set():
    actions = make_actions(names=["roll FR", "light attack", "nothing"])
    out = np.zeros((4, 3), np.bool_)
    actions.open(fights_with_open([19], [9, 19], [16], range(20)), out)
    assert out.astype(int).tolist() == [[0, 0, 1], [1, 0, 1], [0, 1, 0], [1, 1, 1]]


def test_where_nothing_of_the_set_is_open_all_is():
    actions = make_actions(names=["light attack", "parry"])
    out = np.zeros((3, 2), np.bool_)
    actions.open(fights_with_open([19], [], [18, 19]), out)
    assert out.tolist() == [[True, True], [True, True], [False, True]]


@pytest.mark.parametrize(
    ("preset", "names", "message"),
    [
        ("al", (), "action set 'al' is not known, did you mean 'all'?"),
        ("all", ["light atack"], "action 'light atack' is not known, did you mean 'light attack'?"),
        ("all", ["parry", "nothing", "parry"], "action 'parry' is there 2 times; give it once"),
    ],
)
def test_what_is_not_there_is_refused(preset, names, message):
    with pytest.raises(MisuseError) as caught:
        make_actions(preset, names)
    assert str(caught.value) == message


FEW = ["nothing", "light attack"]


@pytest.mark.parametrize(
    "given",
    [
        FEW,
        tuple(FEW),
        {"names": FEW},
        {"preset": "reduced", "names": FEW},
        make_actions(names=FEW),
        {"preset": make_actions(names=FEW)},
        lambda: FEW,
        lambda: make_actions(names=FEW),
        "few",
        {"preset": "few"},
    ],
)
def test_actions_are_given_by_name_table_list_object_or_maker(given):
    register("action set", "few")(tuple(FEW))
    actions = make_actions(given)
    assert actions.names == ("light attack", "nothing")
    assert actions.indices.tolist() == [16, 19]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"preset": "all", "name": FEW}, "setting 'name' of the action set is not known, did you mean 'names'?"),
        (None, "action set None cannot be used"),
        (7, "action set 7 cannot be used"),
        ((), "action set"),
        ([7], "action 7 is not known"),
    ],
)
def test_what_is_no_action_set_is_refused(given, message):
    with pytest.raises(MisuseError) as caught:
        make_actions(given)
    assert str(caught.value).startswith(message)
