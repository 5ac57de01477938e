"""A script as SoulsGym's users write it: every observation and game state as a line of JSON."""

import json
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np

import soulsgym  # noqa: F401
from soulsgym.core.game_state import GameState

target = Path(sys.argv[2])
env = gym.make(sys.argv[1])
obs, info = env.reset()
with target.open("w") as file:
    for step in range(40):
        obs, reward, terminated, truncated, info = env.step(step % 20)
        plain = {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in obs.items()}
        state = env.unwrapped.game_state().as_json()
        file.write(
            json.dumps({"step": step, "reward": reward, "done": terminated, "obs": plain, "state": state}) + "\n"
        )
        if terminated or truncated:
            obs, info = env.reset()
env.close()
for line in target.read_text().splitlines():
    read = json.loads(line)
    assert GameState.from_dict(read["state"]).boss_hp == read["obs"]["boss_hp"][0]
