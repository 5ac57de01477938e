"""A script as SoulsGym's users write it: pictures of the game, stacked and kept."""
# ruff: noqa: T201

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import FrameStackObservation

import soulsgym  # noqa: F401
from soulsgym.envs.darksouls3.iudex import IudexImgEnv

env = gym.make("SoulsGymIudexImg-v0", game_speed=3.0, resolution=(60, 80))
assert isinstance(env.unwrapped, IudexImgEnv)
env = FrameStackObservation(env, 2)
obs, info = env.reset()
frames = []
for _ in range(10):
    obs, reward, terminated, truncated, info = env.step(19)
    assert obs.shape == (2, 60, 80, 3)
    assert obs.dtype == np.uint8
    assert info["boss_hp"] > 0
    frames.append(obs[-1])
    if terminated or truncated:
        break
env.close()
print(len(frames), "frames, mean", np.mean(frames))
