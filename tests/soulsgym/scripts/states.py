"""A script as SoulsGym's users write it: game states of their own, kept as JSON and read again."""
# ruff: noqa: T201

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import gymnasium as gym
import numpy as np

import soulsgym  # noqa: F401
from soulsgym.core.game_state import GameState
from soulsgym.core.utils import wrap_to_pi
from soulsgym.exception import GameStateError, ResetNeeded, SoulsGymException


@dataclass
class FrostState(GameState):
    """One value more than the others have."""

    frost: float = 1.0


file = Path(sys.argv[2])
env = gym.make(sys.argv[1])
try:
    env.unwrapped.game_state()
    raise SystemExit("a fight that has not begun has a state")
except ResetNeeded as error:
    print(error)
assert issubclass(GameStateError, SoulsGymException)
env.reset()
states = []
for action in (0, 8, 19, 16, 19):
    env.step(action)
    states.append(FrostState(**env.unwrapped.game_state().as_dict(), frost=0.5))
env.close()
file.write_text(json.dumps([state.as_json() for state in states]))
again = [FrostState.from_dict(values) for values in json.loads(file.read_text())]
for one, other in zip(states, again, strict=True):
    assert isinstance(one.copy(), FrostState)
    assert one.as_json() == other.as_json()
    assert np.allclose(one.boss_pose, other.boss_pose)
    heading = wrap_to_pi(one.player_pose[3] - one.boss_pose[3])
    assert -np.pi <= heading <= np.pi
assert states[0].copy().as_json() == states[0].as_json()
print(json.dumps(GameState().as_json()))
