"""Tests of the keys that a control means."""

import pytest

from soulsgym.actions import ACTION_CONTROLS, NO_DIRECTION, Button
from soulsgym.game.fight import keys_of
from soulsgym.game.keyboard import load_bindings


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


def test_all_keys_are_bound():
    bound = load_bindings("darksouls3")
    for control in ACTION_CONTROLS:
        held, tapped = keys_of(int(control["direction"]), int(control["button"]))
        assert {*held, *filter(None, [tapped])} <= bound.keys()
