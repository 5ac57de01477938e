"""Starts that the user gives."""

import math

import numpy as np
import pytest

from soulsgym.errors import MisuseError, StartError
from soulsgym.parts.starts import given_starts


def test_what_is_not_given_is_left_to_the_engine():
    starts = given_starts(2, {"boss_hp": 500})
    assert starts["boss_hp"].tolist() == [500.0, 500.0]
    assert starts["phase"].tolist() == [0, 0]
    for key in ("player_hp", "player_sp", "player_pose", "boss_pose"):
        assert np.isnan(starts[key]).all()


def test_one_value_is_for_all_and_a_list_for_each():
    starts = given_starts(
        2, {"phase": 2, "player_hp": [100, 200], "player_pose": (140.0, 590.0, 0.5), "boss_pose": np.ones((2, 3))}
    )
    assert starts["phase"].tolist() == [2, 2]
    assert starts["player_hp"].tolist() == [100.0, 200.0]
    assert starts["player_pose"].tolist() == [[140.0, 590.0, 0.5]] * 2
    assert starts["boss_pose"].tolist() == [[1.0, 1.0, 1.0]] * 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"boss_hpp": 5}, "start key 'boss_hpp' is not known, did you mean 'boss_hp'?"),
        ({"colour": 5}, "start key 'colour' is not known; known are boss_hp, boss_pose"),
        ({"boss_hp": "much"}, "start boss_hp = 'much' does not fit; give one number or 2 of them"),
        ({"boss_hp": [1, 2, 3]}, r"start boss_hp = \[1, 2, 3\] does not fit"),
        ({"player_pose": (1.0, 2.0)}, r"start player_pose = \(1.0, 2.0\) does not fit; give \(3,\) or 2 of them"),
        ({"boss_hp": None}, "start boss_hp = None"),
        ({"boss_hp": {}}, "start boss_hp = {}"),
        ({"boss_hp": math.nan}, "start boss_hp = nan"),
        ({"phase": math.nan}, "start phase = nan"),
        ({"phase": 1.5}, "start phase = 1.5"),
        ({"phase": 1e300}, "start phase = 1e"),
        ({"player_pose": (math.nan, 590.0, 0.0)}, r"start player_pose = \(nan, 590.0, 0.0\)"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_value(given, message):
    with pytest.raises(StartError, match=message) as caught:
        given_starts(2, given)
    assert isinstance(caught.value, MisuseError)
    assert "\n" not in str(caught.value)
