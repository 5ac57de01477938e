"""GameState: copies share nothing, and it goes through JSON and back."""

import json
from dataclasses import dataclass

import numpy as np

from soulsgym.core.game_state import GameState


@dataclass
class FrostState(GameState):
    frost: float = 0.0


def made():
    return FrostState(boss_hp=3, player_pose=np.arange(4, dtype=np.float32), boss_animation="Attack3000", frost=0.5)


def test_a_copy_is_of_the_same_kind_and_shares_no_array():
    state = made()
    other = state.copy()
    other.player_pose[0] = 9.0
    assert (type(other), other.frost, other.boss_hp) == (FrostState, 0.5, 3)
    assert state.player_pose[0] == 0.0
    assert GameState().player_pose is not GameState().player_pose


def test_the_dict_may_share_its_arrays_or_not():
    state = made()
    assert state.as_dict(deepcopy=False)["player_pose"] is state.player_pose
    assert state.as_dict()["player_pose"] is not state.player_pose


def test_it_goes_through_json_and_back_and_leaves_the_given_dict_alone():
    given = json.loads(json.dumps(made().as_json()))
    state = FrostState.from_dict(given)
    assert (state.boss_animation, state.frost) == ("Attack3000", 0.5)
    assert state.player_pose.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert isinstance(given["player_pose"], list)


def test_a_state_without_a_fight_goes_through_json_too():
    assert GameState.from_dict(json.loads(json.dumps(GameState().as_json()))).camera_pose.shape == (6,)


def test_a_dict_with_arrays_is_not_shared():
    arrays = made().as_dict()
    FrostState.from_dict(arrays).player_pose[0] = 9.0
    assert arrays["player_pose"][0] == 0.0
