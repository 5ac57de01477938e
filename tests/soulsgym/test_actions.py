"""The twenty actions, as SoulsGym numbers them."""

import pytest

from soulsgym.actions import ACTION_CONTROLS, ACTION_NAMES, DIRECTIONS, NO_DIRECTION, NOTHING, Button


def test_there_are_twenty_with_a_name_each():
    assert len(ACTION_CONTROLS) == len(ACTION_NAMES) == len(set(ACTION_NAMES)) == 20


@pytest.mark.parametrize("key", range(8))
def test_walks_and_rolls_go_clockwise_from_forward(key):
    assert ACTION_CONTROLS[key].tolist() == (key, Button.NONE)
    assert ACTION_CONTROLS[8 + key].tolist() == (key, Button.ROLL)
    assert ACTION_NAMES[8 + key] == f"roll {DIRECTIONS[key]}"


def test_the_others_press_a_button_or_nothing():
    assert [control.tolist() for control in ACTION_CONTROLS[16:]] == [
        (NO_DIRECTION, Button.LIGHT),
        (NO_DIRECTION, Button.HEAVY),
        (NO_DIRECTION, Button.PARRY),
        (NO_DIRECTION, Button.NONE),
    ]
    assert NOTHING == 19


def test_the_table_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        ACTION_CONTROLS["button"][0] = 1
