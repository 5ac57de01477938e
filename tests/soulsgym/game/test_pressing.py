"""Tests of the keys that a control means."""

import pytest

from soulsgym.actions import ACTION_CONTROLS, NO_DIRECTION, NOTHING, Button
from soulsgym.game.keyboard import load_bindings
from soulsgym.game.pressing import action_of, keys_of


def test_every_action_is_its_own_number_in_the_mask():
    for number, control in enumerate(ACTION_CONTROLS):
        wanted = None if number == NOTHING else number
        assert action_of(int(control["direction"]), int(control["button"])) == wanted


@pytest.mark.parametrize(
    ("direction", "button", "held", "tapped"),
    [
        (0, Button.NONE, ("forward",), ""),
        (3, Button.NONE, ("right", "backward"), ""),
        (7, Button.ROLL, ("left", "forward"), "roll"),
        (NO_DIRECTION, Button.LIGHT, (), "lightattack"),
        (NO_DIRECTION, Button.HEAVY, (), "heavyattack"),
        (NO_DIRECTION, Button.PARRY, (), "parry"),
        (NO_DIRECTION, Button.NONE, (), ""),
    ],
)
def test_keys_of_a_control(direction, button, held, tapped):
    assert keys_of(direction, button) == (held, tapped)


def test_a_backstep_counts_as_a_roll():
    assert action_of(NO_DIRECTION, Button.ROLL) == 8


def test_all_keys_are_bound():
    bound = load_bindings("darksouls3")
    for control in ACTION_CONTROLS:
        held, tapped = keys_of(int(control["direction"]), int(control["button"]))
        assert {*held, *filter(None, [tapped])} <= bound.keys()
